#include "src/tool/signals.h"

#include <unistd.h>

#include <array>
#include <csignal>

namespace ashlar::tool {
namespace {

// What a handler reads: lock-free atomics, so that it may.
std::array<std::atomic<const char*>, kTemporariesMax> temporaries{};
std::atomic<bool> is_stop_wanted{false};
std::atomic<bool> is_stop_possible{false};
static_assert(std::atomic<const char*>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int number) {
  const bool asks = number == SIGINT || number == SIGTERM;
  if (asks && is_stop_possible.load() && !is_stop_wanted.exchange(true)) return;
  for (const auto& temporary : temporaries) {
    if (const char* const path = temporary.load()) ::unlink(path);
  }
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

void handle_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction before {};
    if (::sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, nullptr);
  }
}

void TemporaryName::set(std::string path) {
  clear();
  path_ = std::move(path);
  for (auto& temporary : temporaries) {
    const char* none = nullptr;
    if (temporary.compare_exchange_strong(none, path_.c_str())) return;
  }
}

void TemporaryName::clear() {
  for (auto& temporary : temporaries) {
    const char* mine = path_.c_str();
    temporary.compare_exchange_strong(mine, nullptr);
  }
  path_.clear();
}

StopOnSignal::StopOnSignal() {
  is_stop_wanted = false;
  is_stop_possible = true;
}

StopOnSignal::~StopOnSignal() { is_stop_possible = false; }

const std::atomic<bool>& StopOnSignal::flag() const { return is_stop_wanted; }

}  // namespace ashlar::tool
