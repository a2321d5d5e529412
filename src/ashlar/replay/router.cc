#include <ashlar/replay/router.h>

#include <algorithm>
#include <mutex>
#include <thread>

namespace ashlar::inline v0::replay {
namespace {

struct ThreadRoute {
  const Router* router = nullptr;
  Route* route = nullptr;
};
thread_local ThreadRoute thread_route;  // of the thread's guard

}  // namespace

Result<Address> Router::allocate(Bytes size, const Stream& stream) noexcept {
  Route* const route = thread_route.router == this ? thread_route.route : route_of(stream);
  return route == nullptr ? base_.allocate(size, stream) : route->allocate(size, stream);
}

Route* Router::route_of(const Stream& stream) const noexcept {
  if (stream_route_count_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::shared_lock lock(mutex_);
  for (const StreamRoute& entry : stream_routes_) {
    if (entry.route != nullptr && is_same_stream(entry.stream, stream)) return entry.route;
  }
  return nullptr;
}

/// Calls the route that owns the address, or the base. The lock is not held during the call, because
/// an upstream may call back.
template <class F>
Status Router::call_owner(Address address, F&& call) noexcept {
  if (address.is_null() || route_count_.load(std::memory_order_acquire) == 0) return call(base_);
  Route* owner = nullptr;
  std::atomic<std::uint32_t>* calls = nullptr;
  {
    const std::shared_lock lock(mutex_);
    const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const Route* route) {
      return route != nullptr && route->owns(address);
    });
    if (found != routes_.end()) {
      owner = *found;
      calls = &calls_[static_cast<std::size_t>(found - routes_.begin())];
      calls->fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (owner == nullptr) return call(base_);
  const Status answer = call(*owner);
  calls->fetch_sub(1, std::memory_order_release);  // detach() waits for it
  return answer;
}

Status Router::free(Address address) noexcept {
  return call_owner(address, [&](Upstream& owner) { return owner.free(address); });
}

Status Router::record_use(Address address, const Stream& stream) noexcept {
  return call_owner(address, [&](Upstream& owner) { return owner.record_use(address, stream); });
}

Status Router::attach(Route& route) noexcept {
  const std::unique_lock lock(mutex_);
  ASHLAR_REQUIRE(std::find(routes_.begin(), routes_.end(), &route) == routes_.end(), Code::kBusy,
                 "attached already");
  // Not the place of a route that is waited for.
  std::size_t room = 0;
  while (room < kRoutesMax && (routes_[room] != nullptr || calls_[room].load() != 0)) ++room;
  ASHLAR_REQUIRE(room != kRoutesMax, Code::kBusy, "the table of routes is full");
  routes_[room] = &route;
  route_count_.fetch_add(1, std::memory_order_release);
  return Status::ok();
}

void Router::detach(Route& route) noexcept {
  std::size_t place = 0;
  {
    const std::unique_lock lock(mutex_);
    const auto found = std::find(routes_.begin(), routes_.end(), &route);
    if (found == routes_.end()) return;
    *found = nullptr;
    place = static_cast<std::size_t>(found - routes_.begin());
    route_count_.fetch_sub(1, std::memory_order_release);
  }
  // No call enters any more. Those that are under way end as their upstream's do.
  while (calls_[place].load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

Status Router::install(const Stream& stream, Route& route) noexcept {
  const std::unique_lock lock(mutex_);
  ASHLAR_REQUIRE(std::find(routes_.begin(), routes_.end(), &route) != routes_.end(),
                 Code::kNotFound, "the route is not attached");
  StreamRoute* room = nullptr;
  for (StreamRoute& entry : stream_routes_) {
    ASHLAR_REQUIRE(entry.route == nullptr || !is_same_stream(entry.stream, stream), Code::kBusy,
                   "the stream has a guard already");
    if (entry.route == nullptr && room == nullptr) room = &entry;
  }
  ASHLAR_REQUIRE(room != nullptr, Code::kBusy, "the table of stream guards is full");
  *room = {stream, &route};
  stream_route_count_.fetch_add(1, std::memory_order_release);
  return Status::ok();
}

void Router::remove(const Stream& stream) noexcept {
  const std::unique_lock lock(mutex_);
  const auto found =
      std::find_if(stream_routes_.begin(), stream_routes_.end(), [&](const StreamRoute& entry) {
        return entry.route != nullptr && is_same_stream(entry.stream, stream);
      });
  ASHLAR_ASSERT(found != stream_routes_.end(), "router: a guard's stream has no route");
  *found = {};
  stream_route_count_.fetch_sub(1, std::memory_order_release);
}

ThreadGuard::ThreadGuard(Router& router, Route& route) noexcept {
  if (thread_route.router != nullptr) {
    status_ = {Code::kBusy, "the thread has a guard already"};
    return;
  }
  const std::shared_lock lock(router.mutex_);
  if (std::find(router.routes_.begin(), router.routes_.end(), &route) == router.routes_.end()) {
    status_ = {Code::kNotFound, "the route is not attached"};
    return;
  }
  thread_route = {&router, &route};
}

ThreadGuard::~ThreadGuard() {
  if (status_.is_ok()) thread_route = {};
}

StreamGuard::StreamGuard(Router& router, Route& route, const Stream& stream) noexcept
    : router_(router), stream_(stream), status_(router.install(stream, route)) {}

StreamGuard::~StreamGuard() {
  if (status_.is_ok()) router_.remove(stream_);
}

}  // namespace ashlar::inline v0::replay
