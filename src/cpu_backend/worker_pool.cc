#include "src/cpu_backend/worker_pool.h"

namespace ashlar::cpu {

WorkerPool::WorkerPool(unsigned threads) {
  for (unsigned k = 1; k < threads; ++k) {
    auto worker = std::make_unique<Worker>();
    worker->pool = this;
    if (!worker->thread.start<&Worker::serve>(*worker)) break;
    workers_.push_back(std::move(worker));
  }
}

WorkerPool::~WorkerPool() {
  {
    const MutexGuard guard(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (const auto& worker : workers_) worker->thread.join();
}

void WorkerPool::run(unsigned parts, const std::function<void(unsigned)>& work) noexcept {
  if (workers_.empty() || parts <= 1) {
    for (unsigned part = 0; part < parts; ++part) work(part);
    return;
  }
  const MutexGuard guard(mutex_);
  work_ = &work;
  parts_ = parts;
  next_ = 0;
  done_ = 0;
  changed_.notify_all();
  take_parts();
  while (done_ < parts_) changed_.wait(mutex_);
  work_ = nullptr;
}

void WorkerPool::take_parts() {
  while (work_ != nullptr && next_ < parts_) {
    const unsigned part = next_++;
    const auto& work = *work_;
    mutex_.unlock();
    work(part);
    mutex_.lock();
    if (++done_ == parts_) changed_.notify_all();
  }
}

void WorkerPool::serve() noexcept {
  const MutexGuard guard(mutex_);
  while (!is_ending_) {
    take_parts();
    if (!is_ending_) changed_.wait(mutex_);
  }
}

}  // namespace ashlar::cpu
