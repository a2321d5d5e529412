// Replays stored inputs through a fuzz target when no fuzzing engine is linked: ctest, with any
// compiler and sanitizer.
//
// Usage: target [-flag...] FILE-OR-FOLDER...   Flags are libFuzzer's and are ignored. Each input
// runs once, in the order of the names. Its name is printed on stderr before it runs, so that an
// input that crashes is known. Exit 1 when a path cannot be read, or when there is no input.
// Thread safety: one thread.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Null unless the target defines it.
extern "C" [[gnu::weak]] int LLVMFuzzerInitialize(int* argc, char*** argv);
// libFuzzer's own, which a target's custom mutator may call. Here it changes nothing.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t*, std::size_t size, std::size_t) {
  return size;
}

namespace {

namespace fs = std::filesystem;

bool collect(const fs::path& path, std::vector<fs::path>* inputs) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end;
         at.increment(error)) {
      if (at->is_regular_file()) inputs->push_back(at->path());
    }
    return !error;
  }
  if (!fs::is_regular_file(path, error)) return false;
  inputs->push_back(path);
  return true;
}

bool replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::fprintf(stderr, "running %s (%zu bytes)\n", path.c_str(), bytes.size());
  // An allocation of exactly the input's size: a sanitizer reports any read beyond it.
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(input.data(), input.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  std::vector<fs::path> inputs;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') continue;
    if (!collect(argv[i], &inputs)) {
      std::fprintf(stderr, "%s: cannot be read\n", argv[i]);
      return 1;
    }
  }
  std::sort(inputs.begin(), inputs.end());
  for (const fs::path& path : inputs) {
    if (!replay(path)) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 1;
    }
  }
  std::fprintf(stderr, "%zu inputs replayed\n", inputs.size());
  return inputs.empty() ? 1 : 0;
}
