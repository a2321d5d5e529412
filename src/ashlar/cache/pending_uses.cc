#include <ashlar/cache/pending_uses.h>

#include <new>
#include <utility>

#include <ashlar/base/step_count.h>
#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

PendingUses::~PendingUses() {
  // One by one: a chain of owners would be destroyed by recursion.
  while (slabs_) slabs_ = std::unique_ptr<NodeSlab>(slabs_->before.release());
}

bool PendingUses::grow() noexcept {
  auto* slab = new (std::nothrow) NodeSlab;
  if (slab == nullptr) return false;
  slab->before = std::move(slabs_);
  slabs_.reset(slab);
  made_count_ += kNodesPerSlab;
  for (UseNode& node : slab->nodes) give_spare(&node);
  return true;
}

UseNode* PendingUses::take_spare() noexcept {
  ASHLAR_ASSERT(spare_ != nullptr, "heap(3): no spare use node");
  UseNode* node = spare_;
  spare_ = node->next;
  --spare_count_;
  const EventSlot left = node->slot;
  const EventSlot left_aside = node->aside;
  *node = UseNode{};
  node->slot = left;
  node->aside = left_aside;
  return node;
}

void PendingUses::give_spare(UseNode* node) noexcept {
  if (node->user != nullptr) node->user->life.drop_reference();
  node->user = nullptr;
  node->next = spare_;
  spare_ = node;
  ++spare_count_;
}

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

void PendingUses::destroy_events() noexcept {
  for (NodeSlab* slab = slabs_.get(); slab != nullptr; slab = slab->before.get()) {
    for (UseNode& node : slab->nodes) {
      static_cast<void>(EventPool::destroy(node.slot));
      static_cast<void>(EventPool::destroy(node.aside));
    }
  }
}

}  // namespace ashlar::inline v0::cache
