// Tells the users' observers which memory comes under addresses and goes away.
//
// Thread safety: any thread, with no spin lock held; the reclaim lock may be. So what an observer calls is
// bounded as in a memory pool's filter (FilterScope).
#pragma once

#include <ashlar/cache/observer_scope.h>
#include <ashlar/cache/shared_state.h>

namespace ashlar::inline v0::cache {

inline void tell_mapping(SharedState& shared, const MappingEvent& event) noexcept {
  if (shared.mappings.observers.empty()) return;
  const FilterScope scope(shared.running.observers, shared.running.filters);
  for (const auto& observer : shared.mappings.observers) observer(event);
}

/// Memory that is about to go away. The observers are told at once, and again at the end if it has stayed.
class UnmappingScope {
 public:
  UnmappingScope(SharedState& shared, const MappingEvent& event) noexcept
      : shared_(shared), event_(event) {
    event_.change = MappingChange::kUnmapping;
    tell_mapping(shared_, event_);
  }
  ~UnmappingScope() {
    if (is_gone_) return;
    event_.change = MappingChange::kMapped;
    tell_mapping(shared_, event_);
  }
  UnmappingScope(const UnmappingScope&) = delete;
  UnmappingScope& operator=(const UnmappingScope&) = delete;

  void set_gone() noexcept { is_gone_ = true; }

 private:
  SharedState& shared_;
  MappingEvent event_;
  bool is_gone_ = false;
};

}  // namespace ashlar::inline v0::cache
