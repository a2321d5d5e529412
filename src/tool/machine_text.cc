#include "src/tool/machine_text.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <thread>

namespace ashlar::tool {

std::string processor_text() {
  utsname system{};
  std::string name = ::uname(&system) == 0 ? system.machine : "unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) != 0 || colon == std::string::npos) continue;
    name = line.substr(colon + 2);
    break;
  }
  const unsigned threads = std::thread::hardware_concurrency();
  return threads == 0 ? name : fmt::format("{}, {} threads", name, threads);
}

std::string system_text() {
  utsname system{};
  if (::uname(&system) != 0) return "unknown system";
  return fmt::format("{} {} {}", system.sysname, system.release, system.machine);
}

std::string date_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min);
}

}  // namespace ashlar::tool
