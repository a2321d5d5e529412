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
  const std::uint64_t reserved = device.ledger.witness().reserved_bytes();
  const bool is_capturing = model_.state_.streams.is_capturing();
  JudgedCall call;
  const bool is_gone = is_gone_answer(model_.state_, device, got.code());
  const bool is_impossible = free > capacity;
  const bool must_ask = is_impossible || device.ledger.reserved_before() > ceiling;
  if (got.is_ok() && (reserved > ceiling || is_impossible))
    model_.report("DEV-23", "room was made, but only ", capacity - std::min(capacity, reserved),
                  " bytes of the device are free");
  const bool is_excused = is_gone || device.ledger.any_failure();
  const Code code = got.code();
  const bool is_refusal = code == Code::kOutOfMemory || code == Code::kNotReady;
  if (!got.is_ok() && !is_excused &&
      !(is_capturing ? code == Code::kBusy && must_ask
                     : is_refusal && (reserved > ceiling || is_impossible)))
    model_.report("C16", "a call for room answered ", code_name(code));
  if (!must_ask) call.device_calls_max = 1;  // how much is free
  const bool has_map_before = device.map.is_fresh;
  model_.end(device, call);
  if (!must_ask || is_capturing || is_excused) return;
  if (!device.map.is_fresh) model_.walk(device);
  judge_given_back(model_.state_, device, "DEV-23", ceiling, has_map_before);
}

}  // namespace ashlar::spec
