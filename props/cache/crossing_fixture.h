// A simulated device whose calls run parts of the test, and an allocator on it: a second thread's
// call comes at a chosen point of the first one's.
//
// Purpose: what a call does when a capture is announced, a block taken or a device lost in its
// middle is decided at points that no test reaches by luck. A device call is such a point.
// Thread safety: in_call and the counts may be used by any thread once in_call is set; the rest by
// the test's.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "props/adapters/cache_peer.h"
#include "props/cache/liveness_fixture.h"

namespace ashlar {

using device::CallKind;

/// Calls `in_call` in each device call, once the inner device has answered.
class CrossingDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::function<void(CallKind)> in_call;
  std::uint64_t calls(CallKind kind) const { return calls_[static_cast<unsigned>(kind)]; }

 private:
  void on_answer(CallKind kind, Bytes, Code) noexcept override {
    ++calls_[static_cast<unsigned>(kind)];
    if (in_call) in_call(kind);
  }
  std::array<std::atomic<std::uint64_t>, device::kCallKinds> calls_{};
};

class CrossingTest : public ::testing::Test {
 protected:
  ~CrossingTest() override {
    join();
    if (device_ != nullptr) device_->in_call = nullptr;
  }
  void make(Bytes capacity, const char* conf = "") {
    spec::SimGpuOptions options;
    options.capacities = {capacity};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device_ = std::make_unique<CrossingDevice>(gpu_->device(0));
    device::Device* devices[] = {device_.get()};
    allocator_ = make_allocator(devices, conf);
    own_ = stream();
    captured_ = stream();
  }
  static constexpr Bytes kHeapSegment = 12_MiB;  ///< that no other request shares
  Stream stream() { return gpu_->create_stream(kDevice).value(); }
  Stream stuck_stream() {
    const Stream stuck = stream();
    EXPECT_TRUE(gpu_->host_function(stuck, flag_ = gpu_->new_flag()).is_ok());
    return stuck;
  }
  Address allocate(Bytes size, const Stream& on) {
    return allocator_->allocate(size, on).value_or(Address{});
  }
  /// So many streams, each with an idle segment of its own that is not known complete.
  void make_heaps(unsigned count, bool is_stuck) {
    std::vector<Address> blocks;
    for (unsigned i = 0; i < count; ++i)
      blocks.push_back(allocate(kHeapSegment, is_stuck ? stuck_stream() : stream()));
    // Behind all misses, which look for memory on other streams and mark those.
    for (const Address block : blocks) EXPECT_TRUE(allocator_->free(block).is_ok());
  }
  cache::SharedState& shared() { return cache::CachePeer::shared(*allocator_); }
  cache::DeviceCache& cache() { return cache::CachePeer::device(*allocator_, 0); }
  cache::StreamHeap& heap_of(const Stream& of) { return *cache().heaps().find(of.id); }

  /// Runs `piece` once: in the call that ends this row of calls from now on, others between.
  void run_in(std::vector<CallKind> row, std::function<void()> piece) {
    row_ = std::move(row);
    piece_ = std::move(piece);
    at_ = 0;
    const std::thread::id caller = std::this_thread::get_id();
    device_->in_call = [this, caller](CallKind kind) {
      if (std::this_thread::get_id() != caller || at_ == row_.size() || kind != row_[at_]) return;
      if (++at_ == row_.size()) piece_();
    };
  }
  template <class F>
  void on_another_thread(F&& call) {
    threads_.emplace_back(std::forward<F>(call));
  }
  /// Until so many threads wait for the reclaim lock, which the caller holds, and have done so for
  /// longer than a holder keeps it from them.
  void wait_for_waiters(unsigned count) {
    const cache::ReclaimLock& lock = cache().reclaimer().lock();
    while (cache::CachePeer::waiting(lock) < count) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  void begin_announcement() {
    on_another_thread([this] {
      EXPECT_TRUE(allocator_->begin_capture(captured_).is_ok());
      is_announced_ = true;
    });
    while (!shared().is_capturing()) std::this_thread::yield();
  }
  /// Another thread announces a capture. Returns when all know of it, and that thread waits for the
  /// reclaim lock, as the last of `waiters`.
  void announce(unsigned waiters = 1) {
    begin_announcement();
    wait_for_waiters(waiters);
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  /// The announcement has returned, the capture ends, and the books are in order.
  void end_capture() {
    join();
    EXPECT_TRUE(is_announced_);
    EXPECT_EQ(at_, row_.size()) << "the call in whose middle the capture comes was not made";
    EXPECT_TRUE(allocator_->end_capture(captured_).is_ok());
    EXPECT_EQ(allocator_->validate(), nullptr);
  }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<CrossingDevice> device_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  Stream own_;
  Stream captured_;
  spec::HostFlag flag_{};
  std::atomic<bool> is_announced_{false};

 private:
  std::vector<CallKind> row_;
  std::function<void()> piece_;
  std::size_t at_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace ashlar
