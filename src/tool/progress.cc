#include "src/tool/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace ashlar::tool {
namespace {

constexpr auto kFirstAfter = std::chrono::milliseconds(500);
constexpr auto kEvery = std::chrono::milliseconds(100);
constexpr std::uint64_t kWidth = 30;

}  // namespace

Progress::Progress(std::string what, std::uint64_t total)
    : what_(std::move(what)),
      total_(std::max<std::uint64_t>(total, 1)),
      is_terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (is_shown_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::show(std::uint64_t done) {
  const auto now = std::chrono::steady_clock::now();
  if (now - start_ < kFirstAfter || now - last_ < kEvery) return;
  last_ = now;
  is_shown_ = true;
  const std::uint64_t part = std::min(done, total_);
  const std::uint64_t filled = part * kWidth / total_;
  fmt::print(stderr, "\r\x1b[K[{:#<{}}{:.<{}}] {:3}% {}", "", filled, "", kWidth - filled,
             part * 100 / total_, what_);
  std::fflush(stderr);
}

}  // namespace ashlar::tool
