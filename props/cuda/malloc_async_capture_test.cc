// A capture that begins while another thread gives memory back to the driver's pool (`backend:cudaMallocAsync`; C9, DEV-22).
//
// Imitates: a capture that is announced at the first moment at which a call lets other threads in. Does not prove: every such
// moment.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include <ashlar/ashlar.h>
#include <ashlar/device/forwarding_device.h>

#include "spec/gpu/sim_gpu.h"

namespace ashlar {
namespace {

constexpr DeviceId kOnlyDevice{0};

/// At the first free of a segment announces a capture on another thread, and counts what the device is asked from then on.
class CaptureAtFree final : public device::ForwardingDevice {
 public:
  CaptureAtFree(device::Device& inner, const Stream& captured)
      : ForwardingDevice(inner), captured_(captured) {}
  ~CaptureAtFree() override { join(); }

  void arm(CachingAllocator& allocator) { allocator_ = &allocator; }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  void end_capture() {
    join();
    is_announced_ = false;
  }
  unsigned trims() const { return trims_; }
  unsigned relaxed_trims() const { return relaxed_trims_; }
  unsigned asked() const { return asked_; }
  bool has_begun() const { return is_announced_; }

  Status segment_free(Address base) noexcept override {
    let_capture_begin();
    return ForwardingDevice::segment_free(base);
  }
  Status stream_free(Address base, StreamHandle stream) noexcept override {
    let_capture_begin();
    return ForwardingDevice::stream_free(base, stream);
  }
  Status event_query(EventHandle event) noexcept override {
    count();
    return ForwardingDevice::event_query(event);
  }
  Status event_record(EventHandle event, StreamHandle stream) noexcept override {
    count();
    return ForwardingDevice::event_record(event, stream);
  }
  Result<device::CaptureMode> exchange_capture_mode(device::CaptureMode mode) noexcept override {
    is_relaxed_ = mode == device::CaptureMode::kRelaxed;
    return ForwardingDevice::exchange_capture_mode(mode);
  }
  Status stream_trim(Bytes keep) noexcept override {
    count();
    ++trims_;
    if (is_relaxed_) ++relaxed_trims_;
    return ForwardingDevice::stream_trim(keep);
  }

 private:
  void count() {
    if (is_announced_) ++asked_;
  }
  void let_capture_begin() {
    CachingAllocator* const allocator = std::exchange(allocator_, nullptr);
    if (allocator == nullptr) return;
    thread_ = std::thread([this, allocator] {
      static_cast<void>(allocator->begin_capture(captured_));
      is_announced_ = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it waits for the lock
  }

  const Stream captured_;
  CachingAllocator* allocator_ = nullptr;
  std::thread thread_;
  std::atomic<bool> is_announced_{false};
  std::atomic<unsigned> asked_{0};
  unsigned trims_ = 0;
  unsigned relaxed_trims_ = 0;
  inline static thread_local bool is_relaxed_ = false;  ///< the thread's mode
};

class MallocAsyncCapture : public ::testing::Test {
 protected:
  MallocAsyncCapture()
      : gpu_(options()),
        captured_(gpu_.create_stream(kOnlyDevice).value()),
        stream_(gpu_.create_stream(kOnlyDevice).value()),
        other_(gpu_.create_stream(kOnlyDevice).value()),
        device_(gpu_.device(kOnlyDevice), captured_) {
    device::Device* const devices[] = {&device_};
    allocator_ =
        CachingAllocator::create(devices, parse_config("backend:cudaMallocAsync", nullptr).value())
            .value();
  }
  static spec::SimGpuOptions options() {
    spec::SimGpuOptions options;
    options.capacities = {64_MiB};
    return options;
  }
  void work(const Stream& stream) {
    EXPECT_TRUE(gpu_.launch(stream, std::span<const spec::Touch>{}).is_ok());
  }
  /// Memory that is not of the pool: it is allocated while a capture is announced.
  std::array<Address, 3> allocate_in_capture() {
    EXPECT_TRUE(allocator_->begin_capture(other_).is_ok());
    std::array<Address, 3> made;
    for (Address& each : made) each = allocator_->allocate(1_MiB, other_).value();
    EXPECT_TRUE(allocator_->end_capture(other_).is_ok());
    return made;
  }
  void expect_nothing_asked() {
    device_.join();
    EXPECT_TRUE(device_.has_begun()) << "no capture began";
    EXPECT_EQ(device_.asked(), 0u) << "C9: between begin_capture's return and end_capture";
    device_.end_capture();
    EXPECT_TRUE(allocator_->end_capture(captured_).is_ok());
  }

  spec::SimGpu gpu_;
  const Stream captured_;
  const Stream stream_;
  const Stream other_;
  CaptureAtFree device_;
  std::unique_ptr<CachingAllocator> allocator_;
};

TEST_F(MallocAsyncCapture, AMissAsksNothingOnceItHasBegun) {
  const std::array<Address, 3> plain = allocate_in_capture();
  work(other_);
  EXPECT_TRUE(allocator_->free(plain[0]).is_ok());
  std::array<Address, 3> used;
  for (Address& each : used) each = allocator_->allocate(1_MiB, stream_).value();
  work(captured_);
  for (const Address each : used) EXPECT_TRUE(allocator_->free(each, captured_).is_ok());
  EXPECT_TRUE(gpu_.drain_all().is_ok());
  device_.arm(*allocator_);
  EXPECT_TRUE(allocator_->allocate(512_B, stream_).is_ok());
  expect_nothing_asked();
}

TEST_F(MallocAsyncCapture, ATrimLeavesThePoolOnceItHasBegun) {
  for (const Address each : allocate_in_capture()) {
    work(other_);
    EXPECT_TRUE(allocator_->free(each).is_ok());
  }
  EXPECT_TRUE(gpu_.drain_all().is_ok());
  device_.arm(*allocator_);
  EXPECT_EQ(allocator_->trim(kOnlyDevice).code(), Code::kBusy);
  expect_nothing_asked();
}

TEST_F(MallocAsyncCapture, AGrowthTrimsThePoolInTheRelaxedMode) {
  const Address kept = allocator_->allocate(40_MiB, stream_).value();
  EXPECT_TRUE(allocator_->free(kept).is_ok());
  EXPECT_TRUE(gpu_.drain_all().is_ok());
  EXPECT_TRUE(allocator_->begin_capture(captured_).is_ok());
  EXPECT_TRUE(gpu_.begin_capture(captured_, device::CaptureMode::kThreadLocal).is_ok());
  EXPECT_TRUE(allocator_->allocate(30_MiB, captured_).is_ok()) << "not of the pool's kept memory";
  EXPECT_EQ(device_.relaxed_trims(), 1u);
  EXPECT_EQ(device_.trims(), 1u);
  EXPECT_TRUE(gpu_.end_capture(captured_).is_ok());
  EXPECT_TRUE(allocator_->end_capture(captured_).is_ok());
}

}  // namespace
}  // namespace ashlar
