#include "props/on_gpu/simulated_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include <ashlar/graph/element_type.h>

#include "props/on_gpu/canary.h"
#include "spec/cuda_face/cuda_face.h"
#include "src/cuda_backend/kernel_launch.h"

namespace ashlar::props {
namespace {

using cuda_backend::DeviceCall;
using cuda_backend::DeviceOperand;
using spec::Access;
using spec::Touch;

/// From the operand's first byte to its last.
Bytes extent_of(const DeviceOperand& operand) {
  const graph::TypeTraits& type = traits_of(static_cast<graph::ElementType>(operand.type));
  std::uint64_t bytes = type.block_bytes.count();
  for (std::size_t d = 0; d < 4; ++d) {
    const std::uint64_t steps = d == 0 ? operand.shape[0] / type.block_elements : operand.shape[d];
    bytes += (steps - 1) * operand.strides[d];
  }
  return Bytes{bytes};
}

std::vector<Touch> touches_of(const DeviceCall& call) {
  std::vector<Touch> touches;
  const auto add = [&](const DeviceOperand& operand, Access access) {
    if (operand.is_there && operand.elements() > 0)
      touches.push_back({Address::of(operand.base), extent_of(operand), access});
  };
  const bool writes_sources =
      call.operation == static_cast<std::uint8_t>(graph::Operation::kOptStepAdamw);
  add(call.out, Access::kReadWrite);
  for (const DeviceOperand& source : call.in)
    add(source, writes_sources ? Access::kReadWrite : Access::kRead);
  if (call.fault != nullptr)
    touches.push_back({Address::of(call.fault), Bytes{sizeof(int)}, Access::kWrite});
  return touches;
}

void run_threads(const DeviceCall& call, std::uint64_t units, std::uint64_t threads, bool by_warp,
                 bool is_backwards) {
  const std::uint64_t workers = by_warp ? threads / cuda_backend::kWarpThreads : threads;
  for (std::uint64_t k = 0; k < workers && k < units; ++k) {
    const std::uint64_t worker = is_backwards ? std::min(workers, units) - 1 - k : k;
    for (std::uint64_t unit = worker; unit < units; unit += workers) {
      if (by_warp) {
        compute_by_lanes(call, unit, cuda_backend::OneLane{});
      } else {
        compute_by_thread(call, unit);
      }
    }
  }
}

void provide(const char* name, bool by_warp) {
  spec::cuda_face::set_kernel(
      name, [by_warp, launches = 0](std::uint64_t threads, void* const* parameters) mutable {
        const DeviceCall call = *static_cast<const DeviceCall*>(parameters[0]);
        const std::uint64_t units = *static_cast<const std::uint64_t*>(parameters[1]);
        if (by_warp != cuda_backend::is_by_lanes(call.operation))
          std::abort();  // the other kernel's
        const bool is_backwards = launches++ % 2 == 1;
        spec::cuda_face::KernelWork work;
        work.touches = touches_of(call);
        work.run = [=] { run_threads(call, units, threads, by_warp, is_backwards); };
        return work;
      });
}

/// One worker does all of it. It does not spin: the machine decides how late a kernel is.
spec::cuda_face::KernelWork canary_work(const CanaryCall& call) {
  std::vector<Touch> touches;
  if (call.bytes != 0)
    touches.push_back({Address{call.begin}, Bytes{call.bytes}, static_cast<Access>(call.access),
                       call.tag, call.group});
  if (call.result != nullptr)
    touches.push_back({Address::of(call.result), Bytes{sizeof(CanaryResult)}, Access::kReadWrite});
  const auto report = [](CanaryResult* result, std::uint64_t at, std::uint64_t found) {
    if (result->mismatches++ != 0) return;
    result->first_at = at;
    result->found = found;
  };
  spec::cuda_face::KernelWork work;
  work.touches = std::move(touches);
  work.run = [call, report] { run_canary(call, 0, 1, report); };
  return work;
}

}  // namespace

void provide_simulated_kernels() {
  spec::cuda_face::set_kernel(kCanaryName, [](std::uint64_t, void* const* parameters) {
    return canary_work(*static_cast<const CanaryCall*>(parameters[0]));
  });
  spec::cuda_face::set_kernel(kFaultName, [](std::uint64_t, void* const*) {
    spec::cuda_face::KernelWork work;
    work.is_faulty = true;
    return work;
  });
  provide(cuda_backend::kByThreadName, false);
  provide(cuda_backend::kByWarpName, true);
}

}  // namespace ashlar::props
