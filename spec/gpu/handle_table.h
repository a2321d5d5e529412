// HandleTable: items behind opaque handles. The value of a dead handle is used again at once, or
// never.
//
// Thread safety: none. Cost: every call O(1). Allocates only when more handles are live than
// `usual`, and than ever before.
// Invariants:
//   (1) A value's low byte is the table's mark, so that a handle of one kind is never mistaken for
//       another's.
//   (2) With recycling, the value removed last is the next one handed out (the worst case for a
//       caller that still has the dead handle). Without recycling, a slot's generation is part of
//       the value, so no value is handed out twice.
#pragma once

#include <cstdint>

#include <ashlar/base/assert.h>

#include "spec/gpu/sim_slots.h"

namespace ashlar::spec {

template <class T>
class HandleTable {
 public:
  /// `usual`: up to this number of live handles the table does not grow.
  HandleTable(std::uint8_t mark, bool recycle, std::size_t usual) : mark_(mark), recycle_(recycle) {
    slots_.reserve(usual);
  }

  /// Makes a slot live and returns its handle. The T is as the slot's last user left it; in a new
  /// slot it is T{}.
  std::uint64_t add() {
    const std::uint32_t index = slots_.add();
    slots_[index].alive = true;
    ++live_;
    return value_of(index);
  }
  /// The item behind the handle; nullptr if the handle is dead or another table's.
  T* find(std::uint64_t value) {
    const std::uint64_t index = (value >> 8) & 0xffffff;
    if ((value & 0xff) != mark_ || index >= slots_.size() || !slots_[index].alive) return nullptr;
    return value_of(static_cast<std::uint32_t>(index)) == value ? &slots_[index].item : nullptr;
  }
  /// REQUIRES: find(value) is not nullptr.
  void remove(std::uint64_t value) {
    const auto index = static_cast<std::uint32_t>((value >> 8) & 0xffffff);
    ASHLAR_ASSERT(slots_[index].alive, "handle table: removed twice");
    slots_[index].alive = false;
    if (!recycle_) ++slots_[index].generation;
    --live_;
    slots_.remove(index);
  }
  std::uint64_t live() const { return live_; }

  /// visit(value, item) for every live slot, in slot order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].alive) visit(value_of(i), slots_[i].item);
    }
  }

 private:
  struct Slot {
    T item{};
    std::uint32_t generation = 0;
    bool alive = false;
  };
  std::uint64_t value_of(std::uint32_t index) const {
    return (std::uint64_t{slots_[index].generation} << 32) | (std::uint64_t{index} << 8) | mark_;
  }

  SimSlots<Slot> slots_;
  std::uint64_t live_ = 0;
  std::uint8_t mark_;
  bool recycle_;
};

}  // namespace ashlar::spec
