#include "bench/generators/workload_recorder.h"

#include "bench/adapters/adapter.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::bench {

namespace slot = spec::slot;

WorkloadRecorder::WorkloadRecorder(std::string name, std::uint64_t seed)
    : random_(seed), builder_(std::move(name)), enqueued_(1) {
  ops_.subject = spec::Subject::kCache;
}

void WorkloadRecorder::push(std::uint8_t slot, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  spec::Op op;
  op.slot = slot;
  op.arg = {a, b, c, 0};
  ops_.ops.push_back(op);
}

unsigned WorkloadRecorder::new_stream() {
  const auto stream = static_cast<unsigned>(enqueued_.size());
  enqueued_.push_back(0);
  push(slot::kStreamCreate, stream, 0);
  return stream;
}

Block WorkloadRecorder::allocate(std::uint64_t bytes, unsigned stream) {
  const auto number = builder_.allocate(Bytes{bytes}, stream);
  if (!number) give_up("generator", "the trace is too long");
  push(slot::kAlloc, *number, bytes, stream);
  return {*number, stream, bytes};
}

void WorkloadRecorder::free(const Block& block) {
  if (!builder_.free(block.number)) give_up("generator", "a block is freed twice");
  push(slot::kFree, block.number);
}

void WorkloadRecorder::free_on(const Block& block, unsigned stream) {
  if (!builder_.free(block.number)) give_up("generator", "a block is freed twice");
  push(slot::kFreeOn, block.number, stream);
}

void WorkloadRecorder::use(const Block& block, unsigned stream) {
  push(slot::kUse, block.number, stream);
}

void WorkloadRecorder::kernel(unsigned stream, const Block& block, KernelTouch touch) {
  push(slot::kKernel, stream, block.number, static_cast<std::uint64_t>(touch));
  ++enqueued_[stream];
}

std::uint64_t WorkloadRecorder::event_between(unsigned before, unsigned after) {
  return events_.emplace(std::pair(before, after), events_.size()).first->second;
}

void WorkloadRecorder::order(unsigned before, unsigned after) {
  const std::uint64_t event = event_between(before, after);
  push(slot::kRecord, event, before);
  push(slot::kWait, after, event);
  ++enqueued_[before];
  ++enqueued_[after];
}

void WorkloadRecorder::synchronize(unsigned stream) {
  const std::uint64_t event = event_between(stream, stream);
  push(slot::kRecord, event, stream);
  push(slot::kSync, event);
}

void WorkloadRecorder::progress() {
  for (unsigned stream = 0; stream < enqueued_.size(); ++stream) {
    const std::uint64_t done = random_.below(enqueued_[stream] + 1);
    if (done == 0) continue;
    push(slot::kStep, stream, done);
    enqueued_[stream] -= done;
  }
}

}  // namespace ashlar::bench
