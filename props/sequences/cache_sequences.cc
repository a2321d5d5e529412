// See cache_sequences.h.
#include "props/sequences/cache_sequences.h"

#include <ashlar/device/device.h>

#include <algorithm>
#include <vector>

#include "props/adapters/caching_allocator_subject.h"
#include "props/sequences/configurations.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/bytes.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"
#include "spec/ops/text.h"
#include "spec/reduce/reduce.h"

namespace ashlar::props {

namespace {

namespace slot = spec::slot;
using spec::Op;

/// A larger device allows larger segments, whose entries in the page map take long to write.
constexpr std::uint64_t kCapacityMax = std::uint64_t{64} << 30;

class Writer {
 public:
  Writer(const SequenceShape& shape, std::uint64_t seed) : shape_(shape), random_(seed) {}

  spec::OpFile write() {
    put(slot::kConf, {});
    std::string& conf = file_.ops.back().text;
    if (!shape_.has_collections && shape_.has_conf) {
      conf = random_configuration(random_);
    } else {
      conf = random_.one_in(2) ? "backing:segments" : "backing:auto";
      if (shape_.has_collections)
        conf += random_.one_in(2) ? ",garbage_collection_threshold:0.3"
                                  : ",garbage_collection_threshold:0.6";
    }
    put(slot::kSeed, {random_.below(1000)});
    // An allocator with an observer of mappings makes no loans (place_loan.h).
    observes_ = shape_.has_pins && random_.one_in(2);
    if (observes_) put(slot::kObserve, {});
    for (std::uint32_t d = 0; d < shape_.devices; ++d) {
      const std::uint64_t capacity = shape_.has_capacity ? (random_.below(6) + 2) * (16u << 20) : 0;
      put(slot::kDevice, {d, capacity});
    }
    for (std::uint32_t s = 1; s < shape_.streams; ++s)
      put(slot::kStreamCreate, {s, random_.below(shape_.devices)});
    if (shape_.has_threads) put_threads();
    if (shape_.has_collections) {
      for (std::uint32_t d = 0; d < shape_.devices; ++d) put_limit(d);
    }
    for (std::uint32_t i = 0; i < shape_.ops; ++i) put_any();
    if ((shape_.has_failures || shape_.has_ends) && random_.one_in(3)) put(slot::kEndNow, {});
    return std::move(file_);
  }

 private:
  void put(std::uint8_t s, std::array<std::uint64_t, spec::kArgsMax> arg) {
    Op op;
    op.slot = s;
    op.arg = arg;
    file_.ops.push_back(std::move(op));
  }
  /// The default streams of two threads, of which the second acts.
  void put_threads() {
    for (std::uint64_t thread = 1; thread <= 2; ++thread) {
      put(slot::kThread, {thread});
      put(slot::kThreadStream, {shape_.streams++, device()});
    }
  }
  std::uint64_t stream() { return random_.below(shape_.streams); }
  std::uint64_t device() { return random_.below(shape_.devices); }
  std::uint64_t pick() { return live_[random_.below(live_.size())]; }

  std::uint64_t size() {
    if (random_.one_in(400))
      return (std::uint64_t{1} << (30 + random_.below(7))) + random_.below(3);
    switch (random_.below(8)) {
      case 0: return 1 + random_.below(512);
      case 1:
      case 2: return 1 + random_.below(16u << 10);
      case 3: return 1 + random_.below(1u << 20);
      case 4: return (1u << 20) + random_.below(3);
      case 5: return 1 + random_.below(10u << 20);
      case 6: return 1 + random_.below(24u << 20);
      default: return (std::uint64_t{1} << (9 + random_.below(16))) + random_.below(3) - 1;
    }
  }

  void put_alloc() { put_alloc_on(stream()); }
  void put_alloc_on(std::uint64_t s) {
    put(slot::kAlloc, {next_, size(), s});
    live_.push_back(next_++);
  }
  void put_free() {
    const std::size_t at = random_.below(live_.size());
    const std::uint64_t p = live_[at];
    live_[at] = live_.back();
    live_.pop_back();
    if (random_.one_in(6)) put(slot::kFreeOn, {p, stream()});
    else put(slot::kFree, {p});
    freed_.push_back(p);
  }

  void put_failure() {
    const std::uint64_t kind = random_.below(device::kCallKinds);
    const std::uint64_t n = 1 + random_.below(4);
    const std::uint64_t mode = random_.below(3) / 2;
    if (!random_.one_in(3)) return put(slot::kFail, {kind, n, mode});
    put(slot::kFailAs, {kind, n, mode, random_.below(spec::kFailureCodes.size())});
  }

  void put_query() {
    switch (random_.below(4)) {
      case 0: return put(slot::kResetPeaks, {device()});
      case 1: return put(slot::kResetTotals, {device()});
      default: return put(slot::kLargest, {stream()});
    }
  }

  void put_rare() {
    switch (random_.below(12)) {
      case 0:
        if (shape_.has_ends && random_.one_in(16))
          return random_.one_in(2) ? put(slot::kTeardown, {}) : put(slot::kLose, {device()});
        return put(slot::kTrim, {device()});
      case 1: return put(slot::kRecord, {random_.below(4), stream()});
      case 2: return put(slot::kWait, {stream(), random_.below(4)});
      case 3: return put(slot::kSync, {random_.below(4)});
      case 4: return put_query();
      case 5:
        if (random_.one_in(4)) return put(slot::kProcess, {device()});
        if (random_.one_in(2)) return put(slot::kHistory, {device(), random_.below(40)});
        if (random_.one_in(4)) return put(slot::kMakeRoom, {device(), random_.below(64) << 20});
        if (shape_.has_capacity && random_.one_in(4))
          return put(slot::kAddresses, {device(), random_.below(16) * (16u << 20)});
        if (shape_.has_capacity)
          put(slot::kLimit,
              {device(), random_.one_in(2) ? ~std::uint64_t{0}
                                           : random_.below(random_.one_in(3) ? 512 : 64) << 20});
        return;
      case 6:
        if (!shape_.has_failures) return;
        if (random_.one_in(3)) return put(slot::kHeal, {});
        return put_failure();
      case 7:
        if (shape_.has_captures && random_.one_in(4))
          return put(random_.one_in(2) ? slot::kCaptureWait : slot::kCaptureBody,
                     {stream(), stream()});
        if (shape_.has_captures)
          put(random_.one_in(2) ? slot::kCaptureBegin : slot::kCaptureEnd,
              {stream(), random_.below(3)});
        return;
      case 8:
        if (!shape_.has_misuse || freed_.empty()) return;
        if (random_.one_in(4)) return put(slot::kFreeForeign, {random_.below(3000)});
        if (random_.one_in(3))
          return put(slot::kUseStale, {freed_[random_.below(freed_.size())], stream()});
        return put(slot::kFreeStale, {freed_[random_.below(freed_.size())]});
      case 9:
        if (shape_.has_misuse && !live_.empty())
          put(slot::kFreeInterior, {pick(), 1 + random_.below(1u << 20)});
        return;
      case 10: {
        if (!shape_.has_dead_streams) return;
        const std::uint64_t s = stream();
        if (shape_.has_misuse && random_.one_in(4))
          return put(slot::kNameDead, {s, random_.below(4)});
        put(random_.one_in(3) ? slot::kStreamDestroy : slot::kStreamRetire, {s});
        return put(slot::kStreamCreate, {s, device()});
      }
      default:
        if (!shape_.has_callbacks) return;
        if (live_.empty() || random_.one_in(4)) return put(slot::kOnOutOfMemoryAlloc, {});
        return put(slot::kOnOutOfMemory, {pick()});
    }
  }

  /// The last release of a memory pool whose work may be in flight; another stream is short of memory at
  /// once, and between two ops what is known to be done may be asked.
  void put_released_pool() {
    const std::uint64_t pool = 2 + random_.below(2);  // no other ops use it
    const std::uint64_t s = stream();
    const std::uint64_t d = device();
    const std::uint64_t size = (1 + random_.below(30)) << 20;
    const bool has_graph = !random_.one_in(4);
    const auto maybe_ask = [&] {
      if (random_.one_in(3)) put(slot::kTrim, {d});
      else if (random_.one_in(3)) put(slot::kDrain, {d});
      else if (random_.one_in(3)) put_short(d, size);
    };
    put(slot::kMemoryPoolBegin, {pool, s});
    if (has_graph) put(slot::kCaptureBegin, {s, random_.below(3)});
    put(slot::kAlloc, {next_, size, s});
    if (has_graph) put(slot::kCaptureEnd, {s});
    put(slot::kMemoryPoolEnd, {pool, d});
    maybe_ask();
    put(slot::kFree, {next_++});
    maybe_ask();
    put(slot::kMemoryPoolReplay, {pool, stream()});
    if (random_.one_in(2)) put(slot::kStep, {s, 1 + random_.below(6)});
    if (random_.one_in(4)) maybe_ask();
    put(slot::kMemoryPoolRelease, {pool, d});
    put_short(d, size);
  }
  /// The device's other memory does not serve an allocation.
  void put_short(std::uint64_t d, std::uint64_t size) {
    put(slot::kLimit, {d, std::uint64_t{1} << 20});
    put(slot::kAlloc, {next_, size - random_.below(1000), stream()});
    live_.push_back(next_++);
    put(slot::kLimit, {d, ~std::uint64_t{0}});
  }

  /// Another stream joins the capture of s and uses its memory, which is freed and asked for again.
  void put_forked_work(std::uint64_t s) {
    const std::uint64_t forked = stream();
    const std::uint64_t size = (1 + random_.below(20)) << 20;
    put(slot::kAlloc, {next_, size, s});
    put(slot::kCaptureWait, {forked, s});
    put(slot::kKernel, {forked, next_, random_.below(3)});
    if (random_.one_in(2)) put(slot::kUse, {next_, forked});
    put(slot::kFree, {next_++});
    if (random_.one_in(2)) put(slot::kCaptureWait, {s, forked});
    put(slot::kAlloc, {next_, size, s});
    live_.push_back(next_++);
  }

  /// The body of a conditional in the capture of s: it frees what is live, asks for as much, and may have a body
  /// inside.
  void put_body(std::uint64_t s, unsigned depth) {
    const std::uint64_t body = stream();
    const std::uint64_t size = (1 + random_.below(20)) << 20;
    const std::uint64_t shared = next_++;
    put(slot::kAlloc, {shared, size, s});
    put(slot::kCaptureBody, {body, s});
    for (std::uint64_t n = 1 + random_.below(5); n > 0; --n) {
      switch (random_.below(6)) {
        case 0: put(slot::kFree, {shared}); break;
        case 1:
          if (!live_.empty()) put_free();
          break;
        case 2:
          put(slot::kKernel,
              {body, live_.empty() || random_.one_in(2) ? shared : pick(), random_.below(3)});
          break;
        case 3:
          if (depth != 0) put_body(body, depth - 1);
          break;
        case 4: put_alloc_on(body); break;
        default: put(slot::kAlloc, {next_, size, body}); live_.push_back(next_++);
      }
    }
    if (!random_.one_in(8)) put(slot::kCaptureEnd, {body});
    if (random_.one_in(2)) put(slot::kKernel, {s, shared, random_.below(3)});
    if (random_.one_in(2)) put(slot::kFree, {shared});
    else live_.push_back(shared);
  }

  /// A memory pool's life is many ops long: its end is rarer than its beginning.
  void put_pool() {
    if (random_.one_in(6)) return put_released_pool();
    const std::uint64_t pool = random_.below(2);
    if (random_.one_in(4)) {
      const std::uint64_t checkpoint = random_.below(2);
      if (random_.one_in(2)) return put(slot::kRestore, {checkpoint});
      return put(slot::kCheckpoint, {checkpoint, pool, device()});
    }
    if (random_.one_in(10)) return put(slot::kMemoryPoolCreate, {pool, device(), random_.below(8)});
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2: return put(slot::kMemoryPoolBegin, {pool, stream()});
      case 3:
      case 4: return put(slot::kMemoryPoolEnd, {pool, device()});
      case 5: return put(slot::kMemoryPoolRetain, {pool, device()});
      case 6:
      case 7: return put(slot::kMemoryPoolRelease, {pool, device()});
      case 8: {  // a graph whose memory is all of the pool
        const std::uint64_t s = stream();
        put(slot::kMemoryPoolBegin, {pool, s});
        put(slot::kCaptureBegin, {s, random_.below(3)});
        if (random_.one_in(2)) put_forked_work(s);
        for (std::uint64_t n = random_.below(3); n > 0; --n) put_body(s, 2);
        for (std::uint64_t n = 1 + random_.below(4); n > 0; --n) put_alloc_on(s);
        put(slot::kCaptureEnd, {s});
        return put(slot::kMemoryPoolEnd, {pool, device()});
      }
      default:
        if (random_.one_in(3)) return put(slot::kMemoryPoolReplay, {pool, stream()});
        if (random_.one_in(2))
          return put(slot::kMemoryPoolLaunchRuns,
                     {pool, random_.below(4), stream(), random_.below(std::uint64_t{1} << 16)});
        return put(slot::kMemoryPoolLaunch, {pool, random_.below(4), stream()});
    }
  }

  /// Pins outlive their allocations, and sends come again and again from where memory was before.
  void put_pin() {
    const std::uint64_t name = random_.below(6);
    if (random_.one_in(3)) return put(slot::kUnpin, {name});
    if (shape_.has_misuse && !freed_.empty() && random_.one_in(8))
      return put(slot::kPinStale, {freed_[random_.below(freed_.size())]});
    if (live_.empty()) return;
    switch (random_.below(observes_ ? 8 : 3)) {
      case 0:
      case 1: return put(slot::kPin, {pick(), name});
      case 2: return put(slot::kGeneration, {pick()});
      case 3: return put(slot::kRegister, {pick()});
      case 4: return put(random_.one_in(4) ? slot::kDeregister : slot::kSend, {pick()});
      default: return put(slot::kSend, {pick()});
    }
  }
  void put_limit(std::uint64_t d) { put(slot::kLimit, {d, (60 + random_.below(400)) << 20}); }
  /// Large segments that become idle, then a request that none of them can serve.
  void put_collection() {
    const std::uint64_t s = stream();
    const std::uint64_t first = next_;
    for (std::uint64_t n = 1 + random_.below(4); n > 0; --n)
      put(slot::kAlloc, {next_++, (11 + random_.below(30)) << 20, s});
    for (std::uint64_t p = first; p < next_; ++p) {
      if (random_.one_in(4)) live_.push_back(p);
      else put(slot::kFree, {p});
    }
    if (!random_.one_in(3)) put(slot::kDrain, {device()});
    if (random_.one_in(6)) put_limit(device());
    put(slot::kAlloc, {next_, (41 + random_.below(20)) << 20, random_.one_in(3) ? stream() : s});
    put(slot::kFree, {next_++});
    if (!random_.one_in(3)) put(slot::kDrain, {device()});
  }

  void put_any() {
    if (shape_.has_collections && random_.one_in(10)) return put_collection();
    if (shape_.has_pools && random_.one_in(12)) return put_pool();
    if (shape_.has_pins && random_.one_in(8)) return put_pin();
    if (shape_.has_threads && random_.one_in(20)) return put(slot::kThread, {1 + random_.below(2)});
    const std::uint64_t r = random_.below(100);
    if (live_.empty() || (r < 40 && live_.size() < shape_.live_max)) return put_alloc();
    if (r < 72) return put_free();
    if (r < 78) return put(slot::kUse, {pick(), stream()});
    if (r < 84) return put(slot::kKernel, {stream(), pick(), random_.below(3)});
    if (r < 92) return put(slot::kStep, {stream(), 1 + random_.below(6)});
    if (r < 94) return put(slot::kDrain, {device()});
    put_rare();
  }

  SequenceShape shape_;
  spec::Random random_;
  spec::OpFile file_;
  std::vector<std::uint64_t> live_;
  std::vector<std::uint64_t> freed_;
  std::uint64_t next_ = 0;
  bool observes_ = false;  ///< the subject has an observer of mappings
};

}  // namespace

SequenceShape shape_from(std::uint64_t bits) {
  SequenceShape shape;
  shape.has_capacity = (bits & 1) != 0;
  shape.has_failures = (bits & 2) != 0;
  shape.has_captures = (bits & 4) != 0;
  shape.has_misuse = (bits & 8) != 0;
  shape.has_dead_streams = (bits & 16) != 0;
  shape.has_callbacks = (bits & 32) != 0;
  shape.has_conf = (bits & 64) != 0;
  shape.devices = (bits & 128) != 0 ? 2 : 1;
  shape.has_ends = (bits & 256) != 0;
  shape.has_threads = (bits & 512) != 0;
  shape.has_pools = (bits & 1024) != 0;
  shape.has_collections = (bits & 2048) != 0;
  shape.has_pins = (bits & 4096) != 0;
  return shape;
}

SequenceShape any_shape(std::uint64_t seed) { return shape_from(spec::Random(seed).below(8192)); }

spec::OpFile random_sequence(const SequenceShape& shape, std::uint64_t seed) {
  return Writer(shape, seed).write();
}

void byte_sequence(std::span<const std::uint8_t> bytes, std::size_t ops_max, spec::OpFile* file) {
  spec::decode_ops(spec::Subject::kCache, bytes, file, ops_max);
  std::size_t first = 0;
  std::uint64_t last_device = 0;
  for (; first < file->ops.size(); ++first) {
    const Op& op = file->ops[first];
    if (op.slot == slot::kDevice) last_device = std::max(last_device, op.arg[0]);
    if (op.slot != slot::kConf && op.slot != slot::kDevice && op.slot != slot::kSeed &&
        op.slot != slot::kObserve)
      break;
  }
  for (Op& op : file->ops) {
    const bool is_capacity = op.slot == slot::kDevice || op.slot == slot::kCapacity;
    if (is_capacity && (op.arg[1] == 0 || op.arg[1] > kCapacityMax)) op.arg[1] = kCapacityMax;
  }
  Op device;
  device.slot = slot::kDevice;
  device.arg = {0, kCapacityMax, 0, 0};
  file->ops.insert(file->ops.begin(), device);
  ++first;
  Op streams[kOpsAdded - 1];
  for (std::uint64_t s = 0; s < std::size(streams); ++s) {
    streams[s].slot = slot::kStreamCreate;
    streams[s].arg = {s + 1, s + 1 == std::size(streams) ? last_device : 0};
  }
  file->ops.insert(file->ops.begin() + static_cast<std::ptrdiff_t>(first), std::begin(streams),
                   std::end(streams));
}

std::string judge_sequence(const spec::OpFile& file) {
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  const spec::LockstepResult result = spec::CacheLockstep::run(file, options);
  if (result.is_good()) return {};
  const spec::Reduction reduced = spec::reduce_ops(file, [&](const spec::OpFile& ops) {
    return spec::CacheLockstep::run(ops, options).divergence.clause;
  });
  const spec::LockstepResult again = spec::CacheLockstep::run(reduced.file, options);
  return again.divergence.clause + ": " + again.divergence.text + "\nat " + again.op_text + "\n" +
         spec::print_ops(reduced.file) + again.maps;
}

}  // namespace ashlar::props
