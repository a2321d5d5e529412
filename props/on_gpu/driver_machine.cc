#include "props/on_gpu/driver_machine.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include <ashlar/cuda/driver_status.h>

#include "props/on_gpu/acting_device.h"
#include "props/on_gpu/canary.h"
#include "src/cuda_backend/cuda_gpu.h"

namespace ashlar::props {
namespace {

using cuda_backend::pointer_of;
using spec::Access;
using spec::GraphId;
using spec::HostFlag;
using spec::Touch;

constexpr cuda::CallResult kErrorIllegalState = 401;  // CUDA_ERROR_ILLEGAL_STATE
constexpr Status kCannot{Code::kUnsupported, "the machine of the driver cannot"};

/// What a host function of a case waits for, or does.
struct HostFunction {
  const std::atomic<bool>* flag = nullptr;
  device::Device* calls = nullptr;
  Status* outcome = nullptr;
};

void run_host_function(void* data) {
  const std::unique_ptr<HostFunction> function(static_cast<HostFunction*>(data));
  while (function->flag != nullptr && !*function->flag)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (function->calls != nullptr)
    *function->outcome = function->calls->segment_alloc(512_B).status();
}

/// What no driver does, and what is not written for one.
class UnsteeredMachine : public spec::RuleMachine {
 public:
  Status collective(const Stream&, std::uint32_t, std::uint32_t) override { return kCannot; }
  Status begin_body(const Stream&, const Stream&) override { return kCannot; }
  Status end_body(const Stream&) override { return kCannot; }
  Status set_lag(std::uint64_t) override { return kCannot; }
  void tick() override {}
  Status set_capacity(std::uint32_t, Bytes) override { return kCannot; }
  Status fail(device::CallKind, std::uint64_t, spec::FailMode) override { return kCannot; }
  Status heal() override { return kCannot; }
  Status lose(std::uint32_t) override { return kCannot; }
  Status tear_down() override { return kCannot; }
  bool reports_faults() const override { return false; }
  std::string take_faults() override { return ""; }
};

class DriverMachine final : public UnsteeredMachine {
 public:
  DriverMachine() = default;
  /// Lets everything go on that waits for the host. Says so where some of it does not: to end the driver's objects may then take
  /// for ever.
  ~DriverMachine() override {
    for (std::atomic<bool>& flag : flags_) flag = true;
    // Waits compare (int64_t)(word - value) with 0: a word of all ones is less than any value of a case.
    constexpr std::uint64_t kReleasesAll = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t word = 0; gpus_.count() != 0 && word < RuleGpus::kWords; ++word)
      gpus_.write_word(word, kReleasesAll);
    if (const Status settled = entries_.settle(); !settled.is_ok())
      std::fprintf(stderr, "at the end of a case: %s\n", settled.why());
  }
  DriverMachine(const DriverMachine&) = delete;
  DriverMachine& operator=(const DriverMachine&) = delete;

  Status open(const spec::SimGpuOptions& asked, bool is_simulated) {
    if (const Status opened = gpus_.open(asked, is_simulated); !opened.is_ok()) return opened;
    for (std::uint32_t i = 0; i < gpus_.count(); ++i)
      devices_.push_back(
          std::make_unique<ActingDevice>(*gpus_.at(i).device, threads_, entries_, notes_, i));
    flags_[0] = true;
    return Status::ok();
  }

  std::uint32_t device_count() const override { return gpus_.count(); }
  device::Device& device(std::uint32_t index) override { return *devices_[index]; }
  Status act_as_thread(std::uint32_t n) override {
    threads_.act_as(n);
    return Status::ok();
  }

  Result<Stream> create_stream(std::uint32_t device, spec::StreamKind kind) override {
    cuda::StreamPointer made = nullptr;
    const unsigned flags =
        kind == spec::StreamKind::kNonBlocking ? cuda_backend::kStreamNonBlocking : 0;
    const Status done = call(gpus_.at(device), [&] { return work().stream_create(&made, flags); });
    if (!done.is_ok()) return done;
    return gpus_.at(device).device->identify(StreamHandle{reinterpret_cast<std::uintptr_t>(made)});
  }
  Result<Stream> default_stream(std::uint32_t device, StreamHandle which) override {
    return devices_[device]->identify(which);
  }
  Status destroy_stream(const Stream& stream) override {
    const Status done =
        call(gpus_.of(stream), [&] { return work().stream_destroy(pointer_of(stream)); });
    if (done.is_ok()) entries_.forget(stream);
    return done;
  }

  Status launch(const Stream& stream, std::span<const Touch> touches) override {
    return entries_.enqueue(stream, [&]() -> Status {
      if (touches.empty()) return launch_canary(stream, Touch{});
      for (const Touch& each : touches) {
        if (const Status done = launch_canary(stream, each); !done.is_ok()) return done;
      }
      return Status::ok();
    });
  }
  Status launch_faulty(const Stream& stream) override {
    return entries_.enqueue(stream,
                            [&] { return launch_kernel(stream, &RuleGpu::fault, nullptr); });
  }
  Status host_function(const Stream& stream, HostFlag flag) override {
    return host_function(stream, HostFunction{&flags_[flag % flags_.size()]});
  }
  Status host_function_calling(const Stream& stream, std::uint32_t device) override {
    // The simulated driver's host functions run beside the machine, which does not know that they are such.
    if (gpus_.is_simulated()) return kCannot;
    return host_function(stream, HostFunction{nullptr, gpus_.at(device).device.get(), &outcome_});
  }
  Status body_outcome() override { return outcome_; }
  Status raise(HostFlag flag) override {
    flags_[flag % flags_.size()] = true;
    return Status::ok();
  }
  Status write_value(const Stream& stream, std::uint32_t word, std::uint64_t value) override {
    return on_word(&ApplicationFunctions::write_value, stream, word, value);
  }
  Status wait_value(const Stream& stream, std::uint32_t word, std::uint64_t value) override {
    return on_word(&ApplicationFunctions::wait_value, stream, word, value);
  }
  Status host_write_value(std::uint32_t word, std::uint64_t value) override {
    gpus_.write_word(word, value);
    return Status::ok();
  }

  Status begin_capture(const Stream& stream, device::CaptureMode mode) override {
    cuda::CallResult answer = cuda::kSuccess;
    const Status done = call(gpus_.of(stream), [&] {
      return answer = gpus_.cu().begin_capture(pointer_of(stream), static_cast<int>(mode));
    });
    return answer == kErrorIllegalState ? Status{Code::kBusy, "the stream captures"} : done;
  }
  Result<GraphId> end_capture(const Stream& stream) override {
    cuda::Graph graph = nullptr;
    cuda::GraphExec executable = nullptr;
    Status done =
        call(gpus_.of(stream), [&] { return gpus_.cu().end_capture(pointer_of(stream), &graph); });
    if (done.is_ok())
      done = call(gpus_.of(stream), [&] { return gpus_.cu().make_executable(graph, &executable); });
    if (!done.is_ok()) return done;
    graphs_.push_back(executable);
    return GraphId{static_cast<std::uint32_t>(graphs_.size())};
  }
  Status launch_graph(const Stream& stream, GraphId graph, spec::BodyRuns) override {
    const cuda::GraphExec known = find(graph);
    if (known == nullptr) return kCannot;  // a dead handle is not to be shown to a driver
    return entries_.enqueue(stream, [&] {
      return gpus_.of(stream).context->call(
          [&] { return gpus_.cu().graph_launch(known, pointer_of(stream)); });
    });
  }
  Status destroy_graph(GraphId graph) override {
    const cuda::GraphExec known = find(graph);
    if (known == nullptr) return kCannot;
    graphs_[graph.value() - 1] = nullptr;
    return call(gpus_.at(0), [&] { return gpus_.cu().exec_destroy(known); });
  }

  Status step(const Stream& stream, std::uint64_t n) override { return entries_.step(stream, n); }
  Status drain(std::uint32_t device) override { return entries_.settle(device); }
  Status drain_all() override { return entries_.settle(); }
  Result<std::uint64_t> pending(const Stream& stream) override { return entries_.pending(stream); }

 private:
  using OnWord = cuda::CallResult (*ApplicationFunctions::*)(cuda::StreamPointer,
                                                             cuda::DevicePointer, std::uint64_t,
                                                             unsigned);

  const cuda_backend::WorkFunctions& work() const { return gpus_.cu().work; }
  /// On the acting thread, in the GPU's context.
  template <class Call>
  Status call(RuleGpu& gpu, Call&& make) {
    return threads_.run([&] { return gpu.context->call(make); });
  }
  cuda::GraphExec find(GraphId graph) const {
    return graph.value() == 0 || graph.value() > graphs_.size() ? nullptr
                                                                : graphs_[graph.value() - 1];
  }
  Status launch_kernel(const Stream& stream, cuda::Kernel RuleGpu::*kernel, void** parameters) {
    RuleGpu& gpu = gpus_.of(stream);
    return gpu.context->call([&] {
      return work().launch_kernel(gpu.*kernel, 1, 1, 1, 32, 1, 1, 0, pointer_of(stream), parameters,
                                  nullptr);
    });
  }
  /// Writes to what the touch writes; what is only read is not looked at.
  Status launch_canary(const Stream& stream, const Touch& touch) {
    CanaryCall canary;
    canary.begin = touch.at.value();
    canary.bytes = touch.access == Access::kRead ? 0 : touch.size.count();
    canary.owner = 1;
    canary.access = static_cast<std::uint32_t>(Access::kWrite);
    void* parameters[] = {&canary};
    return launch_kernel(stream, &RuleGpu::canary, parameters);
  }
  Status host_function(const Stream& stream, const HostFunction& function) {
    return entries_.enqueue(stream, [&] {
      // Once it is enqueued, the function's own.
      auto* const data = new HostFunction(function);
      const Status done = gpus_.of(stream).context->call(
          [&] { return gpus_.cu().launch_host_func(pointer_of(stream), run_host_function, data); });
      if (!done.is_ok()) delete data;
      return done;
    });
  }
  Status on_word(OnWord function, const Stream& stream, std::uint32_t word, std::uint64_t value) {
    return entries_.enqueue(stream, [&] {
      return gpus_.of(stream).context->call([&] {
        return (gpus_.cu().*function)(pointer_of(stream), gpus_.word(word).value(), value, 0);
      });
    });
  }

  RuleGpus gpus_;
  ActingThreads threads_;
  StreamEntries entries_{gpus_, threads_};
  RuleNotes notes_;
  std::vector<std::unique_ptr<ActingDevice>> devices_;
  std::array<std::atomic<bool>, 64> flags_{};
  std::vector<cuda::GraphExec> graphs_;
  Status outcome_;
};

}  // namespace

std::unique_ptr<spec::RuleMachine> make_driver_machine(const spec::SimGpuOptions& asked,
                                                       bool is_simulated, Status* why) {
  auto made = std::make_unique<DriverMachine>();
  *why = made->open(asked, is_simulated);
  if (!why->is_ok()) return nullptr;
  return made;
}

}  // namespace ashlar::props
