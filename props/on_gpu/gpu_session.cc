#include "props/on_gpu/gpu_session.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <ashlar/cuda/driver_table.h>

#include "props/adapters/sim_clock.h"
#include "props/on_gpu/application_functions.h"
#include "props/on_gpu/simulated_bytes.h"
#include "props/on_gpu/simulated_kernels.h"
#include "spec/cuda_face/cuda_face.h"
#include "spec/gpu/sim_gpu.h"
#include "src/cuda_backend/cuda_gpu.h"

namespace ashlar::props {
namespace {

using cuda::Context;
using cuda::GraphExec;
using cuda::StreamPointer;
using cuda_backend::pointer_of;

std::unique_ptr<GpuSession> opened;

}  // namespace

struct GpuSession::Functions : ApplicationFunctions {
  cuda::ContextFunctions contexts;

  Status load(const char* library) {
    cuda::DriverTable table;
    if (const Status loaded = cuda::load_driver(library, &table); !loaded.is_ok()) return loaded;
    contexts = table.contexts;
    return ApplicationFunctions::load(library);
  }
};

/// The simulated machine, with memory of the host behind its addresses.
struct GpuSession::Simulated {
  explicit Simulated(const SimulatedMood& mood)
      : bytes(mood.has_pages ? SimulatedBytes::kForPages : SimulatedBytes::kUsual),
        gpu(options(bytes, mood)),
        clock(gpu) {
    EXPECT_TRUE(bytes.is_there());
    spec::cuda_face::attach(&gpu);
    spec::cuda_face::give_bytes(bytes.begin(), bytes.size());
    provide_simulated_kernels();
  }
  ~Simulated() { spec::cuda_face::attach(nullptr); }
  Simulated(const Simulated&) = delete;
  Simulated& operator=(const Simulated&) = delete;

  static spec::SimGpuOptions options(const SimulatedBytes& bytes, const SimulatedMood& mood) {
    spec::SimGpuOptions made = bytes.machine();
    made.seed = mood.seed;
    made.pace = mood.pace;
    made.capacities = {mood.memory};
    return made;
  }

  const SimulatedBytes bytes;
  spec::SimGpu gpu;
  SimClock clock;
};

GpuSession::GpuSession() : cu_(std::make_unique<Functions>()) {}

GpuSession::~GpuSession() {
  device_.reset();
  if (context_ != nullptr) static_cast<void>(cu_->contexts.primary_release(0));
}

Status GpuSession::open(bool is_simulated, const SimulatedMood& mood) {
  std::unique_ptr<GpuSession> made(new GpuSession);
  if (is_simulated) made->simulated_ = std::make_unique<Simulated>(mood);
  const char* const library = is_simulated ? nullptr : cuda::kDriverLibrary;
  SimClock* const clock = is_simulated && mood.has_own_time ? &made->simulated_->clock : nullptr;
  auto device = cuda::CudaDevice::open(0, DeviceId{0}, library, clock);
  if (!device.is_ok()) return device.status();
  made->device_ = std::move(device).value();
  if (const Status loaded = made->cu_->load(library); !loaded.is_ok()) return loaded;
  if (made->cu_->contexts.primary_retain(&made->context_, 0) != cuda::kSuccess)
    return {Code::kDriverError, "the GPU's primary context cannot be had"};
  opened = std::move(made);
  return Status::ok();
}

GpuSession& GpuSession::get() { return *opened; }

void GpuSession::close() { opened.reset(); }

void GpuSession::enter() { EXPECT_EQ(cu_->contexts.push_current(context_), cuda::kSuccess); }

void GpuSession::leave() {
  Context popped = nullptr;
  EXPECT_EQ(cu_->contexts.pop_current(&popped), cuda::kSuccess);
}

bool GpuSession::is_simulated() const { return simulated_ != nullptr; }

spec::SimGpu* GpuSession::machine() { return simulated_ == nullptr ? nullptr : &simulated_->gpu; }

const char* GpuSession::library() const { return is_simulated() ? nullptr : cuda::kDriverLibrary; }

std::string GpuSession::name() {
  std::array<char, 256> text{};
  EXPECT_EQ(cu_->device_get_name(text.data(), static_cast<int>(text.size()), 0), cuda::kSuccess);
  return text.data();
}

std::string GpuSession::take_faults() {
  std::string text;
  if (simulated_ == nullptr) return text;
  static_cast<void>(simulated_->gpu.leak_check(true));
  for (const spec::Fault& fault : simulated_->gpu.take_faults()) {
    // A wait that could not end yet, because a gate was opened behind the machine's back.
    if (fault.kind != spec::FaultKind::kDeadlock) text += fault.text + '\n';
  }
  return text;
}

Stream GpuSession::create_stream() {
  StreamPointer made = nullptr;
  EXPECT_EQ(cu_->work.stream_create(&made, 1), cuda::kSuccess);
  return device_->identify(StreamHandle{reinterpret_cast<std::uintptr_t>(made)}).value();
}

void GpuSession::destroy_stream(const Stream& stream) {
  EXPECT_EQ(cu_->work.stream_destroy(pointer_of(stream)), cuda::kSuccess);
}

void GpuSession::copy(Address to, Address from, Bytes size, const Stream& on) {
  EXPECT_EQ(cu_->work.memcpy_async(to.value(), from.value(), size.count(), pointer_of(on)),
            cuda::kSuccess);
}

void GpuSession::synchronize(const Stream& stream) {
  EXPECT_EQ(cu_->work.stream_synchronize(pointer_of(stream)), cuda::kSuccess);
}

bool GpuSession::begin_capture(const Stream& stream, device::CaptureMode mode) {
  return cu_->begin_capture(pointer_of(stream), static_cast<int>(mode)) == cuda::kSuccess;
}

GraphExec GpuSession::end_capture(const Stream& stream) {
  cuda::Graph graph = nullptr;
  GraphExec executable = nullptr;
  if (cu_->end_capture(pointer_of(stream), &graph) != cuda::kSuccess || graph == nullptr)
    return nullptr;
  if (cu_->make_executable(graph, &executable) != cuda::kSuccess) return nullptr;
  return executable;
}

GraphExec GpuSession::capture(const Stream& stream, const std::function<void()>& work) {
  EXPECT_TRUE(begin_capture(stream, device::CaptureMode::kGlobal));
  work();
  return end_capture(stream);
}

void GpuSession::launch(GraphExec graph, const Stream& on) {
  EXPECT_EQ(cu_->graph_launch(graph, pointer_of(on)), cuda::kSuccess);
}

Result<cuda::Kernel> GpuSession::load_kernel(std::span<const std::byte> image, const char* name) {
  constexpr std::byte kNoImage[8] = {};  // the simulated driver does not read it
  if (is_simulated()) image = kNoImage;
  if (image.empty())
    return Status{Code::kUnsupported,
                  "this build has no kernels for a GPU: no nvcc from CUDA 12 on was found"};
  cuda::Module module = nullptr;
  cuda::Kernel kernel = nullptr;
  cuda::CallResult answer = cu_->work.module_load_data(&module, image.data());
  if (answer == cuda::kSuccess) answer = cu_->work.module_get_function(&kernel, module, name);
  if (answer != cuda::kSuccess) return cuda_backend::no_kernels(answer);
  return kernel;
}

bool GpuSession::launch(cuda::Kernel kernel, unsigned blocks, const Stream& on, void** parameters) {
  return cu_->work.launch_kernel(kernel, blocks, 1, 1, kBlockThreads, 1, 1, 0, pointer_of(on),
                                 parameters, nullptr) == cuda::kSuccess;
}

void GpuSession::destroy(GraphExec graph) { EXPECT_EQ(cu_->exec_destroy(graph), cuda::kSuccess); }

Gate::Gate(const Stream& stream) : is_open_(std::make_shared<std::atomic<bool>>(false)) {
  // The stream's function owns a share: a gate that is gone is open.
  auto* const share = new std::shared_ptr<std::atomic<bool>>(is_open_);
  const auto wait = [](void* data) {
    const std::unique_ptr<std::shared_ptr<std::atomic<bool>>> gate(
        static_cast<std::shared_ptr<std::atomic<bool>>*>(data));
    while (!**gate) std::this_thread::sleep_for(std::chrono::microseconds(100));
  };
  EXPECT_EQ(GpuSession::get().cu_->launch_host_func(pointer_of(stream), wait, share),
            cuda::kSuccess);
}

FarMemory::FarMemory(Bytes size) : base_(GpuSession::get().device().segment_alloc(size).value()) {}

FarMemory::~FarMemory() {
  device::Device& device = GpuSession::get().device();
  EXPECT_TRUE(device.synchronize().is_ok());
  EXPECT_TRUE(device.segment_free(base_).is_ok());
}

}  // namespace ashlar::props
