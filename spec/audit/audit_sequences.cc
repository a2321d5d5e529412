#include "spec/audit/audit_sequences.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

#include <ashlar/device/device.h>

#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"

namespace ashlar::spec {
namespace {

constexpr std::uint64_t kPointers = 24;
constexpr std::uint64_t kStreams = 4;
constexpr std::uint64_t kFirstThreadStream = 16;
constexpr std::uint64_t kThreads = 2;
constexpr std::uint64_t kSmallDevice = 64 << 20;

Op make_op(std::uint8_t slot, std::initializer_list<std::uint64_t> args) {
  Op op;
  op.slot = slot;
  std::size_t i = 0;
  for (const std::uint64_t arg : args) op.arg[i++] = arg;
  return op;
}

/// Half of the sizes are of a few, so that freed blocks fit again.
std::uint64_t draw_size(Random& random) {
  constexpr std::array<std::uint64_t, 6> kUsual = {256, 4096, 20'000, 1 << 20, 3 << 20, 10 << 20};
  if (random.one_in(2)) return kUsual[random.below(kUsual.size())];
  return 1 + random.below(std::uint64_t{1} << (4 + random.below(20)));
}

class Drawer {
 public:
  Drawer(const AuditSort& sort, std::uint64_t seed) : sort_(sort), random_(seed) {}

  std::uint64_t stream() {
    if (sort_.has_threads && !random_.one_in(4))
      return kFirstThreadStream + random_.below(kThreads);
    return random_.below(kStreams);
  }

  Op next() {
    if (random_.one_in(12)) {
      const Op special = next_special();
      if (special.slot != slot::kNop) return special;
    }
    switch (random_.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: return allocation();
      case 5:
      case 6:
      case 7:
      case 8: return end_of(live_.empty() ? random_.below(kPointers) : take_live());
      case 9:
      case 10:
      case 11:
      case 12: return make_op(slot::kKernel, {stream(), any_live(), random_.below(3)});
      case 13:
      case 14: return make_op(slot::kStep, {stream(), 1 + random_.below(4)});
      default:
        return random_.one_in(4) ? make_op(slot::kDrain, {random_.below(sort_.devices)})
                                 : make_op(slot::kStreamCreate,
                                           {random_.below(kStreams), random_.below(sort_.devices)});
    }
  }

 private:
  /// As far as it is known here: a request may be refused, and an op may not apply.
  std::uint64_t any_live() { return live_.empty() ? 0 : live_[random_.below(live_.size())]; }
  std::uint64_t take_live() {
    std::swap(live_[random_.below(live_.size())], live_.back());
    const std::uint64_t taken = live_.back();
    live_.pop_back();
    return taken;
  }
  Op end_of(std::uint64_t pointer) const { return make_op(slot::kFree, {pointer}); }
  Op allocation() {
    std::uint64_t pointer = random_.below(kPointers);
    if (std::find(live_.begin(), live_.end(), pointer) != live_.end()) {
      if (live_.size() == kPointers) return end_of(take_live());
      pointer = 0;
      while (std::find(live_.begin(), live_.end(), pointer) != live_.end()) ++pointer;
    }
    live_.push_back(pointer);
    return make_op(slot::kAlloc, {pointer, draw_size(random_), stream()});
  }

  /// What the sort has; kNop: nothing drawn.
  Op next_special() {
    switch (random_.below(5)) {
      case 0:
        return sort_.has_deaths ? make_op(slot::kStreamDestroy, {random_.below(kStreams)}) : Op{};
      case 1: return sort_.has_threads ? make_op(slot::kThread, {random_.below(kThreads)}) : Op{};
      case 2: return sort_.has_failures ? failure() : Op{};
      case 3:
        return sort_.has_misuse ? make_op(slot::kFreeStale, {random_.below(kPointers)}) : Op{};
      default: break;
    }
    if (!sort_.has_captures) return Op{};
    const std::uint64_t captured = random_.below(kStreams);
    return random_.one_in(2) ? make_op(slot::kCaptureBegin, {captured, random_.below(3)})
                             : make_op(slot::kCaptureEnd, {captured});
  }

  Op failure() {
    constexpr std::array<ashlar::device::CallKind, 4> kKinds = {
        ashlar::device::CallKind::kSegmentAlloc, ashlar::device::CallKind::kEventCreate,
        ashlar::device::CallKind::kEventRecord, ashlar::device::CallKind::kSegmentFree};
    const auto kind = static_cast<std::uint64_t>(kKinds[random_.below(kKinds.size())]);
    return make_op(slot::kFail, {kind, 1 + random_.below(2), 0});
  }

  const AuditSort& sort_;
  Random random_;
  std::vector<std::uint64_t> live_;
};

}  // namespace

std::span<const AuditSort> audit_sorts() {
  static const std::array<AuditSort, 7> kSorts = {{
      {.name = "streams", .meaning = "work on several streams"},
      {.name = "devices", .meaning = "the same on two devices", .devices = 2},
      {.name = "threads", .meaning = "two threads and their default streams", .has_threads = true},
      {.name = "deaths", .meaning = "streams that are destroyed", .has_deaths = true},
      {.name = "shortage",
       .meaning = "a device of 64 MiB, and calls of the driver that fail",
       .has_failures = true,
       .is_small = true},
      {.name = "captures", .meaning = "captures of other streams", .has_captures = true},
      {.name = "misuse", .meaning = "blocks that are freed twice", .has_misuse = true},
  }};
  return kSorts;
}

OpFile audit_sequence(const AuditSort& sort, std::uint64_t seed, std::uint32_t ops) {
  Drawer draw(sort, seed);
  OpFile file;
  file.ops.reserve(ops + 16);
  for (std::uint64_t d = 0; d < sort.devices; ++d)
    file.ops.push_back(make_op(slot::kDevice, {d, sort.is_small ? kSmallDevice : 0}));
  file.ops.push_back(make_op(slot::kSeed, {seed % 1'000'000}));
  for (std::uint64_t s = 1; s < kStreams; ++s)
    file.ops.push_back(make_op(slot::kStreamCreate, {s, s % sort.devices}));
  for (std::uint64_t t = 0; sort.has_threads && t < kThreads; ++t) {
    file.ops.push_back(make_op(slot::kThread, {t}));
    file.ops.push_back(make_op(slot::kThreadStream, {kFirstThreadStream + t, 0}));
  }
  while (file.ops.size() < ops) file.ops.push_back(draw.next());
  return file;
}

}  // namespace ashlar::spec
