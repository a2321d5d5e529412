#include "src/tool/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

namespace ashlar::tool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kFirstAfter = std::chrono::milliseconds(500);
constexpr auto kEvery = std::chrono::milliseconds(100);
constexpr std::uint64_t kBarWidth = 30;
constexpr std::size_t kColumnsDefault = 80;

// A command is a sequence of works: the time that is shown is that of the command.
const Clock::time_point command_began = Clock::now();

bool is_terminal() {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

std::size_t columns() {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kColumnsDefault;
}

std::string elapsed_text() {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - command_began).count();
  return seconds < 60 ? fmt::format("{} s", seconds)
                      : fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
}

}  // namespace

Progress::Progress(std::string what, std::uint64_t total) : what_(std::move(what)), total_(total) {
  start();
}

Progress::Progress(std::string what, std::chrono::nanoseconds limit)
    : what_(std::move(what)), limit_(limit) {
  start();
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  thread_.join();
  erase();
}

void Progress::note(std::string text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  note_ = std::move(text);
}

std::unique_lock<std::mutex> Progress::hidden() {
  std::unique_lock<std::mutex> lock(mutex_);
  erase();
  return lock;
}

void Progress::start() {
  if (!is_terminal()) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    is_over_ = true;  // no thread, no line
  }
}

void Progress::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_over = [this] { return is_over_; };
  if (ended_.wait_until(lock, std::max(command_began + kFirstAfter, Clock::now() + kEvery),
                        is_over))
    return;
  do {
    draw();
  } while (!ended_.wait_for(lock, kEvery, is_over));
}

void Progress::draw() {
  std::uint64_t total = total_;
  std::uint64_t done = done_.load(std::memory_order_relaxed);
  if (limit_) {
    total = static_cast<std::uint64_t>(std::max<std::int64_t>(limit_->count(), 1));
    done = static_cast<std::uint64_t>((Clock::now() - start_).count());
  }
  std::string line;
  if (total > 0) {
    const double part = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
    const auto filled = static_cast<std::uint64_t>(part * kBarWidth);
    line = fmt::format("[{:#<{}}{:.<{}}] {:3}%  ", "", filled, "", kBarWidth - filled,
                       static_cast<unsigned>(100 * part));
  }
  line += fmt::format("{}  {}{}{}", elapsed_text(), what_, note_.empty() ? "" : ": ", note_);
  // A line that wraps could not be drawn over.
  line.resize(std::min(line.size(), columns() - 1));
  fmt::print(stderr, "\r\x1b[K{}", line);
  std::fflush(stderr);
  is_shown_ = true;
}

void Progress::erase() {
  if (!is_shown_) return;
  is_shown_ = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace ashlar::tool
