// The library's replay as the specification's ReplaySubject.
//
// Thread safety: none.
#pragma once

#include "spec/replay/replay_lockstep.h"

namespace ashlar::props {

spec::ReplayLockstep::Factory replay_factory();

}  // namespace ashlar::props
