#include "props/torch_cpu/checked_parts.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "props/adapters/replay_subject.h"
#include "spec/replay/replay_lockstep.h"

namespace ashlar::props {
namespace {

std::atomic<std::uint64_t> judged{0};

[[noreturn]] void end_with(const char* clause, const char* text) {
  std::fprintf(stderr, "%s: %s\n", clause, text);
  std::abort();
}

/// Judges each call to the allocator by all live addresses (C1, C2, C16).
class CheckedBase final : public Upstream {
 public:
  explicit CheckedBase(std::unique_ptr<Upstream> base) : base_(std::move(base)) {
    const char* const path = std::getenv("ASHLAR_TORCH_CPU_OPS");
    if (path == nullptr) return;
    ops_ = std::fopen(path, "w");
    if (ops_ == nullptr) end_with("ops", path);
    std::fputs("ashlar-ops 1 cache\nconf backing:segments\n", ops_);
  }
  ~CheckedBase() override {
    if (ops_ != nullptr) static_cast<void>(std::fclose(ops_));
  }
  CheckedBase(const CheckedBase&) = delete;
  CheckedBase& operator=(const CheckedBase&) = delete;

  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override {
    const std::lock_guard guard(lock_);
    ++judged;
    const Result<Address> got = base_->allocate(size, stream);
    if (!got.is_ok() || got.value().is_null()) return got;
    const Address base = got.value();
    if (base.value() % 512 != 0) end_with("C1", "an address that is not aligned to 512 bytes");
    const auto next = live_.lower_bound(base);
    if (next != live_.end() && next->first < base + size)
      end_with("C2", "an allocation overlaps a live one behind it");
    if (next != live_.begin() && std::prev(next)->first + std::prev(next)->second.size > base)
      end_with("C2", "an allocation overlaps a live one before it");
    live_[base] = {size, ++names_};
    write("alloc p%llu %llu s0\n", names_, size.count());
    return got;
  }
  Status free(Address address) noexcept override {
    const std::lock_guard guard(lock_);
    ++judged;
    const Status freed = base_->free(address);
    const auto at = live_.find(address);
    const bool is_live = at != live_.end();
    if (!address.is_null() && freed.is_ok() != is_live)
      end_with("C16", "a free was answered as if its memory were not what it is");
    if (!is_live) return freed;
    write("free p%llu\n", at->second.name);
    live_.erase(at);
    return freed;
  }
  Status record_use(Address address, const Stream& stream) noexcept override {
    return base_->record_use(address, stream);
  }

 private:
  struct Live {
    Bytes size;
    std::uint64_t name = 0;
  };
  /// Appends a line at once: a session is never destroyed.
  template <class... Numbers>
  void write(const char* format, Numbers... numbers) noexcept {
    if (ops_ == nullptr) return;
    std::fprintf(ops_, format, static_cast<unsigned long long>(numbers)...);
    std::fflush(ops_);
  }

  std::unique_ptr<Upstream> base_;
  std::mutex lock_;
  std::map<Address, Live> live_;
  std::uint64_t names_ = 0;
  std::FILE* ops_ = nullptr;
};

/// A replay in lockstep with its model (R1 to R4).
class CheckedReplay final : public replay::Replay {
 public:
  CheckedReplay(Upstream& upstream, const Stream& stream, const replay::Recording& recording,
                const plan::Plan& plan)
      : lockstep_(upstream, {stream, recording, plan}, replay_factory()) {
    judge();
  }
  // Without R5: what came from upstream through it may be live still.
  ~CheckedReplay() override = default;
  CheckedReplay(const CheckedReplay&) = delete;
  CheckedReplay& operator=(const CheckedReplay&) = delete;

  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override {
    const std::lock_guard guard(lock_);
    const Result<Address> got = lockstep_.allocate(size, stream);
    if (got.is_ok() && contains(got.value())) ++live_;
    else if (got.is_ok()) upstreams_.insert(got.value());
    judge();
    return got;
  }
  Status free(Address address) noexcept override {
    const std::lock_guard guard(lock_);
    const Status freed = lockstep_.free(address);
    if (freed.is_ok() && contains(address)) --live_;
    else if (freed.is_ok()) upstreams_.erase(address);
    judge();
    return freed;
  }
  Status record_use(Address address, const Stream& stream) noexcept override {
    const std::lock_guard guard(lock_);
    const Status noted = lockstep_.record_use(address, stream);
    judge();
    return noted;
  }
  /// Also what upstream served through it: the model has to hear of its free.
  bool owns(Address address) const noexcept override {
    const std::lock_guard guard(lock_);
    return contains(address) || upstreams_.count(address) != 0;
  }
  Status rewind() noexcept override {
    const std::lock_guard guard(lock_);
    lockstep_.rewind();
    judge();
    return Status::ok();
  }
  replay::ReplayCounts counts() const noexcept override {
    const std::lock_guard guard(lock_);
    return lockstep_.counts();
  }
  std::uint64_t live() const noexcept override {
    const std::lock_guard guard(lock_);
    return live_;
  }
  Address base() const noexcept override {
    const std::lock_guard guard(lock_);
    return lockstep_.segment();
  }
  Bytes segment_size() const noexcept override { return lockstep_.segment_size(); }

 private:
  bool contains(Address address) const {
    const Address segment = lockstep_.segment();
    return !segment.is_null() && address >= segment && address < segment + lockstep_.segment_size();
  }
  void judge() const {
    ++judged;
    const spec::Divergence& first = lockstep_.verdict().first();
    if (first) end_with(first.clause.c_str(), first.text.c_str());
  }

  mutable std::mutex lock_;
  spec::ReplayLockstep lockstep_;
  std::uint64_t live_ = 0;
  std::set<Address> upstreams_;
};

}  // namespace

torch_cpu::StepParts checked_parts() noexcept {
  torch_cpu::StepParts parts;
  parts.around = [](std::unique_ptr<Upstream> base) -> std::unique_ptr<Upstream> {
    return std::make_unique<CheckedBase>(std::move(base));
  };
  parts.make_replay = [](Upstream& upstream, const Stream& stream,
                         const replay::Recording& recording,
                         const plan::Plan& plan) -> Result<std::unique_ptr<replay::Replay>> {
    return std::unique_ptr<replay::Replay>(
        std::make_unique<CheckedReplay>(upstream, stream, recording, plan));
  };
  return parts;
}

std::uint64_t judged_calls() noexcept { return judged; }

}  // namespace ashlar::props
