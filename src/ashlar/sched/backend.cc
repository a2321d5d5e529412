#include <ashlar/sched/backend.h>

#include <algorithm>
#include <atomic>
#include <new>

namespace ashlar::inline v0::sched {
namespace {

/// The bytes that a copy through the host takes at a time.
constexpr Bytes kStagingBytes = 1_MiB;

/// What compute() takes, kept: for backends that have nothing to prepare.
class RememberedNodes final : public BackendPlan {
 public:
  RememberedNodes(Backend& backend, const graph::Graph& graph,
                  std::span<const graph::TensorId> nodes, std::span<const Address> addresses)
      : backend_(backend), graph_(graph), nodes_(nodes), addresses_(addresses) {}
  Status compute() noexcept override { return backend_.compute(graph_, nodes_, addresses_); }

 private:
  Backend& backend_;
  const graph::Graph& graph_;
  const std::span<const graph::TensorId> nodes_;
  const std::span<const Address> addresses_;
};

}  // namespace

MemoryId new_memory_id() noexcept {
  static std::atomic<std::uint64_t> next{1};
  return MemoryId{next.fetch_add(1, std::memory_order_relaxed)};
}

Result<Address> Backend::adopt_buffer(void*, Bytes) noexcept {
  return {Code::kUnsupported, "the backend makes no buffers of the caller's memory"};
}

Result<BufferRange> Backend::buffer_at(Address) const noexcept {
  return {Code::kUnknownPointer, "the backend does not tell its buffers"};
}

Status Backend::init_tensor(const graph::Graph&, graph::TensorId, Address) noexcept {
  return Status::ok();
}

void Backend::free_tensor(graph::TensorId, Address) noexcept {}

Status Backend::set(Address to, std::span<const std::byte> from) noexcept {
  if (const Status status = set_async(to, from); !status.is_ok()) return status;
  return synchronize();
}

Status Backend::get(std::span<std::byte> to, Address from) noexcept {
  if (const Status status = get_async(to, from); !status.is_ok()) return status;
  return synchronize();
}

Status Backend::copy_async(Address, const Backend&, Address, Bytes) noexcept {
  return {Code::kUnsupported, "there is no direct path between the backends"};
}

Result<std::unique_ptr<BackendEvent>> Backend::make_event() noexcept {
  return {Code::kUnsupported, "the backend has no events"};
}

Status Backend::record(BackendEvent&) noexcept {
  return {Code::kWrongDevice, "an event of another backend"};
}

Status Backend::wait(const BackendEvent&) noexcept {
  return {Code::kWrongDevice, "an event of another backend"};
}

Status Backend::synchronize(const BackendEvent&) noexcept {
  return {Code::kWrongDevice, "an event of another backend"};
}

bool Backend::prefers(const graph::Graph&, graph::TensorId) const noexcept { return false; }

Result<std::unique_ptr<BackendPlan>> Backend::make_plan(const graph::Graph& graph,
                                                        std::span<const graph::TensorId> nodes,
                                                        std::span<const Address> addresses) {
  for (const graph::TensorId node : nodes) {
    if (!supports(graph, node)) return {Code::kUnsupported, "no kernel for a node"};
  }
  return std::unique_ptr<BackendPlan>(
      std::make_unique<RememberedNodes>(*this, graph, nodes, addresses));
}

bool has_addresses(const graph::Graph& graph, graph::TensorId node,
                   std::span<const Address> addresses) noexcept {
  const auto is_there = [&](graph::TensorId id) {
    return graph[id].extent == Bytes{} || !addresses[id.value()].is_null();
  };
  for (const graph::TensorId source : graph.sources(graph[node])) {
    if (source != graph::kNoTensor && !is_there(source)) return false;
  }
  return is_there(node);
}

Status copy_between(Backend& from_backend, Address from, Backend& to_backend, Address to,
                    Bytes size) noexcept {
  if (const Status status = from_backend.synchronize(); !status.is_ok()) return status;
  if (const Status status = to_backend.synchronize(); !status.is_ok()) return status;
  const Status direct = from_backend.copy_async(from, to_backend, to, size);
  if (direct.is_ok()) return from_backend.synchronize();
  if (direct.code() != Code::kUnsupported) return direct;
  const auto bytes = static_cast<std::size_t>(size.count());
  if (from_backend.is_host_memory() && from_backend.holds(from, size))
    return to_backend.set(to, {static_cast<const std::byte*>(from.pointer()), bytes});
  const std::size_t piece = static_cast<std::size_t>(std::min(size, kStagingBytes).count());
  const std::unique_ptr<std::byte[]> staging(new (std::nothrow) std::byte[piece]);
  if (staging == nullptr) return {Code::kHostOutOfMemory, "no host memory to copy through"};
  for (Bytes done; done < size;) {
    const Bytes next = std::min(size - done, Bytes{piece});
    const std::span<std::byte> part(staging.get(), static_cast<std::size_t>(next.count()));
    if (const Status status = from_backend.get(part, from + done); !status.is_ok()) return status;
    if (const Status status = to_backend.set(to + done, part); !status.is_ok()) return status;
    done += next;
  }
  return Status::ok();
}

}  // namespace ashlar::inline v0::sched
