// See step_sequences.h.
#include "props/sequences/step_sequences.h"

#include <ashlar/device/device.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"

namespace ashlar::props {

namespace {

namespace slot = spec::slot;
using spec::Op;

constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
constexpr std::uint64_t kBlocksMax = 12;  ///< of a step
constexpr const char* kConfs[] = {"",
                                  ",reuse:own",
                                  ",wait_ms:0",
                                  ",reuse:ordered",
                                  ",headroom_mb:2",
                                  ",roundup_power2_divisions:4"};
constexpr std::uint64_t kContexts[] = {1, 2, 3, 4, 8, 64};

/// What a step does to one of its blocks; `arg` is a stream, or of a wait the number of entries.
struct StepAction {
  enum class Kind : std::uint8_t { kAlloc, kFree, kFreeOn, kKernel, kUse, kWait };
  Kind kind;
  std::uint64_t block;
  std::uint64_t arg;
};
using Kind = StepAction::Kind;

std::uint64_t pages_of(std::uint64_t size) { return (size + kPage - 1) / kPage; }

class StepWriter {
 public:
  StepWriter(const StepShape& shape, std::uint64_t seed) : shape_(shape), random_(seed) {}

  spec::OpFile write() {
    draw_step();
    const std::uint64_t context = kContexts[random_.below(std::size(kContexts))];
    std::vector<std::uint64_t> kept;
    for (std::uint64_t n = random_.below(3); n > 0; --n) kept.push_back(size());
    set_up(context, kept);
    const std::uint64_t rounds = context / sizes_.size() + 4 + random_.below(12);
    for (std::uint64_t n = 0; n < rounds; ++n) put_round(n);
    return std::move(file_);
  }

 private:
  void put(std::uint8_t s, std::array<std::uint64_t, spec::kArgsMax> arg) {
    Op op;
    op.slot = s;
    op.arg = arg;
    file_.ops.push_back(std::move(op));
  }
  std::uint64_t stream() { return random_.below(shape_.streams); }

  std::uint64_t size() {
    const std::uint64_t unit = shape_.has_large_places ? 32 * kPage : kPage;
    const std::uint64_t size = (1 + random_.below(16)) * unit;
    switch (random_.below(4)) {
      case 0: return size - random_.below(kPage);  // ends inside of a page
      case 1: return random_.one_in(3) ? 1 + random_.below(kPage) : size - kPage / 2;
      default: return size;
    }
  }

  void draw_step() {
    std::vector<std::uint64_t> live;
    const std::uint64_t blocks = 2 + random_.below(kBlocksMax - 1);
    for (std::uint64_t block = 0; block < blocks; ++block) {
      sizes_.push_back(size());
      owners_.push_back(random_.one_in(3) ? stream() : 0);
      live.push_back(block);
      add(Kind::kAlloc, block, owners_[block]);
      if (!random_.one_in(3)) add(Kind::kKernel, block, owners_[block]);
      if (shape_.streams > 1 && random_.one_in(4)) {
        const std::uint64_t user = stream();
        add(Kind::kUse, block, user);
        add(Kind::kKernel, block, user);
      }
      while (!live.empty() && random_.one_in(2)) add_free(&live);
      if (random_.one_in(6)) add(Kind::kWait, stream(), 1 + random_.below(4));
    }
    while (!live.empty()) add_free(&live);
  }
  void add(Kind kind, std::uint64_t block, std::uint64_t arg) {
    step_.push_back({kind, block, arg});
  }
  void add_free(std::vector<std::uint64_t>* live) {
    std::swap((*live)[random_.below(live->size())], live->back());
    const bool is_on_another = shape_.streams > 1 && random_.one_in(8);
    add(is_on_another ? Kind::kFreeOn : Kind::kFree, live->back(), stream());
    live->pop_back();
  }
  /// The most pages that the step's live blocks have.
  std::uint64_t peak_pages() const {
    std::uint64_t live = 0;
    std::uint64_t peak = 0;
    for (const StepAction& action : step_) {
      const bool frees = action.kind == Kind::kFree || action.kind == Kind::kFreeOn;
      if (action.kind == Kind::kAlloc) live += pages_of(sizes_[action.block]);
      if (frees) live -= pages_of(sizes_[action.block]);
      peak = std::max(peak, live);
    }
    return peak;
  }

  void set_up(std::uint64_t context, const std::vector<std::uint64_t>& kept) {
    std::uint64_t pages = peak_pages() + random_.below(4);
    for (const std::uint64_t each : kept) pages += pages_of(each);
    Op conf;
    conf.slot = slot::kConf;
    conf.text = "backing:pages";
    if (context != 64) conf.text += ",place_context:" + std::to_string(context);
    if (random_.one_in(2)) conf.text += kConfs[random_.below(std::size(kConfs))];
    file_.ops.push_back(conf);
    put(slot::kSeed, {random_.below(1000)});
    put(slot::kDevice, {0, pages * kPage});
    for (std::uint64_t s = 1; s < shape_.streams; ++s) put(slot::kStreamCreate, {s, 0});
    if (context % 2 == 0) put(slot::kHistory, {0, 32});
    for (const std::uint64_t each : kept) put(slot::kAlloc, {next_++, each, stream()});
    drains_ = random_.below(3);
  }

  /// Once the step, from its first op to its last; in some rounds something comes between.
  void put_round(std::uint64_t round) {
    std::vector<std::uint64_t> names(sizes_.size());
    const bool is_changed = round > 1 && random_.one_in(3);
    std::uint64_t interruptions = is_changed ? 1 + random_.below(3) : 0;
    const bool lacks_one = is_changed && shape_.has_changes && random_.one_in(4);
    const std::uint64_t lacking = lacks_one ? random_.below(sizes_.size()) : sizes_.size();
    const bool is_resized = is_changed && shape_.has_changes && random_.one_in(4);
    const std::uint64_t resized = is_resized ? random_.below(sizes_.size()) : sizes_.size();
    for (std::size_t i = 0; i < step_.size(); ++i) {
      const StepAction& action = step_[i];
      if (interruptions > 0 && random_.one_in((step_.size() - i) / interruptions + 1)) {
        --interruptions;
        interrupt();
      }
      const bool has_block = action.kind != Kind::kWait;
      if (has_block && action.block == lacking) continue;
      if (action.kind == Kind::kAlloc) names[action.block] = next_++;
      const std::uint64_t bytes = action.kind != Kind::kAlloc ? 0
                                  : action.block == resized   ? size()
                                                              : sizes_[action.block];
      put_action(action, has_block ? names[action.block] : 0, bytes);
    }
    end_interruption();
    if (drains_ == 0) put(slot::kDrain, {0});
    if (drains_ == 1) put(slot::kStep, {stream(), 1 + random_.below(8)});
  }
  void put_action(const StepAction& action, std::uint64_t name, std::uint64_t bytes) {
    switch (action.kind) {
      case Kind::kAlloc: return put(slot::kAlloc, {name, bytes, action.arg});
      case Kind::kFree: return put(slot::kFree, {name});
      case Kind::kFreeOn: return put(slot::kFreeOn, {name, action.arg});
      case Kind::kKernel: return put(slot::kKernel, {action.arg, name, 2});
      case Kind::kUse: return put(slot::kUse, {name, action.arg});
      case Kind::kWait: return put(slot::kStep, {action.block, action.arg});
    }
  }

  void interrupt() {
    switch (random_.below(8)) {
      case 0:
      case 1:
        if (shape_.has_changes) put_change();
        return;
      case 2:
      case 3:
        if (shape_.has_failures) put_failure();
        return;
      case 4:
        if (shape_.has_limits) {
          put(slot::kLimit, {0, random_.below(64) * kPage});
          is_limited_ = true;
        }
        return;
      case 5:
        if (!shape_.has_captures) return;
        captured_ = stream();
        put(slot::kCaptureBegin, {captured_, random_.below(3)});
        is_captured_ = true;
        return;
      case 6:
        if (shape_.has_pools) put_pool();
        return;
      default:
        if (!shape_.has_dead_streams || shape_.streams == 1) return;
        const std::uint64_t s = 1 + random_.below(shape_.streams - 1);
        put(random_.one_in(3) ? slot::kStreamDestroy : slot::kStreamRetire, {s});
        put(slot::kStreamCreate, {s, 0});
    }
  }
  void end_interruption() {
    if (is_limited_) put(slot::kLimit, {0, ~std::uint64_t{0}});
    if (is_captured_) put(slot::kCaptureEnd, {captured_});
    if (has_pool_) put(slot::kMemoryPoolEnd, {0, 0});
    if (has_pool_ && !random_.one_in(3)) put(slot::kMemoryPoolRelease, {0, 0});
    if (is_failing_) put(slot::kHeal, {});
    is_limited_ = is_captured_ = has_pool_ = is_failing_ = false;
    for (const std::uint64_t each : extra_) put(slot::kFree, {each});
    extra_.clear();
  }
  void put_change() {
    switch (random_.below(4)) {
      case 0: return put(slot::kTrim, {0});
      case 1: return put(slot::kMakeRoom, {0, random_.below(16) * kPage});
      case 2: return put(slot::kDrain, {0});
      default: return put_extra();
    }
  }
  /// A request that the step does not have.
  void put_extra() {
    put(slot::kAlloc, {next_, size(), stream()});
    extra_.push_back(next_++);
  }
  void put_failure() {
    constexpr device::CallKind kOfPages[] = {
        device::CallKind::kPageCreate, device::CallKind::kPageRelease, device::CallKind::kPageMap,
        device::CallKind::kPageAccess, device::CallKind::kPageUnmap};
    const bool is_any = random_.one_in(3);
    const std::uint64_t kind =
        is_any ? random_.below(device::kCallKinds)
               : static_cast<std::uint64_t>(kOfPages[random_.below(std::size(kOfPages))]);
    put(slot::kFail, {kind, 1 + random_.below(4), random_.below(3) / 2});
    is_failing_ = true;
    // If this has to grow, pages that it took from places are left over.
    if (random_.one_in(2)) put_extra();
  }
  void put_pool() {
    put(slot::kMemoryPoolBegin, {0, stream()});
    has_pool_ = true;
  }

  const StepShape shape_;
  spec::Random random_;
  spec::OpFile file_;
  std::vector<std::uint64_t> sizes_;   ///< of the step's blocks
  std::vector<std::uint64_t> owners_;  ///< their streams
  std::vector<StepAction> step_;
  std::uint64_t next_ = 0;
  std::uint64_t drains_ = 0;  ///< what ends a round: 0 all work, 1 some entries, 2 nothing
  std::vector<std::uint64_t> extra_;
  std::uint64_t captured_ = 0;
  bool is_captured_ = false;
  bool is_limited_ = false;
  bool has_pool_ = false;
  bool is_failing_ = false;
};

}  // namespace

StepShape step_shape_from(std::uint64_t bits) {
  StepShape shape;
  shape.has_changes = (bits & 1) != 0;
  shape.has_failures = (bits & 2) != 0;
  shape.has_limits = (bits & 4) != 0;
  shape.has_captures = (bits & 8) != 0;
  shape.has_pools = (bits & 16) != 0;
  shape.has_dead_streams = (bits & 32) != 0;
  shape.has_large_places = (bits & 64) != 0;
  shape.streams = std::min(1 + static_cast<std::uint32_t>(bits >> 7 & 3), 3u);
  return shape;
}

spec::OpFile stepping_sequence(const StepShape& shape, std::uint64_t seed) {
  return StepWriter(shape, seed).write();
}

}  // namespace ashlar::props
