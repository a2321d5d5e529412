#include <ashlar/cache/use_nodes.h>

#include <new>
#include <utility>

#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

UseNodes::~UseNodes() {
  while (slabs_ != nullptr) delete std::exchange(slabs_, slabs_->before);
}

bool UseNodes::grow() noexcept {
  auto* slab = new (std::nothrow) NodeSlab;
  if (slab == nullptr) return false;
  slab->before = slabs_;
  if (slabs_ != nullptr) slabs_->after = slab;
  slabs_ = slab;
  made_count_ += NodeSlab::kNodes;
  for (UseNode& node : slab->nodes) {
    node.slab = slab;
    give(&node);
  }
  return true;
}

UseNode* UseNodes::take() noexcept {
  ASHLAR_ASSERT(spare_ != nullptr, "heap(3): no spare use node");
  UseNode* node = spare_;
  spare_ = node->next;
  --spare_count_;
  node->reset();
  return node;
}

void UseNodes::give(UseNode* node) noexcept {
  if (node->user != nullptr) node->user->life.drop_reference();
  node->user = nullptr;
  node->next = spare_;
  spare_ = node;
  ++spare_count_;
}

void UseNodes::remove(NodeSlab* slab) noexcept {
  if (slab->before != nullptr) slab->before->after = slab->after;
  (slab->after != nullptr ? slab->after->before : slabs_) = slab->before;
  made_count_ -= NodeSlab::kNodes;
}

void UseNodes::destroy_events() noexcept {
  for (NodeSlab* slab = slabs_; slab != nullptr; slab = slab->before) {
    for (UseNode& node : slab->nodes) static_cast<void>(node.destroy_events());
  }
}

const char* UseNodes::validate() const noexcept {
  std::uint64_t spare = 0;
  for (const UseNode* node = spare_; node != nullptr; node = node->next) ++spare;
  if (spare != spare_count_) return "heap(3): the spare list is not what its counter says";
  std::uint64_t made = 0;
  for (const NodeSlab* slab = slabs_; slab != nullptr; slab = slab->before)
    made += NodeSlab::kNodes;
  return made == made_count_ ? nullptr : "nodes(1): the slabs are not what their counter says";
}

}  // namespace ashlar::inline v0::cache
