#include "spec/gpu/lane_queue.h"

namespace ashlar::spec {
namespace {

// Doubles a ring that holds the items numbered from..to, keeping each at its number modulo the
// size.
template <class T>
void grow_ring(std::vector<T>& ring, std::uint64_t from, std::uint64_t to) {
  std::vector<T> larger(ring.empty() ? 16 : ring.size() * 2);
  for (std::uint64_t i = from; i < to; ++i)
    larger[i & (larger.size() - 1)] = ring[i & (ring.size() - 1)];
  ring.swap(larger);
}

}  // namespace

void LaneQueue::push(Entry entry, std::span<const Touch> touches) {
  if (pending() == entries_.size()) grow_ring(entries_, done_, enqueued_);
  while (touches_in_ - touches_out_ + touches.size() > touches_.size())
    grow_ring(touches_, touches_out_, touches_in_);
  for (const Touch& touch : touches) touches_[touches_in_++ & (touches_.size() - 1)] = touch;
  entry.touches = static_cast<std::uint32_t>(touches.size());
  entries_[enqueued_ & (entries_.size() - 1)] = entry;
  ++enqueued_;
}

bool LaneQueue::touches(Address at, Bytes size) const {
  for (std::uint64_t i = touches_out_; i < touches_in_; ++i) {
    const Touch& touch = touch_at(i);
    if (touch.at < at + size && at < touch.at + touch.size) return true;
  }
  return false;
}

void LaneQueue::append_contents(std::vector<std::uint64_t>* out) const {
  out->push_back(pending());
  std::uint64_t next_touch = touches_out_;
  for (std::uint64_t place = done_; place < enqueued_; ++place) {
    const Entry& entry = entries_[place & (entries_.size() - 1)];
    out->push_back(static_cast<std::uint64_t>(entry.kind));
    out->push_back(entry.a);
    for (std::uint32_t i = 0; i < entry.touches; ++i, ++next_touch) {
      out->push_back(touch_at(next_touch).at.value());
      out->push_back(touch_at(next_touch).size.count());
    }
  }
}

}  // namespace ashlar::spec
