// A second thread that sleeps for as long as the object lives.
//
// Purpose: the C library leaves out the atomic operations of a mutex, and its heap's lock, while a
// process has a single thread; so a benchmark would run faster alone than after another one that
// has started a thread. With this thread every benchmark runs under the conditions of a program
// with threads, whichever others run before it.
// Thread safety: none; the object belongs to the thread that made it.
#pragma once

#include <semaphore>
#include <thread>

namespace ashlar::bench {

class SleepingThread {
 public:
  SleepingThread() : thread_([this] { end_.acquire(); }) {}
  ~SleepingThread() {
    end_.release();
    thread_.join();
  }
  SleepingThread(const SleepingThread&) = delete;
  SleepingThread& operator=(const SleepingThread&) = delete;

 private:
  std::binary_semaphore end_{0};
  std::thread thread_;
};

}  // namespace ashlar::bench
