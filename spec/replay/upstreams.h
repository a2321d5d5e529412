// Upstreams for the suites: one that hands out invented addresses, and one that logs the calls to
// another.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <ashlar/base/upstream.h>

namespace ashlar::spec {

/// Hands out invented addresses, always the lowest free ones, so that freed addresses come back at
/// once. Fails on demand.
class FakeUpstream final : public Upstream {
 public:
  /// Addresses are multiples of `alignment`.
  explicit FakeUpstream(Bytes alignment) : alignment_(alignment) {}

  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override;
  Status free(Address address) noexcept override;
  Status record_use(Address address, const Stream& stream) noexcept override;

  /// The calls-th call from now fails: with kOutOfMemory, or if it is a free with kDriverError. 0:
  /// no call fails.
  void fail(std::uint32_t calls) { fails_in_ = calls; }

 private:
  bool fails();

  Bytes alignment_;
  std::map<Address, Bytes> live_;
  std::uint32_t fails_in_ = 0;
};

/// Logs every call and its result.
class LedgerUpstream final : public Upstream {
 public:
  struct Call {
    enum class Kind : std::uint8_t { kAllocate, kFree, kUse };
    Kind kind = Kind::kAllocate;
    Bytes size;
    Address address;  ///< the argument, or the result of an allocation
    Stream stream;
    Code code = Code::kOk;
  };

  explicit LedgerUpstream(Upstream& inner) : inner_(inner) {}
  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override;
  Status free(Address address) noexcept override;
  Status record_use(Address address, const Stream& stream) noexcept override;

  /// The calls since the last take_calls.
  std::vector<Call> take_calls();
  /// The live allocations and their sizes.
  const std::map<Address, Bytes>& live() const { return live_; }

 private:
  Upstream& inner_;
  std::vector<Call> calls_;
  std::map<Address, Bytes> live_;
};

}  // namespace ashlar::spec
