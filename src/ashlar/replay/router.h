// Which way a request goes: to a recorder, to a replay, or straight down.
//
// Purpose: a program allocates through one router for good; guards send a thread's or a stream's
// allocations another way for a while (row REC-6). A free goes to whoever handed the address out,
// from whatever thread, with or without a guard.
// Thread safety: any thread. A guard ends on the thread that made it.
//
// Rules:
//   (1) a thread's guard goes before a stream's;
//   (2) one guard a thread, over all routers, and one a stream: kBusy for more. There is no
//       nesting;
//   (3) a route stays attached for as long as memory that it handed out may be freed; guards only
//       choose who allocates.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <shared_mutex>

#include <ashlar/base/export.h>
#include <ashlar/base/upstream.h>

namespace ashlar::inline v0::replay {

/// An upstream that knows what it handed out.
class ASHLAR_API Route : public Upstream {
 public:
  /// Is a free or a use of this address its affair?
  virtual bool owns(Address address) const noexcept = 0;
};

class ASHLAR_API Router final : public Upstream {
 public:
  /// Routes attached at one time; guards of streams at one time.
  static constexpr std::size_t kRoutesMax = 64;

  /// `base` outlives this; this outlives its routes and guards.
  explicit Router(Upstream& base) noexcept : base_(base) {}
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override;
  Status free(Address address) noexcept override;
  Status record_use(Address address, const Stream& stream) noexcept override;

  /// Frees and uses of what `route` owns go to it from now on. kBusy: attached already, or
  /// kRoutesMax are.
  Status attach(Route& route) noexcept;
  /// REQUIRES: no guard sends to it any more.
  void detach(Route& route) noexcept;

 private:
  friend class ThreadGuard;
  friend class StreamGuard;
  struct Way {
    Stream stream;
    Route* route = nullptr;
  };

  Route* way_of(const Stream& stream) const noexcept;
  Status install(const Stream& stream, Route& route) noexcept;
  void remove(const Stream& stream) noexcept;
  template <class F>
  Status pass_on(Address address, F&& call) noexcept;

  Upstream& base_;
  mutable std::shared_mutex mutex_;  // of what follows
  std::array<Route*, kRoutesMax> routes_{};
  std::array<Way, kRoutesMax> ways_{};
  std::atomic<std::size_t> route_count_{0};
  std::atomic<std::size_t> way_count_{0};
};

/// Sends what the calling thread allocates through `router` to `route`, for a scope.
class ASHLAR_API ThreadGuard {
 public:
  /// status() says kBusy, and nothing is sent, where the thread has a guard already; kNotFound
  /// where `route` is not attached.
  ThreadGuard(Router& router, Route& route) noexcept;
  ~ThreadGuard();
  ThreadGuard(const ThreadGuard&) = delete;
  ThreadGuard& operator=(const ThreadGuard&) = delete;
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

/// The same for what anybody allocates on `stream`.
class ASHLAR_API StreamGuard {
 public:
  /// status() says kBusy where the stream has a guard, or kRoutesMax streams have; kNotFound where
  /// `route` is not attached.
  StreamGuard(Router& router, Route& route, const Stream& stream) noexcept;
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;
  Status status() const noexcept { return status_; }

 private:
  Router& router_;
  const Stream stream_;
  Status status_;
};

}  // namespace ashlar::inline v0::replay
