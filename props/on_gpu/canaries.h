// Canaries: launches the canary kernel over memory of the GPU, and collects what its checks found.
//
// Purpose: what the suites ask of real memory: are these bytes still whose they should be?
// Thread safety: one thread.
//
// Each check has a slot, a record on the GPU that it reports into. A slot is taken before the launch. Collecting gives back those that
// were taken for one check; one that was kept (for a check in a graph, which runs again and again) is given back by its taker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

#include "props/on_gpu/canary.h"
#include "props/on_gpu/gpu_session.h"
#include "spec/gpu/sim_types.h"

namespace ashlar::props {

/// Bytes and whose they are: a number from 1 to 2^32 - 1.
struct CanaryRange {
  Address at;
  Bytes size;
  std::uint64_t owner = 0;
  // What the simulated GPU's detector knows them by (spec::Touch); 0: nothing.
  spec::AllocationTag tag = spec::kNoTag;
  spec::GraphGroup group = 0;
};

class Canaries {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot kSlots = 4096;
  struct Finding {
    Slot slot = 0;
    CanaryResult result;
  };

  /// REQUIRES: the session's context is the thread's. Errors of the driver; kUnsupported: this build has no kernels.
  static Result<std::unique_ptr<Canaries>> create(GpuSession& session);
  /// REQUIRES: no canary runs.
  ~Canaries();
  Canaries(const Canaries&) = delete;
  Canaries& operator=(const Canaries&) = delete;

  /// Writes the owner's words, once it has spun. Whether the driver took it.
  bool fill(const CanaryRange& range, const Stream& on, std::uint64_t spin_ticks);
  /// A slot for a check, or none where all are taken.
  std::optional<Slot> take_slot(bool is_kept = false);
  void give_back(Slot slot);
  /// Looks for wrong words, once it has spun; `writes`: and then writes them anew.
  bool check(const CanaryRange& range, const Stream& on, std::uint64_t spin_ticks, Slot slot,
             bool writes = false);
  /// Waits for all work of the GPU, and takes what the checks found. nullopt: the driver answered with an error.
  /// REQUIRES: no stream captures.
  std::optional<std::vector<Finding>> collect();

 private:
  enum class SlotUse : std::uint8_t { kFree, kOnce, kKept };
  Canaries(GpuSession& session, cuda::Kernel kernel, Address results, const Stream& own);
  bool launch(const CanaryRange& range, spec::Access access, const Stream& on,
              std::uint64_t spin_ticks, CanaryResult* result);
  Address result_of(Slot slot) const { return results_ + Bytes{slot * sizeof(CanaryResult)}; }

  GpuSession& session_;
  const cuda::Kernel kernel_;
  const Address results_;  ///< of all slots, on the GPU
  const Stream own_;       ///< what copies them
  std::vector<SlotUse> uses_;
  Slot next_ = 0;
  std::vector<CanaryResult> host_;  ///< scratch
};

}  // namespace ashlar::props
