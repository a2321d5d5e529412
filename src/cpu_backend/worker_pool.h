// The threads that share a node's work.
//
// Thread safety: run() from one thread at a time. `mutex_` guards what the workers are told.
//
// Invariants:
//   (1) run() returns once every part is done; no worker touches anything of it afterwards.
//   (2) Which thread runs which part changes no result: parts do not overlap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ashlar/base/mutex.h>
#include <ashlar/base/service_thread.h>

namespace ashlar::cpu {

class WorkerPool {
 public:
  /// With `threads` threads, the caller's among them; fewer if the host has no room for more.
  /// Throws std::bad_alloc.
  explicit WorkerPool(unsigned threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }
  /// Calls work(part) for each part below `parts`, on all threads. Never throws, if `work` does not.
  void run(unsigned parts, const std::function<void(unsigned)>& work) noexcept;

 private:
  struct Worker {
    WorkerPool* pool;
    ServiceThread thread;
    void serve() const noexcept { pool->serve(); }
  };

  void serve() noexcept;
  /// Runs parts until none is left.
  void take_parts() ASHLAR_REQUIRES(mutex_);

  Mutex mutex_;
  Condition changed_;
  const std::function<void(unsigned)>* work_ ASHLAR_GUARDED_BY(mutex_) = nullptr;
  unsigned parts_ ASHLAR_GUARDED_BY(mutex_) = 0;
  unsigned next_ ASHLAR_GUARDED_BY(mutex_) = 0;  // the part that is taken next
  unsigned done_ ASHLAR_GUARDED_BY(mutex_) = 0;
  bool is_ending_ ASHLAR_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace ashlar::cpu
