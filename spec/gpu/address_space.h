// AddressSpace: which addresses of the simulated machine are handed out, of all devices and the
// host together (D3).
//
// Thread safety: none. Cost: O(number of holes); there is at most one hole more than there
// are ranges handed out.
// Invariants:
//   (1) Ranges handed out and holes are disjoint and together are [first, next_); no two holes
//       touch.
//   (2) Every address is below 2^47 (user addresses of x86-64 and aarch64) and a multiple of 512.
//   (3) Adversarial: ranges just given back come out first five times in eight, at 512-byte
//       alignment, and fresh ranges often touch the range handed out last. Else: the lowest range
//       aligned to 2 MiB. Without reuse: fresh ranges only, each above every one before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <ashlar/base/types.h>

#include "spec/ops/random.h"

namespace ashlar::spec {

class AddressSpace {
 public:
  static constexpr std::uint64_t kFirst = std::uint64_t{1} << 41;
  static constexpr std::uint64_t kEnd = std::uint64_t{1} << 47;
  static constexpr std::uint64_t kGrain = 512;
  static constexpr std::uint64_t kTidyAlignment = std::uint64_t{2} << 20;

  /// `first`, a multiple of kGrain below kEnd: no address is below it.
  explicit AddressSpace(bool adversarial, bool reuses = true, std::uint64_t first = kFirst)
      : next_(first), adversarial_(adversarial), reuses_(reuses) {}

  /// `size` bytes aligned to at least `alignment`, a power of two, or nullopt when no such range
  /// is left. REQUIRES: size > 0.
  std::optional<Address> take(Bytes size, std::uint64_t alignment, Random& rng);
  /// REQUIRES: the whole of a range that take handed out.
  void give_back(Address at, Bytes size);

 private:
  struct Hole {
    std::uint64_t begin;
    std::uint64_t end;
  };
  static constexpr std::size_t kRecent = 8;

  std::optional<Address> take_recent(std::uint64_t size, std::uint64_t alignment, Random& rng);
  std::optional<Address> take_lowest(std::uint64_t size, std::uint64_t alignment);
  std::optional<Address> take_fresh(std::uint64_t size, std::uint64_t alignment, std::uint64_t gap);
  Address carve(std::size_t hole, std::uint64_t begin, std::uint64_t end);
  std::size_t hole_at_or_after(std::uint64_t address) const;

  std::vector<Hole> holes_;
  // Without the adversary, no hole ends at next_: what is handed out follows from what is held.
  // ring of bases given back lately; recent_at_ is the next place to be written
  std::array<std::uint64_t, kRecent> recent_{};
  std::size_t recent_at_ = 0;
  std::uint64_t next_;
  bool adversarial_;
  bool reuses_;
};

}  // namespace ashlar::spec
