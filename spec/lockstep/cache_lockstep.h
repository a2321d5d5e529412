// CacheLockstep: runs cache ops on a subject over a simulated machine, and has the model judge
// every answer.
//
// Purpose: the one driver behind property tests, fuzz targets, exhaustive search, regressions,
// `ashlar check` and `ashlar replay --check`. Feed it a file (run) or ops one by one (step), then
// finish.
// Thread safety: none.
//
// The world at the start: device d0, unlimited, and stream s0 on it. conf, device and seed ops come
// first; the first other op builds the machine (later ones of those three are skipped). `seed n`
// also sets the adversary's pace to n % 4.
//
// The world is a lawful caller, so every fault of the allocator's kind is the subject's:
//   - an allocation is written to by a kernel on its stream at once (Options::touch), so that early
//     reuse shows;
//   - a use by a kernel on another stream is announced at the latest when the block is freed or
//     that stream retired;
//   - stale addresses are freed again only if they have not been issued again;
//   - in a capture no event of the caller's is recorded, waited for or polled.
// An op whose names are not bound, or that a lawful caller could not make now, is skipped (Op
// invariant 2).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "spec/gpu/sim_gpu.h"
#include "spec/lockstep/name_table.h"
#include "spec/model/cache_model.h"
#include "spec/model/cache_subject.h"
#include "spec/ops/op.h"

namespace ashlar::spec {

struct LockstepResult {
  std::uint64_t ops = 0;  ///< executed
  std::uint64_t skipped = 0;
  std::uint64_t checks = 0;  ///< calls of the subject judged
  std::uint64_t walks = 0;   ///< whole-map walks among them
  std::uint32_t walk_every = 1;
  std::uint64_t ooms = 0;
  std::uint64_t caller_faults = 0;  ///< the detector's, blamed on the caller: not the subject's
  std::uint64_t address_hash = 0;   ///< C10: over (segment ordinal, offset) of every allocation
  Divergence divergence;            ///< empty: none
  std::uint64_t op_index = 0;       ///< of the divergence; ops.size() when found by finish()
  std::string op_text;
  std::string maps;  ///< model's and subject's side by side, at the divergence
  bool is_good() const { return !divergence; }
};

class CacheLockstep {
 public:
  struct Options {
    CacheFactory factory;
    std::uint32_t walk_every = 1;        ///< CacheModel::Options
    std::uint32_t validate_every = 256;  ///< likewise
    std::uint32_t stats_every = 1;       ///< likewise
    /// The frees that end a world are walked once, after the last of them. So it is anyway where
    /// walks are sparse.
    bool defers_last_walks = false;
    bool touch = true;
    SimGpuOptions machine;
  };

  explicit CacheLockstep(Options options);
  ~CacheLockstep();
  CacheLockstep(const CacheLockstep&) = delete;
  CacheLockstep& operator=(const CacheLockstep&) = delete;

  /// Runs one op. Nothing happens once there is a divergence. False then.
  bool step(const Op& op);
  /// Frees everything, drains, trims, destroys the subject and looks for leaks (C14). No step after
  /// it.
  const LockstepResult& finish();
  /// A whole file: step each, then finish.
  static LockstepResult run(const OpFile& file, const Options& options);

  const LockstepResult& result() const { return result_; }
  /// The outcome of the last op that was not skipped.
  Code outcome() const { return outcome_; }
  bool was_skipped() const { return was_skipped_; }
  /// Null before the first op that needs it.
  SimGpu* gpu() { return gpu_.get(); }
  CacheSubject* subject() { return subject_.get(); }
  CacheModel* model() { return model_.get(); }
  /// The stream of that name, until the next op; null where there is none.
  const Stream* find_stream(std::uint64_t name) {
    const std::uint32_t s = stream(name);
    return s == kNoStream ? nullptr : &streams_[s].stream;
  }

 private:
  struct Pointer {
    enum State : std::uint8_t { kUnbound, kLive, kFreed } state = kUnbound;
    std::uint32_t stream = 0;  ///< index into streams_
    std::uint64_t address = 0;
    std::uint64_t size = 0;  ///< usable
    AllocationTag tag = kNoTag;
  };
  struct StreamSlot {
    Stream stream;
    bool is_capturing = false;
  };
  struct NamedEvent {
    EventHandle event;
    DeviceId device;
    bool is_bound = false;
  };
  struct Unannounced {
    std::uint64_t pointer;
    std::uint32_t stream;
  };
  static constexpr std::uint32_t kNoStream = 0xffffffffu;
  static constexpr std::uint64_t kDevicesMax = 16;
  static constexpr std::size_t kStreamsUsual = 8;

  // cache_lockstep.cc
  void build();
  void run_op(const Op& op);
  void diverge(std::string at);
  void take_faults();
  void settle();
  void set_outcome(Status status) { outcome_ = status.code(); }
  void skip() { was_skipped_ = true; }

  // cache_world.cc: one function for each kind of op.
  bool setup_op(const Op& op);
  void memory_op(const Op& op);
  void stream_op(const Op& op);
  void device_op(const Op& op);
  void misuse_op(const Op& op);
  void expect_op(const Op& op);
  void allocate(std::uint64_t name, std::uint64_t size, std::uint32_t stream);
  void free(std::uint64_t name, std::uint32_t stream);
  void announce(const Pointer& pointer, std::uint32_t stream);
  void launch(std::uint32_t stream, std::uint64_t name, Access access);
  void end_stream(std::uint32_t stream, std::uint64_t name, bool tells);
  void begin_capture(std::uint32_t stream, device::CaptureMode mode);
  void end_capture(std::uint32_t stream);
  void user_event_op(const Op& op);
  void call_back();
  void arm_callback();
  bool any_capture() const;
  /// Index into streams_, or kNoStream.
  std::uint32_t stream(std::uint64_t name);
  bool has_device(std::uint64_t name) const { return name < witnesses_.size(); }
  static DeviceId device_id(std::uint64_t name) {
    return DeviceId{static_cast<std::int32_t>(name)};
  }

  Options options_;
  std::string conf_;
  std::unique_ptr<SimGpu> gpu_;
  std::vector<std::unique_ptr<DeviceWitness>> witnesses_;
  std::shared_ptr<CacheSubject> subject_;
  std::unique_ptr<CacheModel> model_;
  NameTable<Pointer> pointers_;
  NameTable<std::uint32_t> stream_names_;  ///< index + 1; 0 = unbound
  NameTable<NamedEvent> events_;
  std::vector<StreamSlot> streams_;
  std::vector<Unannounced> unannounced_;
  std::vector<std::uint64_t> callback_frees_;
  bool callback_allocates_ = false;
  bool has_callback_ = false;
  bool has_lost_stream_ = false;
  bool is_lagging_ = false;
  bool is_over_ = false;
  AllocationTag next_tag_ = 1;
  LockstepResult result_;
  Code outcome_ = Code::kOk;
  bool was_skipped_ = false;
};

}  // namespace ashlar::spec
