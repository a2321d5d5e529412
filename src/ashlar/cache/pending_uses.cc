#include <ashlar/cache/pending_uses.h>

#include <new>
#include <utility>

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
  for (UseNode& node : slab->nodes) give_spare(&node);
  return true;
}

UseNode* PendingUses::take_spare() noexcept {
  ASHLAR_ASSERT(spare_ != nullptr, "heap(3): no spare use node");
  UseNode* node = spare_;
  spare_ = node->next;
  --spare_count_;
  const EventSlot left = node->slot;
  *node = UseNode{};
  node->slot = left;
  return node;
}

void PendingUses::give_spare(UseNode* node) noexcept {
  if (node->stream != nullptr) node->stream->life.drop_reference();
  node->stream = nullptr;
  node->next = spare_;
  spare_ = node;
  ++spare_count_;
}

void PendingUses::enqueue(UseNode* node) noexcept {
  node->next = nullptr;
  node->tail = node;
  put_queue(node);
}

void PendingUses::add_unrecorded(UseNode* node) noexcept {
  node->next = nullptr;
  (unrecorded_ == nullptr ? unrecorded_ : unrecorded_last_->next) = node;
  unrecorded_last_ = node;
}

UseNode* PendingUses::take_unrecorded(std::uint64_t n) noexcept {
  if (unrecorded_ == nullptr || n == 0) return nullptr;
  UseNode* last = unrecorded_;
  while (--n > 0 && last->next != nullptr) last = last->next;
  UseNode* const taken = std::exchange(unrecorded_, last->next);
  last->next = nullptr;
  return taken;
}

unsigned PendingUses::take_queues(UseNode** out, unsigned n) noexcept {
  unsigned taken = 0;
  while (taken < n && queues_ != nullptr) {
    out[taken++] = queues_;
    queues_ = queues_->next_queue;
  }
  if (queues_ == nullptr) queues_last_ = nullptr;
  return taken;
}

namespace {
/// Merges two queues of one stream, by sequence.
UseNode* merge(UseNode* a, UseNode* b) noexcept {
  if (b->tail->sequence < a->sequence) std::swap(a, b);
  if (a->tail->sequence < b->sequence) {  // nearly always
    a->tail->next = b;
    a->tail = b->tail;
    return a;
  }
  UseNode* const tail = a->tail->sequence < b->tail->sequence ? b->tail : a->tail;
  UseNode* head = nullptr;
  UseNode** link = &head;
  while (a != nullptr && b != nullptr) {
    UseNode*& older = a->sequence < b->sequence ? a : b;
    *link = older;
    link = &older->next;
    older = older->next;
  }
  *link = a != nullptr ? a : b;
  head->tail = tail;
  return head;
}
}  // namespace

void PendingUses::put_queue(UseNode* head) noexcept {
  // Another thread may have begun a queue for the same stream meanwhile.
  for (UseNode** link = &queues_; *link != nullptr; link = &(*link)->next_queue) {
    UseNode* other = *link;
    if (other->stream != head->stream) continue;
    UseNode* const next = other->next_queue;
    UseNode* const merged = merge(head, other);
    merged->next_queue = next;
    *link = merged;
    if (queues_last_ == other) queues_last_ = merged;
    return;
  }
  head->next_queue = nullptr;
  if (queues_last_ != nullptr) {
    queues_last_->next_queue = head;
  } else {
    queues_ = head;
  }
  queues_last_ = head;
}

UseNode* PendingUses::advance_queue(UseNode* head) noexcept {
  UseNode* next = head->next;
  if (next != nullptr) next->tail = head->tail;
  return next;
}

UseNode* PendingUses::oldest() const noexcept {
  UseNode* oldest = nullptr;
  for (UseNode* head = queues_; head != nullptr; head = head->next_queue) {
    if (oldest == nullptr || head->sequence < oldest->sequence) oldest = head;
  }
  return oldest;
}

UseNode* PendingUses::take_oldest_queue() noexcept {
  UseNode* const oldest_head = oldest();
  UseNode* before = nullptr;
  for (UseNode* head = queues_; head != nullptr; before = head, head = head->next_queue) {
    if (head != oldest_head) continue;
    (before == nullptr ? queues_ : before->next_queue) = head->next_queue;
    if (queues_last_ == head) queues_last_ = before;
    break;
  }
  return oldest_head;
}

unsigned PendingUses::queue_count() const noexcept {
  unsigned count = 0;
  for (const UseNode* head = queues_; head != nullptr; head = head->next_queue) ++count;
  return count;
}

std::uint64_t PendingUses::queued_count() const noexcept {
  std::uint64_t count = 0;
  for (const UseNode* head = queues_; head != nullptr; head = head->next_queue) {
    for (const UseNode* node = head; node != nullptr; node = node->next) ++count;
  }
  return count;
}

void PendingUses::destroy_events() noexcept {
  for (NodeSlab* slab = slabs_.get(); slab != nullptr; slab = slab->before.get()) {
    for (UseNode& node : slab->nodes) static_cast<void>(EventPool::destroy(node.slot));
  }
}

}  // namespace ashlar::inline v0::cache
