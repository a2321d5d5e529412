#include "src/cpu_backend/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ashlar/base/exceptions.h>

namespace ashlar::cpu {
namespace {

using graph::TensorId;

const Status kElsewhere{Code::kWrongDevice, "the bytes are in no buffer of this backend's memory"};

KernelCall call_of(const graph::Graph& graph, TensorId node, std::span<const Address> addresses) {
  // A tensor of no bytes may have no address, and rows to step over.
  static std::byte nothing{};
  const auto operand = [&](TensorId id) {
    auto* const base = static_cast<std::byte*>(addresses[id.value()].pointer());
    return Operand{&graph[id], base == nullptr ? &nothing : base};
  };
  KernelCall call;
  call.out = operand(node);
  const auto ids = graph.sources(graph[node]);
  call.sources = ids.size();
  for (std::size_t k = 0; k < ids.size(); ++k) {
    if (ids[k] != graph::kNoTensor) call.in[k] = operand(ids[k]);
  }
  return call;
}

}  // namespace

CpuBackend::CpuBackend(std::string name, std::shared_ptr<HostBuffers> buffers, unsigned threads)
    : name_(std::move(name)), buffers_(std::move(buffers)), workers_(threads) {
  scratch_.resize(workers_.threads());
}

Status CpuBackend::set_async(Address to, std::span<const std::byte> from) noexcept {
  if (!buffers_->holds(to, Bytes{from.size()})) return kElsewhere;
  if (!from.empty()) std::memcpy(to.pointer(), from.data(), from.size());
  return Status::ok();
}

Status CpuBackend::get_async(std::span<std::byte> to, Address from) noexcept {
  if (!buffers_->holds(from, Bytes{to.size()})) return kElsewhere;
  if (!to.empty()) std::memcpy(to.data(), from.pointer(), to.size());
  return Status::ok();
}

Status CpuBackend::copy_async(Address from, const sched::Backend& target, Address to,
                              Bytes size) noexcept {
  if (!target.is_host_memory()) return Backend::copy_async(from, target, to, size);
  if (!holds(from, size) || !target.holds(to, size)) return kElsewhere;
  if (size > Bytes{}) std::memmove(to.pointer(), from.pointer(), size.count());
  return Status::ok();
}

Status CpuBackend::compute(const graph::Graph& graph, std::span<const TensorId> nodes,
                           std::span<const Address> addresses) noexcept {
  for (const TensorId node : nodes) {
    if (!supports(graph, node))
      return {Code::kUnsupported, "the processor has no kernel for a node"};
  }
  for (const TensorId node : nodes) {
    Status status;
    if (!with_host_memory([&] { status = compute_node(graph, node, addresses); }))
      return {Code::kHostOutOfMemory, "no host memory to compute a node in"};
    if (!status.is_ok()) return status;
  }
  return Status::ok();
}

Status CpuBackend::compute_node(const graph::Graph& graph, TensorId node,
                                std::span<const Address> addresses) {
  const KernelEntry entry = kernel_of(graph[node].operation);
  if (entry.kernel == nullptr) return Status::ok();
  if (!sched::has_addresses(graph, node, addresses))
    return {Code::kInvalidArgument, "a tensor that is not empty has a null address"};
  const KernelCall call = call_of(graph, node, addresses);
  const std::uint64_t units = entry.units(call);
  const auto parts = static_cast<unsigned>(std::min<std::uint64_t>(units, workers_.threads()));
  std::vector<Status> results(parts);
  const std::function<void(unsigned)> work = [&](unsigned part) {
    const std::uint64_t begin = units * part / parts, end = units * (part + 1) / parts;
    const bool has_room =
        with_host_memory([&] { results[part] = entry.kernel(call, begin, end, scratch_[part]); });
    if (!has_room) results[part] = {Code::kHostOutOfMemory, "no host memory to compute a node in"};
  };
  workers_.run(parts, work);
  for (const Status& result : results) {
    if (!result.is_ok()) return result;
  }
  return Status::ok();
}

}  // namespace ashlar::cpu
