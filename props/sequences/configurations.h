// Random configuration strings: every key and value that the caching allocator obeys, consistent
// with each other.
//
// Thread safety: pure functions. The same numbers give the same text everywhere.
#pragma once

#include <string>

#include "spec/ops/random.h"

namespace ashlar::props {

/// The defaults, one usual setting, or any mixture of settings.
std::string random_configuration(spec::Random& random);

}  // namespace ashlar::props
