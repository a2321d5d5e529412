// Upstreams for the suites: one whose memory is made up, and one that keeps books over another.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <ashlar/base/upstream.h>

namespace ashlar::spec {

/// Hands out made-up addresses: the lowest that are free, so that freed ones come back at once; and
/// fails on demand.
class FakeUpstream final : public Upstream {
 public:
  /// Addresses are multiples of `alignment`.
  explicit FakeUpstream(Bytes alignment) : alignment_(alignment) {}

  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override;
  Status free(Address address) noexcept override;
  Status record_use(Address address, const Stream& stream) noexcept override;

  /// The calls-th call from now fails with kOutOfMemory; a free, which may not, with kDriverError.
  /// 0: none does.
  void fail(std::uint32_t calls) { fails_in_ = calls; }

 private:
  bool fails();

  Bytes alignment_;
  std::map<Address, Bytes> live_;
  std::uint32_t fails_in_ = 0;
};

/// Notes every call and what it came to.
class LedgerUpstream final : public Upstream {
 public:
  struct Call {
    enum class Kind : std::uint8_t { kAllocate, kFree, kUse };
    Kind kind = Kind::kAllocate;
    Bytes size;
    Address address;  ///< asked about, or given
    Stream stream;
    Code code = Code::kOk;
  };

  explicit LedgerUpstream(Upstream& inner) : inner_(inner) {}
  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override;
  Status free(Address address) noexcept override;
  Status record_use(Address address, const Stream& stream) noexcept override;

  /// Since the last take.
  std::vector<Call> take_calls();
  /// What is live, and its size.
  const std::map<Address, Bytes>& live() const { return live_; }

 private:
  Upstream& inner_;
  std::vector<Call> calls_;
  std::map<Address, Bytes> live_;
};

}  // namespace ashlar::spec
