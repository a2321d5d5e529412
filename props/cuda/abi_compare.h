// Compares functions, values and fields that the library declares with those of a toolkit's header, at compile time.
//
// Thread safety: nothing runs.
#pragma once

#include <type_traits>
#include <utility>

namespace ashlar::props {

/// Are the two passed alike: of one size, and both or neither a pointer?
template <class Ours, class Theirs>
constexpr bool passed_alike() {
  return sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
         std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
}

template <class Ours, class Theirs>
struct AreAlike : std::false_type {};
template <class Answer, class TheirAnswer, class... Ours, class... Theirs>
struct AreAlike<Answer (*)(Ours...), TheirAnswer (*)(Theirs...)> {
  static constexpr bool value() {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs)) return false;
    else return passed_alike<Answer, TheirAnswer>() && (passed_alike<Ours, Theirs>() && ...);
  }
};

#define ASHLAR_SAME_CALL(Group, ours, theirs)                                                   \
  static_assert(::ashlar::props::AreAlike<decltype(Group::ours), decltype(&(theirs))>::value(), \
                #theirs)
#define ASHLAR_SAME_VALUE(ours, theirs) \
  static_assert(static_cast<long>(ours) == static_cast<long>(theirs), #theirs)
#define ASHLAR_SAME_FIELD(Ours, ours, Theirs, theirs)                                           \
  static_assert(offsetof(Ours, ours) == offsetof(Theirs, theirs) &&                             \
                    sizeof(std::declval<Ours>().ours) == sizeof(std::declval<Theirs>().theirs), \
                #Theirs "::" #theirs)

}  // namespace ashlar::props
