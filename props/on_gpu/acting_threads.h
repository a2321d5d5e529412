// ActingThreads: calls made by one of several host threads, while the one that asks waits.
//
// Purpose: what a driver makes depend on the calling thread: capture modes, default streams.
// Thread safety: one thread asks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace ashlar::props {

class ActingThreads {
 public:
  /// From now on thread n calls. 0: the one that asks.
  void act_as(std::uint32_t n) { acting_ = n; }
  /// Makes the call on the acting thread.
  template <class Call>
  auto run(Call&& call) {
    if (acting_ == 0) return call();
    std::optional<decltype(call())> answer;
    auto& worker = workers_[acting_];
    if (worker == nullptr) worker = std::make_unique<Worker>();
    worker->run([&] { answer.emplace(call()); });
    return std::move(*answer);
  }

 private:
  class Worker {
   public:
    Worker() : thread_([this] { serve(); }) {}
    ~Worker() {
      run([this] { is_over_ = true; });
      thread_.join();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void run(const std::function<void()>& job) {
      std::unique_lock<std::mutex> lock(mutex_);
      job_ = &job;
      changed_.notify_all();
      changed_.wait(lock, [this] { return job_ == nullptr; });
    }

   private:
    void serve() {
      std::unique_lock<std::mutex> lock(mutex_);
      while (!is_over_) {
        changed_.wait(lock, [this] { return job_ != nullptr; });
        (*job_)();
        job_ = nullptr;
        changed_.notify_all();
      }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void()>* job_ = nullptr;
    bool is_over_ = false;
    std::thread thread_;
  };

  std::uint32_t acting_ = 0;
  std::map<std::uint32_t, std::unique_ptr<Worker>> workers_;
};

}  // namespace ashlar::props
