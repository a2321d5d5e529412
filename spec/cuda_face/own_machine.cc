// A machine for programs that know nothing of it: the shared libraries in place of libcuda and libcudart make one at their first
// use, with the host's bytes behind its addresses.
//
// The environment's ASHLAR_SIM_GPU says what it has: "devices=2,memory=8GiB" (KiB, MiB or GiB, of each device). Each may be left
// out; without any there is one device with 8 GiB. Where that cannot be read, or the host lacks the addresses, there is no GPU, and
// standard error says why. The machine lasts as long as the process. Work advances by itself a little at every call, so that a
// program that polls comes to an end.
// Thread safety: the machine is made once, whoever asks first.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <ashlar/base/host_pages.h>

#include "spec/cuda_face/face_calls.h"

namespace ashlar::spec::cuda_face {
namespace {

constexpr std::uint64_t kDevicesMax = 8;  // the contexts' number, too
constexpr std::uint64_t kMemoryMax = std::uint64_t{1} << 40;
constexpr std::uint64_t kSpread = 4;  // addresses for each byte of memory: they have holes
constexpr std::uint32_t kPace = 4;    // entries that may finish at a call

struct Wanted {
  std::uint64_t devices = 1;
  std::uint64_t memory = std::uint64_t{8} << 30;
};

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || number == 0 || number > kMemoryMax) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.empty()) return number;
  const unsigned shift = unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : 64;
  if (shift == 64 || number > kMemoryMax >> shift) return std::nullopt;
  return number << shift;
}

std::optional<Wanted> wanted(std::string_view text) {
  Wanted all;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::optional<std::uint64_t> number = number_of(part.substr(equals + 1));
    if (!number.has_value()) return std::nullopt;
    if (part.substr(0, equals) == "devices" && *number <= kDevicesMax) all.devices = *number;
    else if (part.substr(0, equals) == "memory") all.memory = *number;
    else return std::nullopt;
  }
  return all;
}

SimGpu* refuse(const char* why) {
  std::fprintf(stderr, "ashlar: no simulated GPU: %s\n", why);
  return nullptr;
}

SimGpu* make_machine() {
  const char* const text = std::getenv("ASHLAR_SIM_GPU");
  const std::optional<Wanted> all = wanted(text == nullptr ? "" : text);
  if (!all.has_value()) return refuse("ASHLAR_SIM_GPU is not like devices=2,memory=8GiB");
  const std::uint64_t least = all->devices * all->memory * kSpread;
  const std::size_t size = (least + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  std::byte* const bytes = reserve_pages(size);
  if (bytes == nullptr || !commit_pages(bytes, size)) return refuse("the host lacks addresses");
  SimGpuOptions options;
  options.capacities.assign(all->devices, Bytes{all->memory});
  options.first_address = Address::of(bytes).value();
  options.adversarial = false;
  options.pace = kPace;
  auto* const machine = new SimGpu(options);  // lasts: a program's last calls come as it exits
  attach(machine);
  give_bytes(Address::of(bytes), Bytes{size});
  return machine;
}

[[maybe_unused]] const bool kIsNeeded = (make_when_needed(make_machine), true);

}  // namespace
}  // namespace ashlar::spec::cuda_face
