// The c10::Allocator over the session of this process, and the C interface of ashlar_torch_cpu.h.
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <string>

#include "src/torch_cpu/ashlar_torch_cpu.h"
#include "src/torch_cpu/process_session.h"

namespace ashlar::torch_cpu {
namespace {

std::atomic<std::uint64_t> refused_frees{0};
thread_local std::string last_error;
thread_local std::string last_difference;

int answer(Status status) {
  last_error = status.is_ok() ? "" : status.why();
  return static_cast<int>(status.code());
}

/// Calls `what` on the session.
template <class F>
int with_session(F&& what) {
  const Result<StepSession*> session = process_session();
  return answer(session.is_ok() ? what(*session.value()) : session.status());
}

void end_allocation(void* memory) {
  if (memory == nullptr) return;
  c10::profiledCPUMemoryReporter().Delete(memory);
  const Result<StepSession*> session = process_session();
  if (session.is_ok() && session.value()->free(Address::of(memory)).is_ok()) return;
  refused_frees.fetch_add(1, std::memory_order_relaxed);
}

struct TorchAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) const override {
    if (bytes == 0) return {nullptr, nullptr, &end_allocation, c10::Device(c10::DeviceType::CPU)};
    const Result<StepSession*> session = process_session();
    const Result<Address> got =
        session.is_ok() ? session.value()->allocate(Bytes{bytes}) : session.status();
    if (!got.is_ok()) {
      c10::profiledCPUMemoryReporter().OutOfMemory(bytes);
      TORCH_CHECK(false, "Ashlar: no ", bytes,
                  " bytes for a tensor on the CPU: ", got.status().why());
    }
    void* const memory = got.value().pointer();
    c10::profiledCPUMemoryReporter().New(memory, bytes);
    return {memory, memory, &end_allocation, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &end_allocation; }
};

ashlar_torch_cpu_stats figures_of(const cache::DeviceStats& stats, const StepPlan& plan,
                                  const replay::ReplayCounts& counts) {
  ashlar_torch_cpu_stats out{};
  out.allocations = stats.allocations[0].increased;
  out.allocated_bytes = stats.allocated_bytes[0].current;
  out.reserved_bytes = stats.reserved_bytes[0].current;
  out.reserved_bytes_peak = stats.reserved_bytes[0].peak;
  out.refused_frees = refused_frees.load(std::memory_order_relaxed);
  out.step_allocations = plan.allocations;
  out.step_unmanaged = plan.unmanaged;
  out.live_bytes_peak = plan.live_peak.count();
  out.lower_bound_bytes = plan.lower_bound.count();
  out.plan_bytes = plan.peak.count();
  out.served = counts.served;
  out.fallbacks = counts.fallbacks();
  out.skipped = counts.skipped;
  out.late = counts.late;
  return out;
}

}  // namespace
}  // namespace ashlar::torch_cpu

using ashlar::Code;
using ashlar::Status;
using ashlar::torch_cpu::StepSession;

int ashlar_torch_cpu_install(void) {
  static ashlar::torch_cpu::TorchAllocator allocator;
  return ashlar::torch_cpu::with_session([](StepSession&) {
    c10::SetCPUAllocator(&allocator, 1);  // over the default, whose priority is 0
    return c10::GetCPUAllocator() == &allocator
               ? Status::ok()
               : Status{Code::kBusy, "an allocator of higher priority is set"};
  });
}

int ashlar_torch_cpu_begin(int step) {
  return ashlar::torch_cpu::with_session([step](StepSession& session) {
    if (step < ASHLAR_TORCH_CPU_RECORD || step > ASHLAR_TORCH_CPU_REPLAY)
      return Status{Code::kInvalidArgument, "no such kind of step"};
    return session.begin(static_cast<StepSession::Step>(step));
  });
}

int ashlar_torch_cpu_end(uint32_t plan_ms) {
  return ashlar::torch_cpu::with_session(
      [plan_ms](StepSession& session) { return session.end(plan_ms); });
}

const char* ashlar_torch_cpu_difference(void) {
  const int failed = ashlar::torch_cpu::with_session([](StepSession& session) {
    ashlar::torch_cpu::last_difference = session.difference();
    return Status::ok();
  });
  return failed == 0 ? ashlar::torch_cpu::last_difference.c_str() : "";
}

int ashlar_torch_cpu_get_stats(ashlar_torch_cpu_stats* stats) {
  return ashlar::torch_cpu::with_session([stats](StepSession& session) {
    if (stats == nullptr) return Status{Code::kInvalidArgument, "no place for the answer"};
    ashlar::cache::DeviceStats host;
    const Status got = session.memory().caching().stats(session.memory().device(), &host);
    if (got.is_ok()) *stats = ashlar::torch_cpu::figures_of(host, session.plan(), session.counts());
    return got;
  });
}

int ashlar_torch_cpu_reset_peaks(void) {
  return ashlar::torch_cpu::with_session([](StepSession& session) {
    return session.memory().caching().reset_peak_stats(session.memory().device());
  });
}

int ashlar_torch_cpu_trim(void) {
  return ashlar::torch_cpu::with_session([](StepSession& session) {
    return session.memory().caching().trim(session.memory().device());
  });
}

const char* ashlar_torch_cpu_error(void) { return ashlar::torch_cpu::last_error.c_str(); }
