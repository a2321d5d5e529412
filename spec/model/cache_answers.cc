// What frees, uses, trims, captures, limits may answer: C13, C16, C26 and rows DEV-6, 12, 19. See
// cache_model.h.
#include <algorithm>

#include "spec/model/cache_model.h"

namespace ashlar::spec {

void CacheModel::expect_misuse(Device& device, Status got, Code first, Code second,
                               const char* what) {
  Call call;
  call.fails = true;
  device.completed = device.completed_bytes = 0;
  const bool is_dead = !got.is_ok() && got.code() == end_of(device.id);
  if (!is_dead && got.code() != first && got.code() != second) {
    report("C16", what, " answered ", code_name(got.code()), ", not ", code_name(first));
  }
  end(device, call);
}

void CacheModel::judge_free(std::uint64_t address, const Stream* stream, Status got) {
  Device* device = &at(current_);
  if (address == 0) {
    if (!got.is_ok()) report("C16", "a free of null failed");
    return end(*device, {});
  }
  Blocks::iterator found;
  if (!find_owned(address, &device, &found)) {
    return expect_misuse(at(current_), got, Code::kUnknownPointer, Code::kDoubleFree,
                         "a free of no block's address");
  }
  OwnedBlock& block = found->second;
  if (block.is_pending) {
    const Code other = device->is_fresh ? Code::kDoubleFree : Code::kUnknownPointer;
    return expect_misuse(*device, got, Code::kDoubleFree, other, "a second free");
  }
  device->completed = 0;
  Call call;
  if (is_dead_answer(*device, got.code())) {
    call.fails = true;
    return end(*device, call);
  }
  if (!got.is_ok()) {
    report("C16", "the free of a live block answered ", code_name(got.code()));
    return;
  }
  device->touched.push_back(address);
  if (stream != nullptr && stream->id.value() != block.stream)
    block.uses.push_back(stream->id.value());
  start_pending(*device, block);
  may_be_unrecorded_ = may_be_unrecorded_ || has_planned_failures_ || is_capturing();
  // the call that is under way may be another device's
  if (callbacks_ != 0) device->is_fresh = false;
  end(*device, call);
}

void CacheModel::judge_use(std::uint64_t address, const Stream& stream, Status got) {
  Device* device = &at(current_);
  Blocks::iterator found;
  if (!find_owned(address, &device, &found) || found->second.is_pending) {
    return expect_misuse(*device, got, Code::kUnknownPointer, Code::kDoubleFree,
                         "a use of no live block");
  }
  device->completed = 0;
  Call call;
  call.fails = !got.is_ok();
  if (got.is_ok()) {
    device->touched.push_back(address);
    ShortList<std::uint64_t, 2>& uses = found->second.uses;
    const std::uint64_t id = stream.id.value();
    if (id != found->second.stream && std::find(uses.begin(), uses.end(), id) == uses.end())
      uses.push_back(id);
  } else if (!is_dead_answer(*device, got.code()) &&
             !(got.code() == Code::kWrongDevice && stream.device != device->id)) {
    report("C16", "the use of a live block answered ", code_name(got.code()));
  }
  end(*device, call);
}

void CacheModel::judge_trim(Status got) {
  Device& device = at(current_);
  device.completed = device.completed_bytes = 0;
  if (is_capturing())
    return expect_misuse(device, got, Code::kBusy, Code::kBusy, "a trim in a capture");
  Call call;
  const bool is_dead = is_dead_answer(device, got.code());
  const bool ran_out = got.code() == Code::kNotReady && rules_.config().wait_ms == 0;
  // Whichever device failed: a trim waits for others' streams too.
  if (!is_dead && !got.is_ok() && !ran_out && !any_failure_but_growth()) {
    report("C16", "a trim answered ", code_name(got.code()), " for no reason");
  }
  end(device, call);
  if (!got.is_ok() || any_failure(device)) return;
  if (!device.is_fresh) walk(device);
  for (const cache::SnapshotSegment& segment : device.view.segments) {
    bool is_held = false;
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      is_held = is_held || device.view.blocks[segment.block_first + i].state == BlockState::kLive;
    }
    if (!is_held) report("DEV-19", "a trim left the idle segment at ", segment.base.value());
  }
}

void CacheModel::judge_retire(const Stream& stream, Status got) {
  Device& device = at(stream.device);
  device.completed = device.completed_bytes = 0;
  if (!got.is_ok() && got.code() != Code::kNotFound && !is_dead_answer(device, got.code()) &&
      !any_failure(device)) {
    report("C16", "a retirement answered ", code_name(got.code()), " for no reason");
  }
  if (is_capturing() || any_failure(device)) unmarked_streams_.push_back(stream.id.value());
  end(device, {});
}

void CacheModel::judge_begin_capture(const Stream& stream, Status got) {
  Device& device = at(stream.device);
  device.completed = device.completed_bytes = 0;
  const std::uint64_t id = stream.id.value();
  const bool is_begun =
      std::find(device.capturing.begin(), device.capturing.end(), id) != device.capturing.end();
  if (is_begun)
    return expect_misuse(device, got, Code::kBusy, Code::kBusy, "a second begin of a capture");
  if (got.is_ok()) {
    device.capturing.push_back(id);
  } else if (!is_dead_answer(device, got.code()) && !any_failure(device)) {
    report("C16", "a begin of a capture answered ", code_name(got.code()));
  }
  end(device, {});
}

void CacheModel::judge_end_capture(const Stream& stream, Status got) {
  Device& device = at(stream.device);
  device.completed = device.completed_bytes = 0;
  const auto found = std::find(device.capturing.begin(), device.capturing.end(), stream.id.value());
  if (found == device.capturing.end()) {
    return expect_misuse(device, got, Code::kNotFound, Code::kNotFound,
                         "an end without a begin of a capture");
  }
  if (!got.is_ok() && !is_dead_answer(device, got.code()) && !any_failure(device)) {
    report("C16", "an end of a capture answered ", code_name(got.code()));
  }
  // even where the answer was an error: an aborted capture leaves nothing behind
  device.capturing.erase(found);
  // The uses that waited for this are taken up on every device, and those by a lost one's streams
  // are over.
  for (Device& each : devices_) each.is_fresh = false;
  end(device, {});
}

void CacheModel::judge_limit(std::uint64_t limit, Status got) {
  Device& device = at(current_);
  device.completed = device.completed_bytes = 0;
  if (got.is_ok()) {
    device.limit = limit;
    device.has_limit = true;
  }
  if (!got.is_ok() && !is_dead_answer(device, got.code())) {
    report("C16", "a memory limit was refused: ", code_name(got.code()));
  }
  end(device, {});
}

void CacheModel::judge_reset_peaks(Status got) {
  Device& device = at(current_);
  device.completed = device.completed_bytes = 0;
  if (!got.is_ok() && !is_dead_answer(device, got.code()))
    report("C16", "a reset of the peaks was refused");
  if (!device.is_fresh) walk(device);
  constexpr unsigned kAll = kFigures * cache::kStatPools;
  std::fill(&device.peaks_least[0][0], &device.peaks_least[0][0] + kAll, 0);
  for (HeapFigures& heap : device.heaps) {
    std::copy(&heap.now[0][0], &heap.now[0][0] + kAll, &heap.peak_least[0][0]);
    std::copy(&heap.now[0][0], &heap.now[0][0] + kAll, &heap.peak_most[0][0]);
    for (unsigned i = 0; i < kAll; ++i) (&device.peaks_least[0][0])[i] += (&heap.now[0][0])[i];
  }
  std::copy(&device.peaks_least[0][0], &device.peaks_least[0][0] + kAll, &device.peaks_most[0][0]);
  end(device, {});
}

}  // namespace ashlar::spec
