#include "spec/model/body_answers.h"

#include <algorithm>
#include <utility>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

void BodyAnswers::judge_begin(const Stream& stream, const Stream& parent, Status got) {
  JudgedDevice& device = model_.state_.at(parent.device);
  device.books.begin_call();
  StreamBook& streams = model_.state_.streams;
  Code refusal = Code::kOk;
  if (stream.device != parent.device) refusal = Code::kInvalidArgument;
  else if (!streams.is_capturing(parent)) refusal = Code::kNotFound;
  else if (streams.has_body(parent) || streams.is_capturing(stream)) refusal = Code::kBusy;
  if (refusal != Code::kOk)
    return model_.judge_refused(device, got, refusal, refusal, "a begin of a body");
  if (got.is_ok()) {
    streams.begin_body(stream, parent);
    hold_for_parents(&device, stream, parent);
  } else if (!is_host_refusal(model_.state_, got.code()) &&
             !is_gone_answer(model_.state_, device, got.code()) && !device.ledger.any_failure()) {
    model_.report("C16", "a begin of a body answered ", code_name(got.code()));
  }
  JudgedCall call;
  call.is_capture_edge = true;
  call.device_calls_max = calls_max_of_uses(0, true);
  model_.end(device, call);
}

namespace {

enum class OfBody : std::uint8_t { kNo, kLent, kHeld };

/// `owner`: the stream whose memory the body shares.
OfBody is_of_body(const MemoryPoolBook& pools, const OwnedBlock& block, std::uint64_t owner) {
  if (block.is_pending) return OfBody::kNo;
  if (pools.is_in_use(block.memory_pool))
    return block.stream == owner ? OfBody::kHeld : OfBody::kNo;
  // Its borrower's work is not known to be done before the capture's end.
  return block.memory_pool == 0 && pools.any_overflow() ? OfBody::kLent : OfBody::kNo;
}

}  // namespace

void BodyAnswers::hold_for_parents(JudgedDevice* device, const Stream& body, const Stream& parent) {
  const PageWitness& pages = device->ledger.witness().pages();
  BodyBook::Body made{
      model_.state_.streams.capture_of(body), model_.state_.streams.capture_of(parent), {}};
  const std::uint64_t owner = model_.state_.streams.parents_of(body).back().id.value();
  for (auto& [address, block] : device->books.owned()) {
    const OfBody kind = is_of_body(model_.state_.pools, block, owner);
    if (kind == OfBody::kNo) continue;
    block.of_bodies.push_back(made.capture);
    device->books.touch(address);
    if (kind == OfBody::kLent) continue;
    for (const ByteRange& each : pages.bytes_at(address, address + block.size))
      made.held.push_back(each);
  }
  device->map.is_fresh = false;
  model_.state_.graphs.bodies().begin(std::move(made));
}

void BodyAnswers::end(const Stream& stream) {
  const std::vector<Stream> parents = model_.state_.streams.parents_of(stream);
  const std::uint64_t body = model_.state_.streams.capture_of(stream);
  const std::uint64_t parent = model_.state_.streams.capture_of(parents[1]);
  model_.state_.graphs.bodies().end(body);
  for (JudgedDevice& each : model_.state_.devices) {
    if (model_.end_of(each.id) != Code::kOk) continue;  // nothing is known to end
    for (auto& [address, block] : each.books.owned()) {
      bool is_used = false;
      for (std::size_t i = 0; i < block.of_bodies.size();) {
        const bool is_it = block.of_bodies[i] == body;
        is_used = is_used || is_it;
        if (is_it) block.of_bodies.remove(i);
        else ++i;
      }
      // One of an earlier capture may still be noted, and is taken for one of this.
      const bool is_announced = std::any_of(
          block.captured.begin(), block.captured.end(),
          [&stream](const OwnedBlock::CapturedUse& use) { return use.user == stream.id.value(); });
      if (!is_used && !is_announced) continue;
      // Of a body inside this one too.
      if (block.stream != parents.back().id.value()) block.of_bodies.push_back(parent);
      each.books.touch(address);
    }
  }
}

}  // namespace ashlar::spec
