// ops_to_bytes OUT_DIR SUBJECT PATH...: makes a fuzzer's seed corpus. Writes to OUT_DIR the byte
// form of every `.ops` file of that SUBJECT (pool, cache, gpu) at or under the paths, one file
// each. Exit codes: 0 done, 2 wrong usage, 3 a file cannot be read or written.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "spec/ops/bytes.h"
#include "spec/ops/text.h"

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> ops_files(char** begin, char** end) {
  std::vector<fs::path> files;
  for (char** path = begin; path != end; ++path) {
    std::error_code error;
    if (!fs::is_directory(*path, error)) {
      files.emplace_back(*path);
      continue;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(*path, error)) {
      if (entry.path().extension() == ".ops") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool convert(const fs::path& from, const std::string& subject, const fs::path& to_dir) {
  std::ifstream in(from, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.is_open() || in.bad()) {
    std::fprintf(stderr, "%s: cannot be read\n", from.c_str());
    return false;
  }
  ashlar::spec::OpFile file;
  ashlar::spec::TextError error;
  if (!ashlar::spec::parse_ops(text, &file, &error)) {
    std::fprintf(stderr, "%s:%u: %s\n", from.c_str(), error.line, error.reason.c_str());
    return false;
  }
  if (ashlar::spec::subject_name(file.subject) != subject) return true;
  const std::vector<std::uint8_t> bytes = ashlar::spec::encode_ops(file);
  std::string name = from.parent_path().filename().string() + "-" + from.stem().string();
  std::ofstream out(to_dir / name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) std::fprintf(stderr, "%s: cannot be written\n", (to_dir / name).c_str());
  return static_cast<bool>(out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: ops_to_bytes OUT_DIR pool|cache|gpu FILE_OR_DIR...\n");
    return 2;
  }
  std::error_code error;
  fs::create_directories(argv[1], error);
  bool is_good = true;
  for (const fs::path& file : ops_files(argv + 3, argv + argc))
    is_good = convert(file, argv[2], argv[1]) && is_good;
  return is_good ? 0 : 3;
}
