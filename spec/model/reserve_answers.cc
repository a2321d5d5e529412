#include "spec/model/reserve_answers.h"

#include <algorithm>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

void ReserveAnswers::judge_set_limit(std::uint64_t limit, Status got) {
  JudgedDevice& device = model_.current();
  device.books.begin_call();
  if (got.is_ok()) {
    device.memory.limit = limit;
    device.memory.has_limit = true;
  } else if (!is_gone_answer(model_.state_, device, got.code())) {
    model_.report("C16", "a memory limit was refused: ", code_name(got.code()));
  }
  JudgedCall call;
  call.is_query = device.ledger.reserved_before() <= limit;
  const bool has_map_before = device.map.is_fresh;
  model_.end(device, call);
  if (!got.is_ok() || device.ledger.reserved_before() <= limit) return;
  if (!device.map.is_fresh) model_.walk(device);
  judge_given_back(model_.state_, device, "DEV-12", limit, has_map_before);
}

void ReserveAnswers::judge_make_room(std::uint64_t free, Status got) {
  JudgedDevice& device = model_.current();
  device.books.begin_call();
  const std::uint64_t capacity =
      device.memory.capacity == 0 ? kAddressSpace : device.memory.capacity;
  const std::uint64_t ceiling = free == 0 ? ~std::uint64_t{0} : capacity - std::min(capacity, free);
  const std::uint64_t reserved = device.ledger.witness().taken_bytes();
  const bool is_capturing = model_.state_.streams.is_capturing();
  const bool is_gone = is_gone_answer(model_.state_, device, got.code());
  const bool is_impossible = free > capacity;
  const bool may_ask = model_.state_.rules.has_driver_pool();
  const bool is_pool_short = may_ask && device.ledger.witness().told().free.count() < free;
  const bool is_short = reserved > ceiling || is_impossible || is_pool_short;
  const bool must_ask = is_impossible || device.ledger.reserved_before() > ceiling;
  if (got.is_ok() && is_short)
    model_.report("DEV-23", "room was made, but only ", capacity - std::min(capacity, reserved),
                  " bytes of the device are free");
  if (!got.is_ok() && !is_gone &&
      !may_refuse_room(device, got.code(), is_short, must_ask || may_ask))
    model_.report("C16", "a call for room answered ", code_name(got.code()));
  JudgedCall call;
  if (!must_ask && !may_ask) call.device_calls_max = 1;  // how much is free
  const bool has_map_before = device.map.is_fresh;
  model_.end(device, call);
  if (!must_ask || is_capturing || is_gone) return;
  if (!device.map.is_fresh) model_.walk(device);
  if (got.code() == Code::kOutOfMemory) judge_used(device);
  if (!device.ledger.any_failure())
    judge_given_back(model_.state_, device, "DEV-23", ceiling, has_map_before);
}

bool ReserveAnswers::may_refuse_room(const JudgedDevice& device, Code code, bool is_short,
                                     bool must_ask) {
  const CacheState& state = model_.state_;
  const DeviceWitness& witness = device.ledger.witness();
  // What the device answered to the question how much is free, or refused to take back.
  if (device.ledger.failed(device::CallKind::kMemoryInfo) != 0 && witness.has_refused_growth(code))
    return true;
  if (state.streams.is_capturing()) return code == Code::kBusy && must_ask;
  if (!is_short) return false;
  if (code == Code::kNotReady) return !state.world.is_quiet || any_failure_but_growth(state);
  return code == Code::kOutOfMemory || witness.has_refused_return(code);
}

void ReserveAnswers::judge_used(const JudgedDevice& device) {
  const CacheState& state = model_.state_;
  const std::uint64_t refused = device.ledger.failed(device::CallKind::kSegmentFree);
  const bool is_known =
      !state.world.may_be_unrecorded && !state.streams.any_unknown() &&
      sum_over_devices(state, [](const CallLedger& each) { return each.failures(); }) == refused;
  if (!is_known) return;
  for (const cache::SnapshotSegment& segment : device.map.view.segments) {
    if (is_idle(device.map.view, segment) && may_go_back(state, device, segment))
      model_.report("DEV-23", "a call for room says that too much is in use, but segment ",
                    segment.ordinal, " is idle", refused == 0 ? "" : ": the device refused it");
  }
}

}  // namespace ashlar::spec
