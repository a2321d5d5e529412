// Random sequences, and stored ones, of ops on a GPU's memory: canary_ops.h.
//
//   ashlar_gpu_canaries [--simulated] [--worlds N] [--first SEED] [--dir FOLDER]   N worlds, one of each seed
//   ashlar_gpu_canaries [--simulated] --planted NAME [--worlds N] [--first SEED]   expects one of them to find what is planted
//   ashlar_gpu_canaries [--simulated] --ops FILE                                   one sequence
//
// A world that fails ends the run with 1: its seed and its sequence are in FOLDER/canary-SEED.ops, and what failed is printed. With
// --planted the answer is 0 if a canary found it, in one of the worlds, and 1 if none did. Exit 77, with one line that says why,
// where there is no driver or no GPU; 1 too where the GPU cannot be opened; 2: usage. --simulated: over the driver's functions of a simulated GPU, which shows that the
// suite runs and finds what it should, and nothing of a driver.
#include <gtest/gtest.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "props/on_gpu/canary_ops.h"
#include "props/on_gpu/canary_sequences.h"
#include "props/on_gpu/gpu_session.h"
#include "props/on_gpu/no_gpu.h"
#include "spec/ops/text.h"

namespace ashlar::props {
namespace {

struct Options {
  bool is_simulated = false;
  std::uint64_t worlds = 150;
  std::uint64_t first = 1;
  std::string folder = ".";
  std::string file;
  Planted planted = Planted::kNothing;
};

bool read_number(const char* text, std::uint64_t* into) {
  const auto [end, failed] = std::from_chars(text, text + std::strlen(text), *into);
  return failed == std::errc() && *end == '\0';
}

bool read_planted(std::string_view text, Planted* into) {
  for (const PlantedName& each : kPlantedNames) {
    if (each.name == text) return *into = each.planted, true;
  }
  return false;
}

bool read_options(int count, char** words, Options* options) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--simulated") {
      options->is_simulated = true;
      continue;
    }
    if (++i == count) return false;
    if (word == "--worlds" && read_number(words[i], &options->worlds)) continue;
    if (word == "--first" && read_number(words[i], &options->first)) continue;
    if (word == "--planted" && read_planted(words[i], &options->planted)) continue;
    if (word == "--dir") options->folder = words[i];
    else if (word == "--ops") options->file = words[i];
    else return false;
  }
  return true;
}

/// Runs it on the GPU of this session; or, simulated, on a machine of its own, whose faults are failures too.
class Runner {
 public:
  explicit Runner(bool is_simulated) : is_simulated_(is_simulated) {}
  ~Runner() { GpuSession::close(); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  Status open(std::uint64_t seed) const {
    SimulatedMood mood;
    mood.seed = seed;
    mood.pace = static_cast<std::uint32_t>(seed % 4);
    mood.has_own_time = mood.has_pages = true;
    return GpuSession::open(is_simulated_, mood);
  }
  CanaryRun run(const spec::OpFile& file, Planted planted) {
    if (is_simulated_) {
      GpuSession::close();
      if (const Status opened = open(seed_of(file)); !opened.is_ok()) return {opened.why(), {}};
    }
    GpuSession& session = GpuSession::get();
    session.enter();
    CanaryRun run = run_canaries(session, file, planted);
    session.leave();
    const std::string faults = session.take_faults();
    if (testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed())
      run.failure += " driver: a call of the session was refused";
    if (run.failure.empty() && !faults.empty()) run.failure = "the simulated GPU: " + faults;
    return run;
  }

 private:
  const bool is_simulated_;
};

bool is_found_by_canary(const std::string& failure) {
  return failure.find("canary: ") != std::string::npos;
}

int run_worlds(Runner& runner, const Options& options) {
  CanaryCounts counts;
  std::uint64_t found = 0, other = 0;
  for (std::uint64_t seed = options.first; seed < options.first + options.worlds; ++seed) {
    const spec::OpFile file = canary_sequence(seed, options.planted);
    const CanaryRun run = runner.run(file, options.planted);
    counts += run.counts;
    if (run.failure.empty()) continue;
    if (options.planted != Planted::kNothing) {
      ++(is_found_by_canary(run.failure) ? found : other);
      if (found == 1)
        std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), run.failure.c_str());
      if (is_found_by_canary(run.failure)) break;
      continue;
    }
    const std::filesystem::path path =
        std::filesystem::path(options.folder) / ("canary-" + std::to_string(seed) + ".ops");
    std::ofstream(path) << spec::print_ops(file) << "# " << run.failure << '\n';
    std::printf("FAILED: seed %llu, %s\n%s\n", static_cast<unsigned long long>(seed), path.c_str(),
                run.failure.c_str());
    return 1;
  }
  std::cout << counts.ops << " ops (" << counts.skipped << " skipped), " << counts.fills
            << " fills, " << counts.checks << " checks, " << counts.launches
            << " launches of graphs, " << counts.moves << " moves of pages\n";
  if (options.planted == Planted::kNothing) return 0;
  std::cout << (found != 0 ? "found" : "MISSED") << "; found by others: " << other << '\n';
  return found != 0 ? 0 : 1;
}

int run_file(Runner& runner, const Options& options) {
  std::stringstream text;
  text << std::ifstream(options.file).rdbuf();
  spec::OpFile file;
  spec::TextError error;
  if (!parse_ops(text.str(), &file, &error) || file.subject != spec::Subject::kCache) {
    std::fprintf(stderr, "%s:%u: %s\n", options.file.c_str(), error.line, error.reason.c_str());
    return 2;
  }
  const CanaryRun run = runner.run(file, options.planted);
  std::printf("%s\n", run.failure.empty() ? "holds" : run.failure.c_str());
  return run.failure.empty() ? 0 : 1;
}

int run(int count, char** words) {
  Options options;
  if (!read_options(count, words, &options)) {
    std::fprintf(stderr,
                 "usage: %s [--simulated] [--worlds N] [--first SEED] [--dir FOLDER] "
                 "[--planted NAME] [--ops FILE]\n",
                 words[0]);
    return 2;
  }
  Runner runner(options.is_simulated);
  if (const Status opened = runner.open(1); !opened.is_ok())
    return end_without_gpu(opened, options.is_simulated);
  std::printf("on %s\n", GpuSession::get().name().c_str());
  return options.file.empty() ? run_worlds(runner, options) : run_file(runner, options);
}

}  // namespace
}  // namespace ashlar::props

int main(int count, char** words) { return ashlar::props::run(count, words); }
