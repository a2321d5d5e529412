// Signals that end the command: SIGINT (Ctrl-C), SIGTERM, SIGHUP and SIGPIPE. Temporary files are
// removed, and the process then ends by the same signal, so that a shell sees 128 + its number.
// While a StopOnSignal lives, the first SIGINT or SIGTERM only asks the work to stop.
//
// Thread safety: one thread; handlers touch atomics alone.
#pragma once

#include <atomic>
#include <string>

namespace ashlar::tool {

/// Installs the handlers, but for signals that are ignored (nohup).
void handle_signals();

/// A file that is removed if a signal ends the process. Registers at most kTemporariesMax at a time;
/// further ones are not removed.
class TemporaryName {
 public:
  TemporaryName() = default;
  ~TemporaryName() { clear(); }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  void set(std::string path);
  /// Forgets the file, which is not removed here.
  void clear();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};
inline constexpr unsigned kTemporariesMax = 8;

/// Makes the first SIGINT or SIGTERM set a flag. A second one ends the process. One at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  /// True from the signal on.
  const std::atomic<bool>& flag() const;
};

}  // namespace ashlar::tool
