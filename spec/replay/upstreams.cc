#include "spec/replay/upstreams.h"

#include <utility>

#include <ashlar/base/checked.h>

namespace ashlar::spec {

bool FakeUpstream::fails() { return fails_in_ != 0 && --fails_in_ == 0; }

Result<Address> FakeUpstream::allocate(Bytes size, const Stream&) noexcept {
  if (size == 0_B) return Address{};
  if (fails()) return {Code::kOutOfMemory, "as asked for"};
  Address at{alignment_.count()};
  for (const auto& [address, bytes] : live_) {
    if (address - at >= size) break;
    at = Address{round_up(Bytes{(address + bytes).value()}, alignment_).count()};
  }
  live_.emplace(at, size);
  return at;
}

Status FakeUpstream::free(Address address) noexcept {
  if (address.is_null()) return Status::ok();
  if (fails()) return {Code::kDriverError, "as asked for"};
  ASHLAR_REQUIRE(live_.erase(address) == 1, Code::kUnknownPointer, "not live");
  return Status::ok();
}

Status FakeUpstream::record_use(Address address, const Stream&) noexcept {
  if (fails()) return {Code::kOutOfMemory, "as asked for"};
  ASHLAR_REQUIRE(live_.count(address) == 1, Code::kUnknownPointer, "not live");
  return Status::ok();
}

Result<Address> LedgerUpstream::allocate(Bytes size, const Stream& stream) noexcept {
  const Result<Address> result = inner_.allocate(size, stream);
  const Address address = result.value_or(Address{});
  calls_.push_back({Call::Kind::kAllocate, size, address, stream, result.code()});
  if (!address.is_null()) live_.emplace(address, size);
  return result;
}

Status LedgerUpstream::free(Address address) noexcept {
  const Status status = inner_.free(address);
  calls_.push_back({Call::Kind::kFree, 0_B, address, {}, status.code()});
  if (status.is_ok()) live_.erase(address);
  return status;
}

Status LedgerUpstream::record_use(Address address, const Stream& stream) noexcept {
  const Status status = inner_.record_use(address, stream);
  calls_.push_back({Call::Kind::kUse, 0_B, address, stream, status.code()});
  return status;
}

std::vector<LedgerUpstream::Call> LedgerUpstream::take_calls() { return std::exchange(calls_, {}); }

}  // namespace ashlar::spec
