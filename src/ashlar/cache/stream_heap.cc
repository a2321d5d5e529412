#include <ashlar/cache/stream_heap.h>

#include <new>
#include <utility>

namespace ashlar::inline v0::cache {

bool StreamHeap::grow_nodes() noexcept {
  auto* slab = new (std::nothrow) NodeSlab;
  if (slab == nullptr) return false;
  slab->before = std::move(slabs_);
  slabs_.reset(slab);
  for (UseNode& node : slab->nodes) give_node(&node);
  return true;
}

UseNode* StreamHeap::take_node() noexcept {
  ASHLAR_ASSERT(spare_ != nullptr, "heap(3): no spare use node");
  UseNode* node = spare_;
  spare_ = node->next;
  --spare_nodes_;
  const EventSlot left = node->slot;
  *node = UseNode{};
  node->slot = left;
  return node;
}

void StreamHeap::give_node(UseNode* node) noexcept {
  if (node->stream != nullptr) node->stream->references.fetch_sub(1, std::memory_order_release);
  node->stream = nullptr;
  node->next = spare_;
  spare_ = node;
  ++spare_nodes_;
}

void StreamHeap::enqueue(UseNode* node) noexcept {
  node->next = nullptr;
  node->tail = node;
  put_queue(node);
}

void StreamHeap::add_unrecorded(UseNode* node) noexcept {
  node->next = unrecorded_;
  unrecorded_ = node;
}

UseNode* StreamHeap::take_unrecorded() noexcept {
  UseNode* list = unrecorded_;
  unrecorded_ = nullptr;
  return list;
}

unsigned StreamHeap::take_queues(UseNode** out, unsigned n) noexcept {
  unsigned taken = 0;
  while (taken < n && queues_ != nullptr) {
    out[taken++] = queues_;
    queues_ = queues_->next_queue;
  }
  if (queues_ == nullptr) queues_last_ = nullptr;
  return taken;
}

namespace {
/// Two queues of one stream as one.
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

void StreamHeap::put_queue(UseNode* head) noexcept {
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
  if (queues_last_ != nullptr) queues_last_->next_queue = head;
  else queues_ = head;
  queues_last_ = head;
}

UseNode* StreamHeap::advance_queue(UseNode* head) noexcept {
  UseNode* next = head->next;
  if (next != nullptr) next->tail = head->tail;
  return next;
}

void StreamHeap::finish_use(UseNode* node) noexcept {
  block::BlockPool& in = pool(node->is_small);
  const bool is_small = node->is_small;
  const block::BlockIndex at = node->block;
  ASHLAR_ASSERT(in.state(at) == BlockState::kPending,
                "C7: finishing a use of a block that is not pending");
  UseNode* first = first_use(in.user(at));
  for (UseNode** link = &first;; link = &(*link)->sibling) {
    ASHLAR_ASSERT(*link != nullptr, "heap(4): the node is not among its block's uses");
    if (*link != node) continue;
    *link = node->sibling;
    break;
  }
  in.set_user(at, as_word(first));
  give_node(node);
  if (first != nullptr) return;
  release_now(is_small, at);
}

UseNode* StreamHeap::take_oldest_queue() noexcept {
  UseNode* oldest = oldest_pending();
  UseNode* before = nullptr;
  for (UseNode* head = queues_; head != nullptr; before = head, head = head->next_queue) {
    if (head != oldest) continue;
    (before == nullptr ? queues_ : before->next_queue) = head->next_queue;
    if (queues_last_ == head) queues_last_ = before;
    break;
  }
  return oldest;
}

UseNode* StreamHeap::oldest_pending() const noexcept {
  UseNode* oldest = nullptr;
  for (UseNode* head = queues_; head != nullptr; head = head->next_queue) {
    if (oldest == nullptr || head->sequence < oldest->sequence) oldest = head;
  }
  return oldest;
}

bool StreamHeap::is_forgotten() const noexcept {
  const bool is_over = life.load() != Life::kAlive && completed == kEverything && mark_count == 0 &&
                       !capturing.load();
  const bool is_empty = small_.counts().segments + large_.counts().segments == 0 &&
                        !has_pending() && !has_unrecorded();
  return is_over && is_empty && pins == 0 && in_hand == 0 && recording.load() == 0 &&
         references.load(std::memory_order_acquire) == 0;
}

bool StreamHeap::begin_passing() noexcept {
  if (!is_forgotten()) return false;
  const Life dead = life.exchange(Life::kPassing);
  // Asked once more: who names the dead stream, by mistake, raises one of these before it looks at
  // `life`, and needs no lock of this heap for that.
  if (references.load() == 0 && recording.load() == 0) return true;
  life.store(dead);
  return false;
}

void StreamHeap::serve(const Stream& another) noexcept {
  ASHLAR_ASSERT(life.load() == Life::kPassing,
                "heap(6): something may be left of the stream before");
  stats.bury_peaks();
  epoch = 1;
  newest_release = completed = 0;
  mark_failed = false;
  stream = another;
  life.store(Life::kAlive);
  id.store(another.id.value(), std::memory_order_release);
}

void StreamHeap::destroy_events() noexcept {
  for (EpochMark& mark : marks) static_cast<void>(EventPool::destroy(mark.slot));
  for (NodeSlab* slab = slabs_.get(); slab != nullptr; slab = slab->before.get()) {
    for (UseNode& node : slab->nodes) static_cast<void>(EventPool::destroy(node.slot));
  }
}

const char* StreamHeap::validate() const noexcept {
  for (const block::BlockPool* each : {&small_, &large_}) {
    if (const char* broken = each->validate()) return broken;
  }
  if (spare_nodes_ < live_blocks()) return "heap(3): fewer spare nodes than live blocks";
  std::uint64_t spare = 0;
  for (const UseNode* node = spare_; node != nullptr; node = node->next) ++spare;
  if (spare != spare_nodes_) return "heap(3): the spare list is not what its counter says";
  for (const UseNode* head = queues_; head != nullptr; head = head->next_queue) {
    for (const UseNode* node = head; node != nullptr; node = node->next) {
      if (node->stream != head->stream) return "heap(5): a queue mixes streams";
      if (pool(node->is_small).state(node->block) != BlockState::kPending)
        return "heap(4): a queued block is not pending";
      if (node->next != nullptr && node->next->sequence < node->sequence)
        return "heap(5): a queue is not in order";
      if (node->next == nullptr && head->tail != node)
        return "heap(5): a queue's tail is not its last";
    }
  }
  if (newest_release > epoch) return "heap(1): a stamp from the future";
  return nullptr;
}

}  // namespace ashlar::inline v0::cache
