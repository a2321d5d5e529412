// ashlar_driver_facts [--json|--markdown] [--out=FILE] [--only=PART,...] [--calls=N]
//                     [--seconds-per-case=S] [--limit=S] [--driver=LIBRARY]
//
// What the CUDA driver of this machine does, beside what the simulated GPU says that it does, and what
// its calls cost. Parts: mapping, memory, order, waiting, graphs, captures, permits, costs; all of them without
// --only. libcuda is loaded at run time. Progress goes to stderr, the tables to FILE or stdout; --out
// without a format writes FILE.md and FILE.json. --limit ends a run that a call never comes back from
// (300 s). Takes about two minutes on an idle GPU, and up to 14 GiB of its memory.
//
// Exit 0 when everything was asked, whatever the answers; 2 for a wrong flag, no libcuda or no GPU;
// 3 when a file cannot be written or the limit was reached; 4 when a call left the driver in an error.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "bench/driver/call_costs.h"
#include "bench/driver/driver_facts.h"

namespace ashlar::bench {
namespace {

struct FactsOptions {
  bool is_json = false;
  bool has_format = false;
  std::string out;
  std::string only;
  std::string library = "libcuda.so.1";
  double limit_seconds = 300;
  CostOptions costs;
};

bool parse(int argc, char** argv, FactsOptions* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const std::size_t equals = flag.find('=');
    const std::string_view name = flag.substr(0, equals);
    const std::string value(equals == std::string_view::npos ? "" : flag.substr(equals + 1));
    if (flag == "--json" || flag == "--markdown") {
      options->is_json = flag == "--json";
      options->has_format = true;
    } else if (value.empty()) {
      return false;
    } else if (name == "--out") {
      options->out = value;
    } else if (name == "--only") {
      options->only = value;
    } else if (name == "--driver") {
      options->library = value;
    } else if (name == "--calls") {
      options->costs.calls = std::strtoul(value.c_str(), nullptr, 10);
    } else if (name == "--seconds-per-case") {
      options->costs.seconds_per_case = std::strtod(value.c_str(), nullptr);
    } else if (name == "--limit") {
      options->limit_seconds = std::strtod(value.c_str(), nullptr);
    } else {
      return false;
    }
  }
  return true;
}

/// The kernel module's version: "580.1"; "unknown" where it does not say.
std::string module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    if (!word.empty() && word.find_first_not_of("0123456789.") == std::string::npos &&
        word.find('.') != std::string::npos) {
      return word;
    }
  }
  return "unknown";
}

bool write_to(const std::string& path, const DriverReport& report, bool is_json) {
  std::FILE* const out = path.empty() ? stdout : std::fopen(path.c_str(), "w");
  if (out == nullptr) return false;
  (is_json ? print_json : print_markdown)(report, out);
  if (out == stdout) return std::fflush(out) == 0;
  return std::fclose(out) == 0;
}

bool write_report(const FactsOptions& options, const DriverReport& report) {
  if (options.has_format || options.out.empty())
    return write_to(options.out, report, options.is_json);
  const bool has_markdown = write_to(options.out + ".md", report, false);
  return write_to(options.out + ".json", report, true) && has_markdown;
}

/// Ends the process when the time is over: a call that never returns cannot be ended otherwise.
void watch(double seconds) {
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    std::fprintf(stderr, "the limit of %.0f s is reached\n", seconds);
    std::_Exit(3);
  }).detach();
}

int run(int argc, char** argv) {
  FactsOptions options;
  if (!parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: ashlar_driver_facts [--json|--markdown] [--out=FILE] [--only=PART,...] "
                 "[--calls=N] [--seconds-per-case=S] [--limit=S] [--driver=LIBRARY]\n");
    return 2;
  }
  DriverSession session;
  if (const std::string why = open_session(options.library.c_str(), &session); !why.empty()) {
    std::fprintf(stderr, "ashlar_driver_facts: %s\n", why.c_str());
    return 2;
  }
  watch(options.limit_seconds);
  DriverReport report;
  report.card = session.card;
  report.version = session.version;
  report.driver = module_version();
  report.command = "ashlar_driver_facts";
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--out=", 6) != 0) report.command += std::string(" ") + argv[i];
  }
  using Part = void (*)(const DriverSession&, DriverReport*);
  const std::pair<const char*, Part> parts[] = {
      {"mapping", find_mapping_facts},   {"memory", find_memory_facts},
      {"order", find_order_facts},       {"waiting", find_waiting_facts},
      {"graphs", find_graph_facts},      {"captures", find_capture_facts},
      {"permits", find_capture_permits},
  };
  const auto wanted = [&](const char* part) {
    return options.only.empty() || options.only.find(part) != std::string::npos;
  };
  const auto is_sound = [&] { return session.cu.ctx_synchronize() == CUDA_SUCCESS; };
  for (const auto& [name, part] : parts) {
    if (!wanted(name)) continue;
    part(session, &report);
    if (!is_sound()) {
      std::fprintf(stderr, "after the part %s the driver is in an error\n", name);
      return 4;
    }
    // A later part may not come back.
    if (!options.out.empty() && !write_report(options, report)) return 3;
  }
  if (wanted("costs")) measure_costs(session, options.costs, &report);
  if (!is_sound()) return 4;
  return write_report(options, report) ? 0 : 3;
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) { return ashlar::bench::run(argc, argv); }
