#include <ashlar/cache/pending_uses.h>

#include <utility>

#include <ashlar/base/step_count.h>
#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

void PendingUses::add_unrecorded(UseNode* node) noexcept {
  node->next = nullptr;
  (unrecorded_ == nullptr ? unrecorded_ : unrecorded_last_->next) = node;
  unrecorded_last_ = node;
  ++unrecorded_count_;
}

UseNode* PendingUses::take_unrecorded(std::uint64_t n) noexcept {
  if (unrecorded_ == nullptr || n == 0) return nullptr;
  if (n >= unrecorded_count_) {
    unrecorded_count_ = 0;
    return std::exchange(unrecorded_, nullptr);
  }
  unrecorded_count_ -= n;
  UseNode* last = unrecorded_;
  for (; n > 1; --n, last = last->next) count_steps(1);
  UseNode* const taken = std::exchange(unrecorded_, last->next);
  last->next = nullptr;
  return taken;
}

}  // namespace ashlar::inline v0::cache
