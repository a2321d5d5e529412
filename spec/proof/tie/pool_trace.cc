// pool_trace SEED OPS: runs random operations on the C++ model of the block pool. Prints one a
// line: the op, its answer, and a hash of the whole state after it. pool_tie.cs runs the same ops
// on the compiled Dafny model and compares.
//
// The worlds have a few segments and some dozen blocks, so that every case of every operation
// occurs often: neighbours in all states, touching segments, equal sizes, stale and interior
// addresses.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "spec/model/block_pool_model.h"
#include "spec/ops/random.h"
#include "spec/ops/word_hash.h"

namespace ashlar::spec {
namespace {

constexpr std::uint64_t kGranule = 512;
constexpr std::uint64_t kBaseFirst = std::uint64_t{1} << 40;
constexpr std::size_t kSegmentsMax = 4;
constexpr std::uint64_t kSegmentGranulesMax = 24;
/// the places where segments may begin: so close that segments touch, and never overlap
constexpr std::uint64_t kPlaces = 8;

/// The code's name in the Dafny model.
const char* name_of(Code code) {
  switch (code) {
    case Code::kOk: return "kOk";
    case Code::kOutOfMemory: return "kOutOfMemory";
    case Code::kUnknownPointer: return "kUnknownPointer";
    case Code::kDoubleFree: return "kDoubleFree";
    case Code::kBusy: return "kBusy";
    case Code::kNotFound: return "kNotFound";
    default: return "?";
  }
}

std::uint64_t hash_of(const PoolMap& map) {
  WordHash hash;
  for (const PoolSegment& segment : map.segments) {
    hash.add(segment.base.value());
    hash.add(segment.size.count());
  }
  for (const PoolBlock& block : map.blocks) {
    hash.add(block.address.value());
    hash.add(block.size.count());
    hash.add(block.requested.count());
    hash.add(block.segment.value());
    hash.add(block.stamp);
    hash.add(block.user);
    hash.add(static_cast<std::uint64_t>(block.state));
  }
  return hash.value();
}

class Trace {
 public:
  explicit Trace(std::uint64_t seed) : random_(seed) {}

  void step() {
    stamp_ += 1;
    const std::uint64_t kind = random_.below(16);
    if (kind == 0) return grow();
    if (kind < 7) return allocate();
    if (kind < 10)
      return on(PoolState::kLive, "R", [this](Address a) { return model_.release(a, stamp_); });
    if (kind < 12) return on(PoolState::kLive, "D", [this](Address a) { return model_.defer(a); });
    if (kind == 12)
      return on(PoolState::kPending, "C", [this](Address a) { return model_.complete(a, stamp_); });
    if (kind == 13) return on(PoolState::kFree, "L", [this](Address a) { return model_.lift(a); });
    if (kind == 14)
      return on(PoolState::kInTransfer, "W", [this](Address a) { return model_.lower(a, stamp_); });
    const PoolBlock* idle = model_.nth_idle(random_.next());
    const Address base = idle != nullptr ? idle->address : some_address();
    const Status status = model_.shrink(base);
    std::printf("S %" PRIu64, base.value());
    answer(status, 0);
  }

 private:
  void grow() {
    const Address base{kBaseFirst + random_.below(kPlaces) * kSegmentGranulesMax * kGranule};
    const auto& segments = model_.map().segments;
    if (segments.size() == kSegmentsMax) return allocate();
    for (const PoolSegment& segment : segments) {
      if (segment.base == base) return allocate();
    }
    // Often fills the whole place, so that segments touch.
    const std::uint64_t granules =
        random_.one_in(2) ? kSegmentGranulesMax : 1 + random_.below(kSegmentGranulesMax);
    const Bytes size{granules * kGranule};
    // The proof's pool orders equal blocks by address: it is the pool whose ordinals rise with the
    // addresses.
    const Status status = model_.grow(base, size, base.value(), stamp_);
    std::printf("G %" PRIu64 " %" PRIu64 " %" PRIu64, base.value(), size.count(), stamp_);
    answer(status, 0);
  }

  void allocate() {
    PoolRequest request;
    request.size = Bytes{(1 + random_.below(random_.one_in(4) ? 24 : 6)) * kGranule};
    request.requested = Bytes{1 + random_.below(request.size.count())};
    request.user = stamp_ % 3 == 0 ? 0 : stamp_;
    request.split = !random_.one_in(4);
    if (random_.one_in(4)) request.size_end = request.size + Bytes{random_.below(8) * kGranule};
    const Result<Address> got = model_.allocate(request);
    std::printf("A %" PRIu64 " %" PRIu64 " %d %" PRIu64 " %" PRIu64, request.size.count(),
                request.size_end.count(), request.split ? 1 : 0, request.requested.count(),
                request.user);
    answer(got.status(), got.is_ok() ? got.value().value() : 0);
  }

  /// Calls `call`, mostly on a block in that state, so that most calls succeed.
  template <class Call>
  void on(PoolState state, const char* name, Call call) {
    const PoolBlock* block = random_.one_in(8) ? nullptr : model_.nth(state, random_.next());
    const Address address = block != nullptr ? block->address : some_address();
    const Status status = call(address);
    std::printf("%s %" PRIu64 " %" PRIu64, name, address.value(), stamp_);
    answer(status, 0);
  }

  /// The address of a block in any state, or an address inside a block, or one without a block.
  Address some_address() {
    const auto& blocks = model_.map().blocks;
    if (blocks.empty() || random_.one_in(8))
      return Address{kBaseFirst + random_.below(256) * kGranule};
    const PoolBlock& block = blocks[random_.below(blocks.size())];
    return random_.one_in(4) ? block.address + Bytes{kGranule} : block.address;
  }

  void answer(Status status, std::uint64_t value) {
    std::printf(" %s %" PRIu64 " %" PRIu64 "\n", name_of(status.code()), value,
                hash_of(model_.map()));
  }

  BlockPoolModel model_;
  Random random_;
  std::uint64_t stamp_ = 0;
};

}  // namespace
}  // namespace ashlar::spec

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: pool_trace SEED OPS\n", stderr), 2;
  ashlar::spec::Trace trace(std::strtoull(argv[1], nullptr, 10));
  for (std::uint64_t left = std::strtoull(argv[2], nullptr, 10); left > 0; --left) trace.step();
  return 0;
}
