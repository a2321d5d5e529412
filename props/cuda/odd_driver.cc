// A library in libcuda's place that answers some calls as a driver with troubles does, and has the simulated GPU's for the others.
//
// ASHLAR_ODD_DRIVER=cuInit=802,cuMemCreate=801: those functions answer with these numbers, and do nothing.
// Thread safety: as the library behind it; the variable is read at the first question for a function.
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

constexpr std::size_t kOddMax = 4;
std::array<int, kOddMax> answers{};

// Called as a function of other parameters: on the platforms that the library runs on, a callee without parameters reads none.
template <std::size_t n>
int answer() {
  return answers[n];
}
void* const kFunctions[kOddMax] = {
    reinterpret_cast<void*>(answer<0>), reinterpret_cast<void*>(answer<1>),
    reinterpret_cast<void*>(answer<2>), reinterpret_cast<void*>(answer<3>)};

/// The function that answers in that one's place; null if there is none.
void* odd_function(std::string_view name) {
  const char* const text = std::getenv("ASHLAR_ODD_DRIVER");
  std::string_view left = text == nullptr ? "" : text;
  for (std::size_t n = 0; n < kOddMax && !left.empty(); ++n) {
    const std::string_view each = left.substr(0, left.find(','));
    left.remove_prefix(each.size() == left.size() ? each.size() : each.size() + 1);
    const std::size_t equals = each.find('=');
    if (equals == std::string_view::npos || each.substr(0, equals) != name) continue;
    answers[n] = std::atoi(std::string(each.substr(equals + 1)).c_str());
    return kFunctions[n];
  }
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int cuGetProcAddress_v2(const char* name,
                                                                          void** found, int version,
                                                                          std::uint64_t flags,
                                                                          int* status) {
  using GetAddress = int (*)(const char*, void**, int, std::uint64_t, int*);
  static const auto behind = reinterpret_cast<GetAddress>(
      dlsym(dlopen(ASHLAR_LIBCUDA, RTLD_NOW | RTLD_LOCAL), "cuGetProcAddress_v2"));
  *found = odd_function(name);
  return *found != nullptr ? 0 : behind(name, found, version, flags, status);
}
