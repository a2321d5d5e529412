// Sends requests to a recorder, to a replay, or straight to the allocator below.
//
// Purpose: a program always allocates through one router; guards send a thread's or a stream's
// allocations to a route for a while (row REC-6). A free goes to the route that made the
// allocation, from whatever thread, with or without a guard.
// Thread safety: any thread. A guard ends on the thread that made it.
//
// Rules:
//   (1) a thread's guard takes precedence over a stream's;
//   (2) a thread has at most one guard, over all routers, and a stream at most one: kBusy for more.
//       Guards do not nest;
//   (3) a route stays attached as long as memory that it allocated may be freed; guards only choose
//       the route of allocations.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <shared_mutex>

#include <ashlar/base/export.h>
#include <ashlar/base/upstream.h>

namespace ashlar::inline v0::replay {

/// An upstream that knows which addresses it has handed out.
class ASHLAR_API Route : public Upstream {
 public:
  /// Whether frees and uses of this address have to come here. Never throws. Thread safety: any
  /// thread; called under the router's lock, so it must not call the router.
  virtual bool owns(Address address) const noexcept = 0;
};

/// What a program allocates through: chooses a route for each call.
class ASHLAR_API Router final : public Upstream {
 public:
  /// The maximum number of routes attached at the same time, and of streams that have guards at the
  /// same time.
  static constexpr std::size_t kRoutesMax = 64;

  /// `base` serves every request that has no route. It outlives the router, and the router outlives
  /// its routes' attachment and its guards. Never throws.
  explicit Router(Upstream& base) noexcept : base_(base) {}
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Allocates `size` bytes by the route of the calling thread's guard, else of the stream's guard,
  /// else by the base; with its answer. Cost: O(1) without stream guards, otherwise a look at
  /// kRoutesMax entries. Never throws. Thread safety: any thread.
  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override;
  /// Frees by the route that owns the address, else by the base; with its answer. Cost: O(1) without
  /// routes, otherwise one owns() a route. Never throws. Thread safety: any thread.
  Status free(Address address) noexcept override;
  /// Records a use by the route that owns the address, else by the base; with its answer. Cost: as
  /// free(). Never throws. Thread safety: any thread.
  Status record_use(Address address, const Stream& stream) noexcept override;

  /// From now on frees and uses of addresses that `route` owns go to it. kBusy: it is attached
  /// already, or kRoutesMax routes are. Cost: O(kRoutesMax). Never throws. Thread safety: any
  /// thread.
  Status attach(Route& route) noexcept;
  /// Ends attach(), once no free or use that other threads sent there is under way: then the route may be
  /// destroyed. A no-op if the route is not attached. REQUIRES: no guard sends to it any more; not called within a call
  /// of the route. Cost: O(kRoutesMax), and those calls. Never throws. Thread safety: any thread.
  void detach(Route& route) noexcept;

 private:
  friend class ThreadGuard;
  friend class StreamGuard;
  struct StreamRoute {
    Stream stream;
    Route* route = nullptr;
  };

  Route* route_of(const Stream& stream) const noexcept;
  Status install(const Stream& stream, Route& route) noexcept;
  void remove(const Stream& stream) noexcept;
  template <class F>
  Status call_owner(Address address, F&& call) noexcept;

  Upstream& base_;
  mutable std::shared_mutex mutex_;  // guards the members below
  std::array<Route*, kRoutesMax> routes_{};
  /// By place in routes_: frees and uses under way in the route that is there, or was.
  std::array<std::atomic<std::uint32_t>, kRoutesMax> calls_{};
  std::array<StreamRoute, kRoutesMax> stream_routes_{};
  std::atomic<std::size_t> route_count_{0};
  std::atomic<std::size_t> stream_route_count_{0};
};

/// Sends what the calling thread allocates through `router` to `route`, for a scope.
class ASHLAR_API ThreadGuard {
 public:
  /// Both outlive the guard. If status() is not ok, the guard does nothing: kBusy, the thread has a
  /// guard already; kNotFound, `route` is not attached. Cost: O(kRoutesMax). Never throws.
  ThreadGuard(Router& router, Route& route) noexcept;
  /// Ends it. REQUIRES: the thread that made it. Never throws.
  ~ThreadGuard();
  ThreadGuard(const ThreadGuard&) = delete;
  ThreadGuard& operator=(const ThreadGuard&) = delete;
  /// Whether the guard is in effect, or why not.
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

/// Sends what any thread allocates through `router` on `stream` to `route`, for a scope.
class ASHLAR_API StreamGuard {
 public:
  /// Both outlive the guard. If status() is not ok, the guard does nothing: kBusy, the stream has a
  /// guard already, or kRoutesMax streams have one; kNotFound, `route` is not attached. Cost:
  /// O(kRoutesMax). Never throws.
  StreamGuard(Router& router, Route& route, const Stream& stream) noexcept;
  /// Ends it. Never throws.
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;
  /// Whether the guard is in effect, or why not.
  Status status() const noexcept { return status_; }

 private:
  Router& router_;
  const Stream stream_;
  Status status_;
};

}  // namespace ashlar::inline v0::replay
