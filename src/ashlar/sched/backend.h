// A backend: memory, an ordered queue of work, and kernels for some operations.
//
// Purpose: what the scheduler asks of a device. src/cpu_backend runs graphs on the processor,
// src/cuda_backend on a GPU.
// Thread safety: one thread at a time for each backend; different backends from different threads.
//
// Order. Work that is enqueued on one backend runs in that order. Work on two backends has no order but
// by events: record() marks a point of one queue, wait() holds back another queue until it is reached.
// A blocking call returns once everything enqueued before it on that backend, and the call itself, is
// done.
// Memory. Addresses are of a *memory*; backends with one memory id can use each other's buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/graph/graph.h>
#include <ashlar/graph/memory_request.h>

namespace ashlar::inline v0::sched {

/// A memory that one or more backends work in. Unique in the process.
using MemoryId = Id<struct MemoryIdTag, std::uint64_t>;
/// A memory id that no other memory has. Thread safety: any thread. Never throws.
ASHLAR_API MemoryId new_memory_id() noexcept;

/// A buffer of a backend's memory.
struct BufferRange {
  Address base;  ///< its first byte
  Bytes size;    ///< of all of it
};

class Backend;

/// A point in a backend's queue.
class ASHLAR_API BackendEvent {
 public:
  /// Of `owner`, which outlives the event.
  explicit BackendEvent(const Backend& owner) : owner_(&owner) {}
  virtual ~BackendEvent() = default;
  BackendEvent(const BackendEvent&) = delete;
  BackendEvent& operator=(const BackendEvent&) = delete;
  /// The backend that made it.
  const Backend& owner() const noexcept { return *owner_; }

 private:
  const Backend* owner_;
};

/// Nodes that a backend has prepared to run again and again.
class ASHLAR_API BackendPlan {
 public:
  virtual ~BackendPlan() = default;
  /// Enqueues the nodes. Errors as Backend::compute().
  virtual Status compute() noexcept = 0;
};

/// A device that holds tensors and computes nodes. No member throws but where it says so.
class ASHLAR_API Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  /// For reports and messages; the backend's own storage.
  virtual std::string_view name() const noexcept = 0;
  /// The memory that its buffers are in.
  virtual MemoryId memory() const noexcept = 0;
  /// Whether its kernels can read tensors of that memory where they are.
  virtual bool can_read(MemoryId memory) const noexcept { return memory == this->memory(); }
  /// Alignment, limit and sizes of its buffers.
  virtual graph::BufferType buffer_type() const noexcept = 0;

  /// A buffer of `size` bytes, above zero. kOutOfMemory: there is no room. kHostOutOfMemory: none for the record of it.
  virtual Result<Address> make_buffer(Bytes size) noexcept = 0;
  /// A buffer of the caller's memory, which stays the caller's. kUnsupported: not on this backend.
  /// kInvalidArgument: null, empty, not aligned as buffer_type() says, or partly in another buffer.
  virtual Result<Address> adopt_buffer(void* pointer, Bytes size) noexcept;
  /// Ends a buffer of either kind. kUnknownPointer, without effect: there is none at `base`.
  /// REQUIRES: no work that uses it is enqueued.
  virtual Status release_buffer(Address base) noexcept = 0;

  /// The buffer of its memory in which that byte lies. kUnknownPointer: there is none.
  virtual Result<BufferRange> buffer_at(Address at) const noexcept;
  /// A tensor has been given that memory, and nothing is written there yet: for a backend that keeps something with each
  /// tensor. The scheduler tells the first backend of the memory, once for each tensor of a schedule that has memory of
  /// its own. An error is that of reserve().
  virtual Status init_tensor(const graph::Graph& graph, graph::TensorId tensor,
                             Address at) noexcept;
  /// What init_tensor() was told no longer holds. Nothing that uses the tensor is enqueued.
  virtual void free_tensor(graph::TensorId tensor, Address at) noexcept;
  /// Whether the bytes lie in one of the buffers of its memory.
  virtual bool holds(Address begin, Bytes size) const noexcept = 0;
  /// Whether the host reads and writes its memory directly.
  virtual bool is_host_memory() const noexcept { return false; }

  /// Enqueues a copy from the host, of which `from` stays as it is until it is done. kWrongDevice: the
  /// bytes are in no buffer of this backend's memory.
  virtual Status set_async(Address to, std::span<const std::byte> from) noexcept = 0;
  /// Enqueues a copy to the host, which is there once it is done. Errors as set_async().
  virtual Status get_async(std::span<std::byte> to, Address from) noexcept = 0;
  /// set_async(), and waits for it.
  Status set(Address to, std::span<const std::byte> from) noexcept;
  /// get_async(), and waits for it.
  Status get(std::span<std::byte> to, Address from) noexcept;
  /// Enqueues here a copy from a buffer of this backend's memory to one of `target`'s. It has no order
  /// with `target`'s queue. kUnsupported: there is no such path between the two. kWrongDevice: the bytes
  /// are not in the buffers of these memories.
  virtual Status copy_async(Address from, const Backend& target, Address to, Bytes size) noexcept;
  /// Waits for everything that is enqueued. Returns the first error of it since the last call.
  virtual Status synchronize() noexcept = 0;

  /// A new event. kUnsupported: the backend has none; then its work is done when enqueued, or
  /// synchronize() has to be called.
  virtual Result<std::unique_ptr<BackendEvent>> make_event() noexcept;
  /// Enqueues the event's point here. kWrongDevice: it is of another backend.
  virtual Status record(BackendEvent& event) noexcept;
  /// Lets what is enqueued here afterwards wait for the event's last record(). kWrongDevice: it is of
  /// a backend whose events this one cannot wait for.
  virtual Status wait(const BackendEvent& event) noexcept;
  /// Waits on the host for the event's last record(). kWrongDevice: it is of another backend.
  virtual Status synchronize(const BackendEvent& event) noexcept;

  /// Whether it has a kernel for that node.
  virtual bool supports(const graph::Graph& graph, graph::TensorId node) const noexcept = 0;
  /// Whether it should compute the node though a weight of it lies elsewhere: it is so much faster
  /// that copying the weight pays.
  virtual bool prefers(const graph::Graph& graph, graph::TensorId node) const noexcept;
  /// Enqueues the nodes, in that order. `addresses` is by tensor. The graph, the nodes and the
  /// addresses stay as they are until they are done. kUnsupported: there is no kernel for one of them;
  /// none is enqueued. kInvalidArgument, here or from synchronize(): an index in a tensor is out of
  /// range, or a tensor that is not empty has a null address. Other addresses are not checked: they are in
  /// memory that the backend reads, as the scheduler sees to (S1).
  virtual Status compute(const graph::Graph& graph, std::span<const graph::TensorId> nodes,
                         std::span<const Address> addresses) noexcept = 0;
  /// Prepares compute() of these arguments. Errors as compute(). REQUIRES: the graph, the nodes and the addresses stay
  /// as they are until the plan is destroyed. Throws std::bad_alloc.
  virtual Result<std::unique_ptr<BackendPlan>> make_plan(const graph::Graph& graph,
                                                         std::span<const graph::TensorId> nodes,
                                                         std::span<const Address> addresses);
};

/// Whether every tensor of the node that is not empty has an address: what compute() checks. Thread safety: any thread.
/// Never throws. Cost: linear in the sources.
ASHLAR_API bool has_addresses(const graph::Graph& graph, graph::TensorId node,
                              std::span<const Address> addresses) noexcept;

/// Copies `size` bytes by copy_async() if the backends have such a path, else by set() from host memory, else through the
/// host, a mebibyte at a time. Waits for everything enqueued on both first, and for the copy. Errors as those
/// calls, kHostOutOfMemory.
ASHLAR_API Status copy_between(Backend& from_backend, Address from, Backend& to_backend, Address to,
                               Bytes size) noexcept;

}  // namespace ashlar::inline v0::sched
