#include <ashlar/cache/use_queues.h>

#include <utility>

#include <ashlar/base/step_count.h>

namespace ashlar::inline v0::cache {
namespace {

std::uint64_t hash_of(const StreamHeap* stream) noexcept {
  // Fibonacci hashing (Knuth, TAOCP 3, 6.4); one to one, so that two streams differ in some bit.
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(stream)) * 0x9E3779B97F4A7C15u;
}

/// Makes one queue of two of one stream: the one whose head was recorded first goes first.
UseNode* merge(UseNode* a, UseNode* b) noexcept {
  if (b->sequence < a->sequence) std::swap(a, b);
  a->queue.last->next = b;
  a->queue.last = b->queue.last;
  return a;
}

}  // namespace

UseNode** UseQueues::find(const StreamHeap* stream) noexcept {
  UseNode** link = &root_;
  for (std::uint64_t hash = hash_of(stream); *link != nullptr && (*link)->user != stream;
       hash <<= 1) {
    count_steps(1);
    link = &(*link)->queue.child[hash >> 63];
  }
  return link;
}

void UseQueues::add(UseNode* node) noexcept {
  node->next = nullptr;
  node->queue.last = node;
  put(node);
}

void UseQueues::append(UseNode* head) noexcept {
  head->queue.next = nullptr;
  head->queue.prev = last_;
  (last_ == nullptr ? first_ : last_->queue.next) = head;
  last_ = head;
}

void UseQueues::put(UseNode* head) noexcept {
  UseNode** const link = find(head->user);
  UseNode* const other = *link;
  if (other == nullptr) {
    head->queue.child[0] = head->queue.child[1] = nullptr;
    *link = head;
    append(head);
    ++count_;
    return;
  }
  // Another thread has begun a queue for the same stream meanwhile.
  const QueueLinks place = other->queue;
  UseNode* const merged = merge(head, other);
  if (merged == other) return;
  UseNode* const last = merged->queue.last;
  merged->queue = place;
  merged->queue.last = last;
  *link = merged;
  (other == first_ ? first_ : place.prev->queue.next) = merged;
  (other == last_ ? last_ : place.next->queue.prev) = merged;
}

void UseQueues::remove(UseNode* head) noexcept {
  (head == first_ ? first_ : head->queue.prev->queue.next) = head->queue.next;
  (head == last_ ? last_ : head->queue.next->queue.prev) = head->queue.prev;
  --count_;
  UseNode** const link = find(head->user);
  // A leaf below takes the head's place: it shares the bits that choose the way to there.
  UseNode** leaf = link;
  while ((*leaf)->queue.child[0] != nullptr || (*leaf)->queue.child[1] != nullptr) {
    count_steps(1);
    leaf = &(*leaf)->queue.child[(*leaf)->queue.child[0] == nullptr ? 1 : 0];
  }
  UseNode* const instead = std::exchange(*leaf, nullptr);
  if (instead == head) return;
  instead->queue.child[0] = head->queue.child[0];
  instead->queue.child[1] = head->queue.child[1];
  *link = instead;
}

unsigned UseQueues::take(UseNode** out, unsigned n) noexcept {
  unsigned taken = 0;
  while (taken < n && first_ != nullptr) {
    out[taken] = first_;
    remove(out[taken++]);
  }
  return taken;
}

UseNode* UseQueues::advance(UseNode* head) noexcept {
  UseNode* next = head->next;
  if (next != nullptr) next->queue.last = head->queue.last;
  return next;
}

UseNode* UseQueues::oldest() const noexcept {
  UseNode* oldest = nullptr;
  unsigned looks = 0;
  for (UseNode* head = first_; head != nullptr && looks < kLookedAtMax;
       head = head->queue.next, ++looks) {
    count_steps(1);
    if (oldest == nullptr || head->sequence < oldest->sequence) oldest = head;
  }
  return oldest;
}

}  // namespace ashlar::inline v0::cache
