#include "props/on_gpu/rule_gpu.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "props/on_gpu/canary.h"
#include "props/on_gpu/canary_image.h"
#include "props/on_gpu/simulated_kernels.h"
#include "spec/cuda_face/cuda_face.h"
#include "src/cuda_backend/cuda_gpu.h"

namespace ashlar::props {
namespace {

constexpr std::uint32_t kPace =
    4;  // of a simulated machine, on which entries that may run do so by themselves
constexpr Bytes kGateBytes{RuleGpus::kGates * sizeof(std::uint32_t)};
constexpr Bytes kWordBytes{RuleGpus::kWords * sizeof(std::uint64_t)};

}  // namespace

RuleGpus::~RuleGpus() {
  if (!gates_.is_null()) static_cast<void>(gpus_[0].device->pinned_free(gates_));
  gpus_.clear();
  if (is_simulated()) spec::cuda_face::attach(nullptr);
}

Status RuleGpus::open(const spec::SimGpuOptions& asked, bool is_simulated) {
  if (asked.queue_depth != 0 || asked.hardware_queues != 0)
    return {Code::kUnsupported, "the depth and the number of a driver's queues cannot be chosen"};
  const auto is_limited = [](Bytes capacity) { return capacity != Bytes{}; };
  if (!is_simulated && std::any_of(asked.capacities.begin(), asked.capacities.end(), is_limited))
    return {Code::kUnsupported, "how much memory a GPU has cannot be chosen"};
  if (is_simulated) {
    bytes_ = std::make_unique<SimulatedBytes>(SimulatedBytes::kForPages);
    spec::SimGpuOptions options = asked;
    options.first_address = bytes_->begin().value();
    options.pace = kPace;
    machine_ = std::make_unique<spec::SimGpu>(options);
    spec::cuda_face::attach(machine_.get());
    spec::cuda_face::give_bytes(bytes_->begin(), bytes_->size());
    provide_simulated_kernels();
    spec::cuda_face::set_kernel(kGateName, [this](std::uint64_t, void* const* parameters) {
      spec::cuda_face::KernelWork work;
      work.held_by = machine_->new_flag();
      work.run = [] {};
      flags_[*static_cast<const std::uint64_t*>(parameters[0])] = work.held_by;
      return work;
    });
  }
  const char* const library = is_simulated ? nullptr : cuda::kDriverLibrary;
  if (const Status loaded = cu_.load(library); !loaded.is_ok()) return loaded;
  for (std::size_t i = 0; i < asked.capacities.size(); ++i) {
    if (const Status opened = open_gpu(static_cast<int>(i), library); !opened.is_ok())
      return opened;
  }
  const Result<Address> gates = gpus_[0].device->pinned_alloc(kGateBytes + kWordBytes);
  if (!gates.is_ok()) return gates.status();
  gates_ = gates.value();
  words_ = gates_ + kGateBytes;
  std::memset(gates_.pointer(), 0, (kGateBytes + kWordBytes).count());
  return Status::ok();
}

Status RuleGpus::open_gpu(int ordinal, const char* library) {
  constexpr std::byte kNoImage[8] = {};  // the simulated driver does not read it
  RuleGpu gpu;
  gpu.context = std::make_unique<cuda::PrimaryContext>();
  if (const Status opened = gpu.context->open(ordinal, library); !opened.is_ok()) {
    if (ordinal == 0 || opened.code() != Code::kNotFound) return opened;
    return {Code::kNotFound, "this machine has too few GPUs"};
  }
  auto device = cuda::CudaDevice::open(ordinal, DeviceId{ordinal}, library);
  if (!device.is_ok()) return device.status();
  gpu.device = std::move(device).value();
  const void* const image = is_simulated() ? kNoImage : canary_image().data();
  if (image == nullptr)
    return {Code::kUnsupported,
            "this build has no kernels for a GPU: no nvcc from CUDA 12 on was found"};
  cuda::Module module = nullptr;
  cuda::CallResult answer = cuda::kSuccess;
  const Status loaded = gpu.context->call([&] {
    answer = cu_.work.module_load_data(&module, image);
    for (const auto& [kernel, name] :
         {std::pair{&gpu.canary, kCanaryName}, {&gpu.gate, kGateName}, {&gpu.fault, kFaultName}}) {
      if (answer == cuda::kSuccess) answer = cu_.work.module_get_function(kernel, module, name);
    }
    return answer;
  });
  gpus_.push_back(std::move(gpu));
  return loaded.code() == Code::kDriverError ? cuda_backend::no_kernels(answer) : loaded;
}

volatile std::uint32_t* RuleGpus::gate_word(std::uint32_t gate) const {
  return static_cast<volatile std::uint32_t*>(gates_.pointer()) + gate % kGates;
}

Status RuleGpus::enqueue_gate(const Stream& stream, std::uint32_t gate) {
  RuleGpu& gpu = of(stream);
  auto word = reinterpret_cast<std::uintptr_t>(gate_word(gate));
  void* parameters[] = {&word};
  return gpu.context->call([&] {
    return cu_.work.launch_kernel(gpu.gate, 1, 1, 1, 1, 1, 1, 0, cuda_backend::pointer_of(stream),
                                  parameters, nullptr);
  });
}

void RuleGpus::open_gate(std::uint32_t gate) {
  *gate_word(gate) = 1;
  if (!is_simulated()) return;
  machine_->raise(flags_[reinterpret_cast<std::uintptr_t>(gate_word(gate))]);
}

void RuleGpus::close_gate(std::uint32_t gate) {
  if (!is_simulated()) *gate_word(gate) = 0;
}

void RuleGpus::write_word(std::uint32_t number, std::uint64_t value) {
  *static_cast<volatile std::uint64_t*>(word(number).pointer()) = value;
  if (is_simulated()) machine_->host_write_value(word(number), value);
}

}  // namespace ashlar::props
