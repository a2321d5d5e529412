// What a page says of where and when it was made.
//
// Thread safety: pure functions of the machine.
#pragma once

#include <string>

namespace ashlar::tool {

/// The processor's name and how many of its threads run: from /proc/cpuinfo, and the architecture where that has no name.
std::string processor_text();
/// The kernel's name, release and architecture.
std::string system_text();
/// The date and time in UTC, as 2026-01-31 12:00 UTC.
std::string date_text();

}  // namespace ashlar::tool
