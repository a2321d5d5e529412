// The switches of a mutated tree: which mutant is on is chosen when a program starts, so that one build holds them all.
//
// Purpose: ci/mutation/rewrite.py writes calls of these functions around expressions and statements of src/ashlar. Each mutant has
// a number from 1. The environment variable ASHLAR_MUTANT selects one; unset, the program is the unchanged one. With
// ASHLAR_MUTANT=record:FILE no mutant is on, and byte N of FILE (a file of at least kMutantsMax bytes) becomes 1 when the place
// of mutant N is reached; the file is mapped, so that a process that aborts has recorded too.
// Constant evaluation always sees the unchanged code: mutants of it would need one build each.
// Thread safety: the selection is read once, during static initialisation.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <type_traits>

namespace ashlar_mutation {

inline constexpr int kMutantsMax = 65536;

inline unsigned char* reached = nullptr;

inline int selected_at_start() noexcept {
  const char* text = std::getenv("ASHLAR_MUTANT");
  if (text == nullptr) return 0;
  if (std::strncmp(text, "record:", 7) != 0) return std::atoi(text);
  const int file = ::open(text + 7, O_RDWR);
  if (file < 0) std::abort();
  void* map = ::mmap(nullptr, kMutantsMax, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (map == MAP_FAILED) std::abort();
  reached = static_cast<unsigned char*>(map);
  return -1;
}

inline int selected = selected_at_start();

inline bool is_selected(int id) noexcept {
  if (reached != nullptr) {
    __atomic_store_n(&reached[id], static_cast<unsigned char>(1), __ATOMIC_RELAXED);
    return false;
  }
  return selected == id;
}

/// True if mutant `id` is on.
constexpr bool on(int id) noexcept {
  if (std::is_constant_evaluated()) return false;
  return selected != 0 && is_selected(id);
}

// Comparisons: mutant `id` shifts the bound, mutant `id + 1` negates.
template <class L, class R>
constexpr bool less(int id, const L& l, const R& r) {
  return on(id) ? l <= r : on(id + 1) ? l >= r : l < r;
}
template <class L, class R>
constexpr bool less_equal(int id, const L& l, const R& r) {
  return on(id) ? l < r : on(id + 1) ? l > r : l <= r;
}
template <class L, class R>
constexpr bool greater(int id, const L& l, const R& r) {
  return on(id) ? l >= r : on(id + 1) ? l <= r : l > r;
}
template <class L, class R>
constexpr bool greater_equal(int id, const L& l, const R& r) {
  return on(id) ? l > r : on(id + 1) ? l < r : l >= r;
}
template <class L, class R>
constexpr bool equal(int id, const L& l, const R& r) {
  return on(id) ? l != r : l == r;
}
template <class L, class R>
constexpr bool not_equal(int id, const L& l, const R& r) {
  return on(id) ? l == r : l != r;
}

// Arithmetic: the operator's opposite.
template <class L, class R>
constexpr auto add(int id, const L& l, const R& r) {
  return on(id) ? l - r : l + r;
}
template <class L, class R>
constexpr auto subtract(int id, const L& l, const R& r) {
  return on(id) ? l + r : l - r;
}
template <class L, class R>
constexpr auto multiply(int id, const L& l, const R& r) {
  return on(id) ? l + r : l * r;
}
template <class L, class R>
constexpr auto divide(int id, const L& l, const R& r) {
  return on(id) ? l * r : l / r;
}
template <class L, class R>
constexpr auto remainder(int id, const L& l, const R& r) {
  return on(id) ? l / r : l % r;
}
template <class L, class R>
constexpr auto bit_and(int id, const L& l, const R& r) {
  return on(id) ? l | r : l & r;
}
template <class L, class R>
constexpr auto bit_or(int id, const L& l, const R& r) {
  return on(id) ? l & r : l | r;
}
template <class L, class R>
constexpr auto shift_left(int id, const L& l, const R& r) {
  return on(id) ? l >> r : l << r;
}
template <class L, class R>
constexpr auto shift_right(int id, const L& l, const R& r) {
  return on(id) ? l << r : l >> r;
}

// Literals: mutant `id` is one more, mutant `id + 1` one less.
template <class T>
constexpr T literal(int id, T value) {
  return on(id) ? static_cast<T>(value + 1) : on(id + 1) ? static_cast<T>(value - 1) : value;
}
template <class T>
constexpr T literal_zero(int id, T value) {
  return on(id) ? static_cast<T>(value + 1) : value;
}
constexpr bool flip(int id, bool value) { return on(id) != value; }

/// A lock guard that mutant `id` never takes.
template <class Guard>
class MaybeGuard {
 public:
  template <class... Args>
  explicit MaybeGuard(int id, Args&&... args) {
    if (!on(id)) guard_.emplace(static_cast<Args&&>(args)...);
  }

 private:
  std::optional<Guard> guard_;
};

}  // namespace ashlar_mutation
