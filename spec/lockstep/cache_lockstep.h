// CacheLockstep: runs cache ops on a subject over a simulated machine, and has the model judge
// every answer.
//
// Purpose: the one driver behind property tests, fuzz targets, exhaustive search, regressions,
// `ashlar check` and `ashlar replay --check`. Feed it a file (run) or ops one by one (step), then
// finish.
// Thread safety: none.
//
// The world at the start: device d0, unlimited, and stream s0 on it. The ops conf, device, seed
// and observe come first; the first other op builds the machine (later ones of those are skipped).
// `seed n` also sets the adversary's pace to n % 4. What each op does: cache_ops.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "spec/gpu/sim_gpu.h"
#include "spec/lockstep/cache_ops.h"
#include "spec/lockstep/cache_world.h"
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
  std::uint64_t caller_faults = 0;     ///< the detector's, blamed on the caller: not the subject's
  std::uint64_t planned_failures = 0;  ///< driver calls that failed because an op planned it
  std::uint64_t address_hash = 0;      ///< C10: over (segment ordinal, offset) of every allocation
  Divergence divergence;               ///< empty: none
  std::uint64_t op_index = 0;          ///< of the divergence; ops.size() when found by finish()
  std::string op_text;
  std::string maps;  ///< model's and subject's side by side, at the divergence
  bool is_good() const { return !divergence; }
};

/// Makes the devices that a subject is given, one for each of the machine's, in order. They are destroyed before the machine.
using MachineDevices = std::function<std::vector<std::unique_ptr<device::Device>>(SimGpu&)>;
/// From now on every lockstep of the process has such devices, where its options say nothing else: for programs that run the
/// suites over another implementation of Device. None: the machine's own.
void set_usual_devices(MachineDevices devices);
/// What was set.
const MachineDevices& usual_devices();

class CacheLockstep {
 public:
  struct Options {
    CacheFactory factory;
    MachineDevices devices = usual_devices();
    std::uint32_t walk_every = 1;                    ///< CacheModel::Options
    std::uint32_t validate_every = 256;              ///< likewise
    std::uint32_t stats_every = 1;                   ///< likewise
    WalkerFactory walker = make_incremental_walker;  ///< likewise
    HostRefusalCount host_refusals;                  ///< likewise
    /// Walk once after the frees that end a world, not after each. Sparse walks imply it.
    bool defers_last_walks = false;
    bool touch = true;  ///< CacheWorld: a kernel writes to every allocation at once
    SimGpuOptions machine;
  };

  explicit CacheLockstep(Options options);
  ~CacheLockstep();
  CacheLockstep(const CacheLockstep&) = delete;
  CacheLockstep& operator=(const CacheLockstep&) = delete;

  /// Runs one op; false after a divergence, and then nothing runs.
  bool step(const Op& op);
  /// A quiet point: failures are healed, captures ended, all work finished. False after a
  /// divergence.
  bool rest();
  /// The caller's own finding, by a clause's id: the divergence, unless there is one already.
  void report(const char* clause, const std::string& text);
  /// Heals failures, finishes all work, frees everything, trims, destroys the subject and looks for
  /// leaks (C14). After the op end-now it frees and destroys only: with work unfinished, and with
  /// the failures that are planned. The last call.
  const LockstepResult& finish();
  /// A whole file: step each, then finish.
  static LockstepResult run(const OpFile& file, const Options& options);

  const LockstepResult& result() const { return result_; }
  /// The outcome of the last op that was not skipped.
  Code outcome() const { return world_ == nullptr ? Code::kOk : world_->outcome(); }
  bool was_skipped() const { return was_skipped_; }
  /// Null before the first op that needs it.
  SimGpu* gpu() { return gpu_.get(); }
  CacheSubject* subject() { return subject_.get(); }
  CacheModel* model() { return model_.get(); }
  /// The stream of that name, until the next op; null where there is none.
  const Stream* find_stream(std::uint64_t name) {
    const std::uint32_t s = world_ == nullptr ? kNoStream : world_->stream(name);
    return s == kNoStream ? nullptr : &world_->stream_at(s);
  }

 private:
  void build();
  /// `made`: the subject's answer to the configuration; `asked`: the judge's own reading of it.
  void judge_settings(Status made, const std::optional<cache::Config>& asked);
  void diverge(std::string at);
  /// Has the world and the model follow what happens to memory.
  void observe_mappings();
  /// DEV-18, of each device whose history is on.
  void follow_histories();
  /// Reports what the machine blames on the subject. Returns the calls after the driver's unloading.
  std::uint64_t take_faults();
  void quiesce();
  void settle();
  void free_all();
  void trim_all();
  void judge_destructor();
  /// What the subject's destructor did to a device; `may_keep`: whether failures were planned.
  void judge_end_of(std::uint32_t device, std::uint64_t calls_before, bool may_keep);

  Options options_;
  WorldPlan plan_;
  std::unique_ptr<SimGpu> gpu_;
  std::vector<std::unique_ptr<device::Device>> devices_;  ///< over the machine's; none: these
  std::vector<std::unique_ptr<DeviceWitness>> witnesses_;
  std::vector<std::unique_ptr<GrowthSource>> sources_;  ///< of memory pools, one for each device
  std::shared_ptr<CacheSubject> subject_;
  std::unique_ptr<CacheModel> model_;
  std::unique_ptr<CacheWorld> world_;
  /// This, for the subject's observer of mappings, which may outlive it with the subject.
  std::shared_ptr<CacheLockstep*> self_ = std::make_shared<CacheLockstep*>(this);
  bool is_over_ = false;
  bool was_skipped_ = false;
  bool ends_now_ = false;  ///< the op end-now was run
  LockstepResult result_;
};

}  // namespace ashlar::spec
