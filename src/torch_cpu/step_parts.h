// What a StepSession is made of, where a build for tests puts checkers in between.
//
// Thread safety: plain values.
#pragma once

#include <memory>

#include <ashlar/base/upstream.h>
#include <ashlar/plan/plan.h>
#include <ashlar/replay/recording.h>
#include <ashlar/replay/replay.h>

namespace ashlar::torch_cpu {

struct StepParts {
  using MakeReplay = Result<std::unique_ptr<replay::Replay>> (*)(Upstream& upstream,
                                                                 const Stream& stream,
                                                                 const replay::Recording& recording,
                                                                 const plan::Plan& plan);
  /// Makes what stands between the program and the allocator, and owns `base`; null for nothing.
  std::unique_ptr<Upstream> (*around)(std::unique_ptr<Upstream> base) = nullptr;
  /// Makes a replay; null for Replay::create.
  MakeReplay make_replay = nullptr;
};

}  // namespace ashlar::torch_cpu
