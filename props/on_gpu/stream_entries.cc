#include "props/on_gpu/stream_entries.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ashlar::props {
namespace {

// A simulated machine runs some entries at each question; host functions are threads there.
constexpr std::chrono::microseconds kPause{1000}, kPauseSimulated{100};
constexpr std::uint32_t kTriesOfStep = 100;
constexpr std::uint32_t kTriesOfSettling = 1500;

}  // namespace

bool StreamEntries::is_capturing(const Stream& stream) {
  // Of the legacy stream the question is refused while a blocking stream captures: then nothing is to be added to it either.
  const auto status = gpus_.of(stream).device->capture_status(stream.handle);
  return !status.is_ok() || status.value() != device::CaptureStatus::kNone;
}

std::optional<std::uint32_t> StreamEntries::begin(const Stream& stream) {
  const std::uint32_t gate = gates_++;
  if (gate >= RuleGpus::kGates) return std::nullopt;
  const Status held = threads_.run([&] { return gpus_.enqueue_gate(stream, gate); });
  return held.is_ok() ? std::optional(gate) : std::nullopt;
}

void StreamEntries::end(const Stream& stream, std::uint32_t gate, bool is_enqueued) {
  if (!is_enqueued) return gpus_.open_gate(gate);
  cuda::CudaDevice& device = *gpus_.of(stream).device;
  const Result<EventHandle> behind = device.event_create();
  if (!behind.is_ok()) return gpus_.open_gate(gate);
  static_cast<void>(
      threads_.run([&] { return device.event_record(behind.value(), stream.handle); }));
  if (find(stream) == nullptr) {
    by_name_[name_of(stream)] = queues_.size();
    queues_.push_back({stream, {}});
  }
  find(stream)->entries.push_back({gate, behind.value()});
}

StreamEntries::Queue* StreamEntries::find(const Stream& stream) {
  const auto known = by_name_.find(name_of(stream));
  return known == by_name_.end() ? nullptr : &queues_[known->second];
}

bool StreamEntries::is_done(const Queue& queue, const Entry& entry) {
  cuda::CudaDevice& device = *gpus_.of(queue.stream).device;
  // A question about an event is one that a capture may forbid the thread.
  const auto mode = device.exchange_capture_mode(device::CaptureMode::kRelaxed);
  const Status asked = device.event_query(entry.behind);
  if (mode.is_ok()) static_cast<void>(device.exchange_capture_mode(mode.value()));
  return asked.code() != Code::kNotReady;  // work that ended with an error has ended
}

bool StreamEntries::becomes_done(const Queue& queue, const Entry& entry, std::uint32_t tries) {
  for (std::uint32_t n = 0; n < tries; ++n) {
    if (is_done(queue, entry)) return true;
    std::this_thread::sleep_for(gpus_.is_simulated() ? kPauseSimulated : kPause);
  }
  return false;
}

Status StreamEntries::step(const Stream& stream, std::uint64_t n) {
  constexpr Status kFewer{Code::kNotReady, "fewer could finish"};
  Queue* const queue = find(stream);
  if (queue == nullptr || queue->released == queue->entries.size()) return kFewer;
  const std::size_t last = std::min<std::size_t>(queue->released + n, queue->entries.size());
  for (std::size_t i = queue->released; i < last; ++i) gpus_.open_gate(queue->entries[i].gate);
  while (queue->released < last) {
    if (!becomes_done(*queue, queue->entries[queue->released], kTriesOfStep)) {
      for (std::size_t i = queue->released; i < last; ++i) gpus_.close_gate(queue->entries[i].gate);
      return kFewer;
    }
    ++queue->released;
  }
  return Status::ok();
}

std::uint64_t StreamEntries::pending(const Stream& stream) {
  const Queue* const queue = find(stream);
  return queue == nullptr ? 0 : queue->entries.size() - queue->released;
}

void StreamEntries::open_all() {
  for (const Queue& queue : queues_) {
    for (std::size_t i = queue.released; i < queue.entries.size(); ++i)
      gpus_.open_gate(queue.entries[i].gate);
  }
}

Status StreamEntries::settle(std::optional<std::uint32_t> device) {
  const auto is_meant = [device](const Queue& queue) {
    return !device || static_cast<std::uint32_t>(queue.stream.device.value()) == *device;
  };
  for (const Queue& queue : queues_) {
    for (std::size_t i = queue.released; is_meant(queue) && i < queue.entries.size(); ++i)
      gpus_.open_gate(queue.entries[i].gate);
  }
  for (Queue& queue : queues_) {
    while (is_meant(queue) && queue.released < queue.entries.size()) {
      if (!becomes_done(queue, queue.entries[queue.released], kTriesOfSettling))
        return {Code::kDeadlock, "work that nothing holds any more does not run"};
      ++queue.released;
    }
  }
  return Status::ok();
}

}  // namespace ashlar::props
