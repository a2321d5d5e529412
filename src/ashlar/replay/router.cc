#include <ashlar/replay/router.h>

#include <algorithm>
#include <mutex>

namespace ashlar::inline v0::replay {
namespace {

struct ThreadWay {
  const Router* router = nullptr;
  Route* route = nullptr;
};
thread_local ThreadWay thread_way;

}  // namespace

Result<Address> Router::allocate(Bytes size, const Stream& stream) noexcept {
  Route* const route = thread_way.router == this ? thread_way.route : way_of(stream);
  return route == nullptr ? base_.allocate(size, stream) : route->allocate(size, stream);
}

Route* Router::way_of(const Stream& stream) const noexcept {
  if (way_count_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::shared_lock lock(mutex_);
  for (const Way& way : ways_) {
    if (way.route != nullptr && is_same_stream(way.stream, stream)) return way.route;
  }
  return nullptr;
}

/// Calls the owner, and the base for what no route owns. The lock is not held meanwhile: an
/// upstream may call back.
template <class F>
Status Router::pass_on(Address address, F&& call) noexcept {
  if (address.is_null() || route_count_.load(std::memory_order_acquire) == 0) return call(base_);
  Route* owner = nullptr;
  {
    const std::shared_lock lock(mutex_);
    const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const Route* route) {
      return route != nullptr && route->owns(address);
    });
    if (found != routes_.end()) owner = *found;
  }
  return owner == nullptr ? call(base_) : call(*owner);
}

Status Router::free(Address address) noexcept {
  return pass_on(address, [&](Upstream& owner) { return owner.free(address); });
}

Status Router::record_use(Address address, const Stream& stream) noexcept {
  return pass_on(address, [&](Upstream& owner) { return owner.record_use(address, stream); });
}

Status Router::attach(Route& route) noexcept {
  const std::unique_lock lock(mutex_);
  ASHLAR_REQUIRE(std::find(routes_.begin(), routes_.end(), &route) == routes_.end(), Code::kBusy,
                 "attached already");
  const auto room = std::find(routes_.begin(), routes_.end(), nullptr);
  ASHLAR_REQUIRE(room != routes_.end(), Code::kBusy, "as many routes as there may be are attached");
  *room = &route;
  route_count_.fetch_add(1, std::memory_order_release);
  return Status::ok();
}

void Router::detach(Route& route) noexcept {
  const std::unique_lock lock(mutex_);
  const auto found = std::find(routes_.begin(), routes_.end(), &route);
  if (found == routes_.end()) return;
  *found = nullptr;
  route_count_.fetch_sub(1, std::memory_order_release);
}

Status Router::install(const Stream& stream, Route& route) noexcept {
  const std::unique_lock lock(mutex_);
  ASHLAR_REQUIRE(std::find(routes_.begin(), routes_.end(), &route) != routes_.end(),
                 Code::kNotFound, "the route is not attached");
  Way* room = nullptr;
  for (Way& way : ways_) {
    ASHLAR_REQUIRE(way.route == nullptr || !is_same_stream(way.stream, stream), Code::kBusy,
                   "the stream has a guard already");
    if (way.route == nullptr && room == nullptr) room = &way;
  }
  ASHLAR_REQUIRE(room != nullptr, Code::kBusy, "as many streams as may have guards have one");
  *room = {stream, &route};
  way_count_.fetch_add(1, std::memory_order_release);
  return Status::ok();
}

void Router::remove(const Stream& stream) noexcept {
  const std::unique_lock lock(mutex_);
  const auto found = std::find_if(ways_.begin(), ways_.end(), [&](const Way& way) {
    return way.route != nullptr && is_same_stream(way.stream, stream);
  });
  ASHLAR_ASSERT(found != ways_.end(), "plan: a guard's stream has no way");
  *found = {};
  way_count_.fetch_sub(1, std::memory_order_release);
}

ThreadGuard::ThreadGuard(Router& router, Route& route) noexcept {
  if (thread_way.router != nullptr) {
    status_ = {Code::kBusy, "the thread has a guard already"};
    return;
  }
  const std::shared_lock lock(router.mutex_);
  if (std::find(router.routes_.begin(), router.routes_.end(), &route) == router.routes_.end()) {
    status_ = {Code::kNotFound, "the route is not attached"};
    return;
  }
  thread_way = {&router, &route};
}

ThreadGuard::~ThreadGuard() {
  if (status_.is_ok()) thread_way = {};
}

StreamGuard::StreamGuard(Router& router, Route& route, const Stream& stream) noexcept
    : router_(router), stream_(stream), status_(router.install(stream, route)) {}

StreamGuard::~StreamGuard() {
  if (status_.is_ok()) router_.remove(stream_);
}

}  // namespace ashlar::inline v0::replay
