// A configuration with plain segments, for tests that count segments or stop inside the calls that take them.
// The default is pages.
//
// Thread safety: pure.
#pragma once

#include <string>

#include <ashlar/cache/config.h>

namespace ashlar::props {

/// The configuration string, with plain segments unless it sets the backing, or limits splits.
inline std::string in_segments(std::string conf) {
  for (const char* const key : {"backing:", "expandable_segments:", "max_split_size_mb:"})
    if (conf.find(key) != std::string::npos) return conf;
  return conf + (conf.empty() ? "" : ",") + "backing:segments";
}

/// The same, read.
inline cache::Config config_in_segments(const std::string& conf = "") {
  return cache::parse_config(in_segments(conf), nullptr).value();
}

}  // namespace ashlar::props
