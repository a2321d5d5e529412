// RuleGpus: the GPUs that the rules' cases run on, with their kernels, and host memory that both sides see.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <ashlar/cuda/cuda_device.h>
#include <ashlar/cuda/primary_context.h>

#include "props/on_gpu/application_functions.h"
#include "props/on_gpu/simulated_bytes.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar::props {

struct RuleGpu {
  std::unique_ptr<cuda::PrimaryContext> context;
  std::unique_ptr<cuda::CudaDevice> device;
  cuda::Kernel canary = nullptr;
  cuda::Kernel gate = nullptr;
  cuda::Kernel fault = nullptr;
};

class RuleGpus {
 public:
  RuleGpus() = default;
  ~RuleGpus();
  RuleGpus(const RuleGpus&) = delete;
  RuleGpus& operator=(const RuleGpus&) = delete;

  /// As many GPUs as are asked for, of the driver or simulated with what is asked. kUnsupported if what is asked cannot be
  /// had of a driver; else errors as CudaDevice::open().
  Status open(const spec::SimGpuOptions& asked, bool is_simulated);

  std::uint32_t count() const { return static_cast<std::uint32_t>(gpus_.size()); }
  RuleGpu& at(std::uint32_t index) { return gpus_[index]; }
  RuleGpu& of(const Stream& stream) {
    return gpus_[static_cast<std::uint32_t>(stream.device.value())];
  }
  const ApplicationFunctions& cu() const { return cu_; }
  bool is_simulated() const { return machine_ != nullptr; }

  // Gates: each holds a stream until it is opened.
  static constexpr std::uint32_t kGates = 1024;
  /// Enqueues the gate; once for each.
  Status enqueue_gate(const Stream& stream, std::uint32_t gate);
  void open_gate(std::uint32_t gate);
  /// Where its stream has not come to it, it holds again.
  void close_gate(std::uint32_t gate);

  // 8-byte words for the driver's memory operations.
  static constexpr std::uint32_t kWords = 64;
  Address word(std::uint32_t number) const { return words_ + Bytes{8 * (number % kWords)}; }
  void write_word(std::uint32_t number, std::uint64_t value);

 private:
  Status open_gpu(int ordinal, const char* library);
  volatile std::uint32_t* gate_word(std::uint32_t gate) const;

  std::unique_ptr<SimulatedBytes> bytes_;
  std::unique_ptr<spec::SimGpu> machine_;
  std::map<std::uint64_t, spec::HostFlag> flags_;  ///< of simulated gates, by the word's address
  ApplicationFunctions cu_;
  std::vector<RuleGpu> gpus_;
  Address gates_;
  Address words_;
};

}  // namespace ashlar::props
