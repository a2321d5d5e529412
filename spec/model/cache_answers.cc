// What frees, uses, trims, captures and limits may answer: C13, C16, C26 and rows DEV-6, 12, 19.
// See cache_model.h.
#include <algorithm>

#include "spec/model/body_answers.h"
#include "spec/model/cache_clauses.h"
#include "spec/model/cache_model.h"

namespace ashlar::spec {
namespace {

/// A use of a block of `device` by another device's stream: the stream's heap is made there, and
/// dead streams' blocks are looked at, so the map of that device is out of date.
void forget_map(CacheState& state, const JudgedDevice& device, const Stream& stream) {
  for (JudgedDevice& each : state.devices) {
    if (each.id == stream.device && each.id != device.id) each.map.is_fresh = false;
  }
}

/// A trim that answered ok where all work is done has asked for every use and every stream: the
/// excuses for those without an event end here. With several devices it has asked for its own alone.
void settle_streams(CacheState& state) {
  WorldState& world = state.world;
  if (!world.is_quiet || world.has_planned_failures || state.devices.size() != 1) return;
  state.streams.settle();
  world.may_be_unrecorded = state.streams.any_thread_bound();
}

}  // namespace

/// Finds a block by address on every device; nullptr where there is none.
OwnedBlock* CacheModel::find_owned(std::uint64_t address, JudgedDevice** device) {
  OwnedBlock* block = nullptr;
  for (JudgedDevice& each : state_.devices) {
    const auto found = each.books.owned().find(address);
    if (found == each.books.owned().end()) continue;
    block = &found->second;
    *device = &each;
    // A pending one may be complete and its segment another device's by now, which only that
    // device's next walk shows.
    if (!block->is_pending) break;
  }
  return block;
}

/// C16: a call that was to be refused, as `first` or `second`.
void CacheModel::judge_refused(JudgedDevice& device, Status got, Code first, Code second,
                               const char* what) {
  JudgedCall call;
  call.fails = true;
  device.books.begin_call();
  const bool is_gone = !got.is_ok() && got.code() == spec::end_of(state_, device);
  if (!is_gone && got.code() != first && got.code() != second) {
    report("C16", what, " answered ", code_name(got.code()), ", not ", code_name(first));
  }
  end(device, call);
}

/// The stream's use of the block is announced (DEV-7).
void CacheModel::note_use(OwnedBlock* block, const Stream& stream) const {
  const std::uint64_t id = stream.id.value();
  if (id == block->stream) return;
  // What a body uses of the memory that it shares with its parents is theirs anyway.
  const bool is_shared = state_.pools.is_in_use(block->memory_pool) &&
                         state_.streams.parents_of(stream).back().id.value() == block->stream;
  if (is_shared) return;
  const std::uint64_t capture = state_.streams.capture_of(stream);
  const bool is_new = std::find(block->uses.begin(), block->uses.end(), id) == block->uses.end();
  if (is_new) block->uses.push_back(id);
  bool was_captured = false;
  for (std::size_t i = 0; i < block->captured.size() && !was_captured; ++i) {
    if (block->captured[i].user != id) continue;
    was_captured = true;
    if (capture == 0) block->captured.remove(i);
    else block->captured[i].capture = capture;
  }
  if (is_new && capture != 0) block->captured.push_back({id, capture});
}

void CacheModel::judge_free(std::uint64_t address, const Stream* stream, Status got) {
  JudgedDevice* device = &current();
  if (address == 0) {
    if (!got.is_ok()) report("C16", "a free of null failed");
    return end(*device, {});
  }
  OwnedBlock* const block = find_owned(address, &device);
  if (block == nullptr) {
    return judge_refused(*device, got, Code::kUnknownPointer, Code::kDoubleFree,
                         "a free of no block's address");
  }
  if (block->is_pending) {
    const Code other = device->map.is_fresh ? Code::kDoubleFree : Code::kUnknownPointer;
    return judge_refused(*device, got, Code::kDoubleFree, other, "a second free");
  }
  device->books.begin_call();
  if (stream != nullptr) forget_map(state_, *device, *stream);
  JudgedCall call;
  // A borrowed block's borrower is a use that the caller did not announce, and so is the own stream of one
  // that outlived its memory pool.
  const std::uint64_t uses = block->uses_max() + 1 + state_.pools.any_own_uses();
  call.device_calls_max = calls_max_of_uses(uses + (stream != nullptr), stream != nullptr);
  if (is_gone_answer(state_, *device, got.code(), stream)) {
    call.fails = true;
    call.is_broken_off = device->ledger.any_failure();  // the call may have learnt of the loss
    return end(*device, call);
  }
  if (stream != nullptr && is_host_refusal(state_, got.code())) {
    call.fails = call.is_broken_off = true;
    return end(*device, call);
  }
  if (!got.is_ok())
    return report("C16", "the free of a live block answered ", code_name(got.code()));
  call.frees = true;
  if (stream != nullptr) note_use(block, *stream);
  device->books.start_pending(address, block);
  WorldState& world = state_.world;
  world.may_be_unrecorded =
      world.may_be_unrecorded || world.has_planned_failures || state_.streams.is_capturing();
  // the call that is under way may be another device's
  if (world.callbacks != 0) device->map.is_fresh = false;
  end(*device, call);
}

void CacheModel::judge_use(std::uint64_t address, const Stream& stream, Status got) {
  JudgedDevice* device = &current();
  OwnedBlock* const block = find_owned(address, &device);
  if (block == nullptr || block->is_pending) {
    return judge_refused(*device, got, Code::kUnknownPointer, Code::kDoubleFree,
                         "a use of no live block");
  }
  device->books.begin_call();
  JudgedCall call;
  call.device_calls_max = calls_max_of_uses(0, true);
  call.fails = !got.is_ok();
  if (got.is_ok()) {
    device->books.touch(address);
    note_use(block, stream);
  } else if (is_host_refusal(state_, got.code())) {
    call.is_broken_off = true;
  } else if (is_gone_answer(state_, *device, got.code(), &stream)) {
    call.is_broken_off = device->ledger.any_failure();  // the call may have learnt of the loss
  } else {
    report("C16", "the use of a live block answered ", code_name(got.code()));
  }
  forget_map(state_, *device, stream);
  end(*device, call);
}

void CacheModel::judge_trim(Status got) {
  JudgedDevice& device = current();
  device.books.begin_call();
  if (state_.streams.is_capturing())
    return judge_refused(device, got, Code::kBusy, Code::kBusy, "a trim in a capture");
  const bool is_gone = is_gone_answer(state_, device, got.code());
  const bool ran_out = got.code() == Code::kNotReady && !state_.world.is_quiet;
  judge_recovers(state_, device, got);
  // Whichever device failed: a trim waits for others' streams too.
  if (!is_gone && !got.is_ok() && !ran_out && !any_failure_but_growth(state_)) {
    report("C16", "a trim answered ", code_name(got.code()), " for no reason");
  }
  end(device, {});
  if (!got.is_ok() || device.ledger.any_failure()) return;
  settle_streams(state_);
  if (!device.map.is_fresh) walk(device);
  const cache::Snapshot& map = device.map.view;
  for (const cache::SnapshotSegment& segment : map.segments) {
    const cache::SnapshotBlock* const blocks = map.blocks.data() + segment.block_first;
    if (state_.pools.is_reserved(heap_of(segment))) continue;
    const bool is_held =
        !may_go_back(state_, device, segment) ||
        std::any_of(blocks, blocks + segment.block_count, [](const cache::SnapshotBlock& block) {
          return block.state == BlockState::kLive;
        });
    // Of a memory pool that was given no memory, the judge knows no heap.
    if (segment.heap != 0 && whole_page_bytes(device, segment, true) == 0 && !is_held &&
        blocks->size == segment.size)
      continue;
    if (!is_held) report("DEV-19", "a trim left the idle segment at ", segment.base.value());
    if (is_paged(device, segment) && whole_page_bytes(device, segment, false) != 0)
      report("DEV-19", "a trim left free pages in the segment at ", segment.base.value());
  }
}

void CacheModel::judge_retire(const Stream& stream, bool is_known, Status got) {
  JudgedDevice& device = state_.at(stream.device);
  device.books.begin_call();
  const bool any_failure = device.ledger.any_failure();
  if (!got.is_ok() && (got.code() != Code::kNotFound || is_known) &&
      !is_gone_answer(state_, device, got.code()) && !any_failure) {
    report("C16", "a retirement answered ", code_name(got.code()), " for no reason");
  }
  if (got.is_ok() && any_failure) state_.streams.retire_unmarked(stream.id.value());
  if (got.is_ok() && !any_failure) state_.streams.retire(stream.id.value());
  JudgedCall call;
  // An event for its own heap, and for that of each memory pool; and the question whether it is done.
  call.device_calls_max = calls_max_of_uses(1 + state_.pools.heaps_of(stream), true);
  end(device, call);
}

void CacheModel::judge_begin_capture(const Stream& stream, Status got, const Stream* joined) {
  JudgedDevice& device = state_.at(stream.device);
  device.books.begin_call();
  if (state_.streams.is_capturing(stream))
    return judge_refused(device, got, Code::kBusy, Code::kBusy, "a second begin of a capture");
  if (got.is_ok()) {
    state_.streams.begin_capture(stream, joined);
    state_.pools.set_capturing(true);
  } else if (!is_host_refusal(state_, got.code()) && !is_gone_answer(state_, device, got.code()) &&
             !device.ledger.any_failure()) {
    report("C16", "a begin of a capture answered ", code_name(got.code()));
  }
  JudgedCall call;
  call.is_capture_edge = true;
  call.device_calls_max = calls_max_of_uses(0, true);
  end(device, call);
}

void CacheModel::judge_end_capture(const Stream& stream, Status got) {
  JudgedDevice& device = state_.at(stream.device);
  device.books.begin_call();
  if (!state_.streams.is_capturing(stream)) {
    return judge_refused(device, got, Code::kNotFound, Code::kNotFound,
                         "an end without a begin of a capture");
  }
  if (state_.streams.has_body(stream))
    return judge_refused(device, got, Code::kBusy, Code::kBusy,
                         "an end of a capture before that of a body");
  if (!got.is_ok() && !is_gone_answer(state_, device, got.code()) && !device.ledger.any_failure()) {
    report("C16", "an end of a capture answered ", code_name(got.code()));
  }
  if (state_.streams.is_body(stream)) BodyAnswers(*this).end(stream);
  // even where the answer was an error: an aborted capture leaves nothing behind
  state_.streams.end_capture(stream);
  state_.pools.set_capturing(state_.streams.is_capturing());
  // The uses that waited for this are taken up on every device, and those by a lost one's streams
  // are over.
  for (JudgedDevice& each : state_.devices) {
    each.map.is_fresh = false;
    for (const auto& [address, block] : each.books.owned()) {
      if (block.is_pending && !block.captured.empty()) each.books.touch(address);
    }
  }
  JudgedCall call;
  call.is_capture_edge = true;
  call.device_calls_max = ~std::uint64_t{0} - 1;  // an event for each use that waited for this
  end(device, call);
}

void CacheModel::judge_named_dead(Status got, Code expected) {
  judge_refused(current(), got, expected, expected, "a call that names a dead stream");
}

/// For a query: its map, where none is at hand. What earlier calls completed is not the query's.
void CacheModel::refresh_map(JudgedDevice& device) {
  if (device.map.is_fresh) return;
  walk(device);
  device.books.begin_call();
}

void CacheModel::judge_reset_peaks(Status got) {
  JudgedDevice& device = current();
  device.books.begin_call();
  if (!got.is_ok() && !is_gone_answer(state_, device, got.code()))
    report("C16", "a reset of the peaks was refused");
  refresh_map(device);
  device.bounds.reset_peaks(device.recount);
  JudgedCall call;
  call.is_query = true;
  end(device, call);
}

void CacheModel::judge_reset_totals(Status got) {
  JudgedDevice& device = current();
  device.books.begin_call();
  if (!got.is_ok() && !is_gone_answer(state_, device, got.code()))
    report("C16", "a reset of the totals was refused");
  refresh_map(device);
  if (got.is_ok() && device.map.is_fresh) restart_totals(state_, device);
  JudgedCall call;
  call.is_query = true;
  end(device, call);
}

void CacheModel::judge_largest(const Stream& stream, const Result<Bytes>& got) {
  JudgedDevice& device = state_.at(stream.device);
  device.books.begin_call();
  JudgedCall call;
  call.is_query = true;
  if (!got.is_ok() && !is_gone_answer(state_, device, got.code()))
    return report("C16", "a question for the largest free block answered ", code_name(got.code()));
  refresh_map(device);
  if (got.is_ok() && device.map.is_fresh) judge_largest_free(state_, device, stream, got.value());
  end(device, call);
}

}  // namespace ashlar::spec
