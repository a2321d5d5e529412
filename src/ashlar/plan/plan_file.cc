#include <ashlar/plan/plan_file.h>

#include <optional>

#include <ashlar/plan/fnv.h>
#include <ashlar/plan/plan_fault.h>

namespace ashlar::inline v0::plan {
namespace {

constexpr std::string_view kMagic =
    "\x89"
    "APLAN\r\n";
constexpr std::uint64_t kHeaderBytes = 32;
constexpr std::uint64_t kSpaceBytes = 16;
constexpr std::uint64_t kOffsetBytes = 8;
constexpr std::uint64_t kChecksumBytes = 8;

void put(std::string* out, std::uint64_t number, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    out->push_back(static_cast<char>((number >> (8 * i)) & 0xff));
}

/// Takes a number from the front of `*from`. REQUIRES: it has that many bytes.
std::uint64_t take(std::string_view* from, unsigned bytes) {
  std::uint64_t number = 0;
  for (unsigned i = 0; i < bytes; ++i)
    number |= std::uint64_t{static_cast<unsigned char>((*from)[i])} << (8 * i);
  from->remove_prefix(bytes);
  return number;
}

std::uint64_t checksum(std::string_view bytes) {
  Fnv sum;
  sum.add(bytes);
  return sum.value();
}

// The plan that the bytes hold, or why they hold none.
struct Decoded {
  Plan plan;
  std::string reason;  // empty: there is a plan
};

Decoded fail(std::string reason) { return {{}, std::move(reason)}; }

Decoded decode(std::string_view bytes, const Problem& problem) {
  std::string_view rest = bytes;
  if (rest.substr(0, kMagic.size()) != kMagic) return fail("not a plan file");
  rest.remove_prefix(kMagic.size());
  if (rest.size() < 4) return fail("cut off");
  const std::uint64_t version = take(&rest, 4);
  if (version != kPlanFileVersion)
    return fail("version " + std::to_string(version) + "; only version 1 can be read");
  if (bytes.size() < kHeaderBytes + kChecksumBytes) return fail("cut off");
  const std::uint64_t spaces = take(&rest, 4);
  const std::uint64_t buffers = take(&rest, 8);
  const std::uint64_t hash = take(&rest, 8);
  if (buffers > kBuffersMax) return fail("damaged: more than 2^28 buffers");
  const std::uint64_t size =
      kHeaderBytes + spaces * kSpaceBytes + buffers * kOffsetBytes + kChecksumBytes;
  if (bytes.size() < size) {
    return fail("cut off after " + std::to_string(bytes.size()) + " of " + std::to_string(size) +
                " bytes");
  }
  if (bytes.size() > size) return fail("bytes follow the plan");
  std::string_view sum = bytes.substr(size - kChecksumBytes);
  if (take(&sum, 8) != checksum(bytes.substr(0, size - kChecksumBytes)))
    return fail("damaged: the checksum does not match");
  if (hash != hash_of(problem) || buffers != problem.buffers.size() ||
      spaces != problem.spaces.size()) {
    return fail("made for another problem: other buffers, or another alignment");
  }
  Decoded out;
  for (std::uint64_t s = 0; s < spaces; ++s) {
    const Bytes peak{take(&rest, 8)};
    out.plan.spaces.push_back({peak, Bytes{take(&rest, 8)}});
  }
  out.plan.offsets.reserve(buffers);
  for (std::uint64_t b = 0; b < buffers; ++b) out.plan.offsets.emplace_back(take(&rest, 8));
  out.reason = fault_of_plan(problem, out.plan).value_or("");
  return out;
}

}  // namespace

Result<std::string> format_plan(const Plan& plan, const Problem& problem) {
  ASHLAR_REQUIRE(!fault_of_plan(problem, plan), Code::kInvalidArgument,
                 "not a valid plan of the problem");
  std::string out(kMagic);
  out.reserve(kHeaderBytes + plan.spaces.size() * kSpaceBytes + plan.offsets.size() * kOffsetBytes +
              kChecksumBytes);
  put(&out, kPlanFileVersion, 4);
  put(&out, plan.spaces.size(), 4);
  put(&out, plan.offsets.size(), 8);
  put(&out, hash_of(problem), 8);
  for (const SpaceAnswer& space : plan.spaces) {
    put(&out, space.peak.count(), 8);
    put(&out, space.lower_bound.count(), 8);
  }
  for (const Bytes offset : plan.offsets) put(&out, offset.count(), 8);
  put(&out, checksum(out), 8);
  return out;
}

Result<Plan> parse_plan(std::string_view bytes, std::string_view name, const Problem& problem,
                        std::string* error) {
  Decoded decoded = decode(bytes, problem);
  if (decoded.reason.empty()) return std::move(decoded.plan);
  if (error != nullptr) *error = std::string(name) + ": " + decoded.reason;
  return {Code::kMalformed, "not a plan of this problem"};
}

}  // namespace ashlar::inline v0::plan
