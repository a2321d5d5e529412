// The simulator's rules, asked of a driver: each case of props/rules, and one verdict for each (spec/gpu/rules.json).
//
//   ashlar_gpu_calibrate [--out FILE]      asks the driver of this machine; FILE gets the verdicts, standard output what differs
//   ashlar_gpu_calibrate --simulated       asks the driver's functions of a simulated GPU: what can be run there has to agree
//   ashlar_gpu_calibrate --without-gpu [--out FILE]   asks nothing: every rule was never run
//
// Each case runs in a process of its own (--case PATH), because some leave the driver in an error that stays. One that is not done in
// a minute is ended, and counts as never run unless it had its verdict before. Exit 0 when all were asked, whatever the answers; 1, and
// nothing is written, where the GPU cannot be opened, and with --simulated when one differs or does not end. 77, and nothing is
// written, where there is no driver or no GPU. 2: usage, or a file that cannot be written.
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include <ashlar/cuda/cuda_device.h>
#include <ashlar/cuda/driver_lookup.h>

#include "props/on_gpu/application_functions.h"
#include "props/on_gpu/calibration.h"
#include "props/on_gpu/no_gpu.h"

namespace ashlar::props {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kCaseTimeMax{60};
constexpr const char* kTooLong = "it was not done in a minute";
constexpr const char* kNoEnd = "its process did not end in a minute";
constexpr const char* kCrashed = "its process ended without an answer";

struct Options {
  bool is_simulated = false;
  bool has_no_gpu = false;
  std::string out;
  std::string path;  ///< of a case
};

bool read_options(int count, char** words, Options* options) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--simulated") options->is_simulated = true;
    else if (word == "--without-gpu") options->has_no_gpu = true;
    else if (word == "--out" && i + 1 < count) options->out = words[++i];
    else if (word == "--case" && i + 1 < count) options->path = words[++i];
    else return false;
  }
  return true;
}

/// Reads what the process writes until it ends, or until the time is over: then it is ended, and the answer is false.
bool read_until(int from, pid_t process, Clock::time_point end, std::string* text) {
  std::array<char, 4096> some{};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waits{from, POLLIN, 0};
    if (left <= 0 || poll(&waits, 1, static_cast<int>(left)) == 0) {
      kill(process, SIGKILL);
      return false;
    }
    const ssize_t got = read(from, some.data(), some.size());
    if (got <= 0) return true;
    text->append(some.data(), static_cast<std::size_t>(got));
  }
}

/// Asks one rule in a process of its own.
void ask(const std::string& program, bool is_simulated, RuleEntry* entry) {
  const std::string path = std::string(ASHLAR_RULES_DIR "/") + entry->rule + ".ops";
  int ends[2];
  if (pipe(ends) != 0) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::string name = program, flag = "--case", of = path, mode = "--simulated";
  char* const words[] = {name.data(), flag.data(), of.data(), is_simulated ? mode.data() : nullptr,
                         nullptr};
  pid_t process = 0;
  const int failed = posix_spawn(&process, program.c_str(), &actions, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  const bool is_in_time =
      failed == 0 && read_until(ends[0], process, Clock::now() + kCaseTimeMax, &text);
  close(ends[0]);
  int status = 0;
  if (failed == 0) waitpid(process, &status, 0);
  entry->has_failed = WIFEXITED(status) && WEXITSTATUS(status) == 1;
  const std::size_t end_of_verdict = text.find('\n');
  if (end_of_verdict == std::string::npos) {
    entry->why = is_in_time ? kCrashed : kTooLong;
    return;
  }
  const std::string verdict = text.substr(0, end_of_verdict);
  for (const DriverVerdict each :
       {DriverVerdict::kAgrees, DriverVerdict::kDiffers, DriverVerdict::kNeverRun}) {
    if (verdict == verdict_name(each)) entry->verdict = each;
  }
  entry->why = text.substr(end_of_verdict + 1);
  if (!entry->why.empty()) entry->why.pop_back();  // the line's end
  if (!is_in_time && entry->why.empty()) entry->why = kNoEnd;
}

int run_case(const Options& options) {
  RuleEntry entry;
  const auto machine = run_rule_here(options.path, options.is_simulated, &entry);
  std::cout << verdict_name(entry.verdict) << '\n';
  if (!entry.why.empty()) std::cout << entry.why << '\n';
  std::cout.flush();  // before the machine's end, which a driver may not come back from
  return entry.has_failed ? 1 : 0;
}

/// What the GPU and its driver are called. Errors as CudaDevice::open().
Status name_gpu(Calibration* calibration) {
  const auto opened = cuda::CudaDevice::open(0, DeviceId{0});
  if (!opened.is_ok()) return opened.status();
  ApplicationFunctions cu;
  if (const Status loaded = cu.load(cuda::kDriverLibrary); !loaded.is_ok()) return loaded;
  std::array<char, 256> name{};
  static_cast<void>(cu.device_get_name(name.data(), static_cast<int>(name.size()), 0));
  calibration->gpu = name.data();
  std::string word;
  std::ifstream version("/proc/driver/nvidia/version");
  while (version >> word) {
    const bool is_number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (is_number && word.find('.') != std::string::npos) break;
  }
  calibration->driver = word.empty() ? "unknown" : word;
  return Status::ok();
}

int ask_all(const std::string& program, const Options& options, Calibration* calibration) {
  constexpr const char* kNoDriver = "no GPU was at hand";
  unsigned verdicts[3] = {};
  bool is_as_expected = true, has_failed = false;
  for (RuleEntry& entry : calibration->rules) {
    entry.why = options.has_no_gpu ? kNoDriver : reason_not_to_ask(entry.rule);
    if (entry.why.empty()) ask(program, options.is_simulated, &entry);
    ++verdicts[static_cast<unsigned>(entry.verdict)];
    has_failed |= entry.has_failed;
    if (entry.verdict == DriverVerdict::kDiffers || entry.why == kTooLong || entry.why == kNoEnd ||
        entry.why == kCrashed)
      is_as_expected = false;
    if (entry.verdict != DriverVerdict::kAgrees && !options.has_no_gpu)
      std::cout << entry.rule << ": " << verdict_name(entry.verdict) << ": " << entry.why << '\n';
  }
  std::cout << verdicts[0] << " rules agree, " << verdicts[1] << " differ, " << verdicts[2]
            << " were never run\n";
  if (has_failed) std::cout << "FAILED: the GPU could not be opened for each of them\n";
  return has_failed || (options.is_simulated && !is_as_expected) ? 1 : 0;
}

int run(int count, char** words) {
  Options options;
  if (!read_options(count, words, &options)) {
    std::fprintf(stderr, "usage: %s [--out FILE] [--simulated | --without-gpu]\n", words[0]);
    return 2;
  }
  if (!options.path.empty()) return run_case(options);
  Calibration calibration;
  if (options.is_simulated) calibration.gpu = "a simulated GPU";
  if (!options.is_simulated && !options.has_no_gpu) {
    if (const Status named = name_gpu(&calibration); !named.is_ok()) return end_without_gpu(named);
  }
  calibration.rules = list_rules(ASHLAR_RULES_DIR);
  const int answer = ask_all("/proc/self/exe", options, &calibration);
  if (options.out.empty() || answer != 0) return answer;
  std::ofstream out(options.out);
  out << to_json(calibration);
  out.close();
  if (out) return answer;
  std::fprintf(stderr, "%s cannot be written\n", options.out.c_str());
  return 2;
}

}  // namespace
}  // namespace ashlar::props

int main(int count, char** words) { return ashlar::props::run(count, words); }
