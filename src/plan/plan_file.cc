#include <ashlar/plan/plan_file.h>

#include <algorithm>
#include <optional>

#include <ashlar/plan/fnv.h>
#include <ashlar/plan/overlap.h>

namespace ashlar {
inline namespace v0 {
namespace plan {
namespace {

constexpr std::string_view kMagic = "\x89"
                                    "APLAN\r\n";
constexpr std::uint64_t kHeaderBytes = 32;
constexpr std::uint64_t kSpaceBytes = 16;
constexpr std::uint64_t kOffsetBytes = 8;
constexpr std::uint64_t kChecksumBytes = 8;

void put(std::string* out, std::uint64_t number, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) out->push_back(static_cast<char>((number >> (8 * i)) & 0xff));
}

/// Takes numbers from the front. REQUIRES: there are as many bytes.
std::uint64_t take(std::string_view* from, unsigned bytes) {
  std::uint64_t number = 0;
  for (unsigned i = 0; i < bytes; ++i) number |= std::uint64_t{static_cast<unsigned char>((*from)[i])} << (8 * i);
  from->remove_prefix(bytes);
  return number;
}

std::uint64_t checksum(std::string_view bytes) {
  Fnv sum;
  sum.add(bytes);
  return sum.value();
}

std::string id_of(const Problem& problem, std::uint32_t buffer) {
  return "buffer " + (problem.ids.empty() ? std::to_string(buffer) : problem.ids[buffer]);
}

std::optional<std::string> fault_of_offset(const Problem& problem, const Plan& plan, std::uint32_t b) {
  const Buffer& buffer = problem.buffers[b];
  const Bytes offset = plan.offsets[b];
  if (offset == kNowhere) return id_of(problem, b) + " has no offset";
  if (offset > kPlanBytesMax - buffer.size) return id_of(problem, b) + " ends over 2^62";
  if (offset % buffer.alignment != 0) return id_of(problem, b) + " is not aligned";
  if (buffer.pinned != kNowhere && offset != buffer.pinned) return id_of(problem, b) + " is not where it is pinned";
  return std::nullopt;
}

std::optional<std::string> fault_of_groups(const Problem& problem, const Plan& plan) {
  std::vector<std::optional<std::uint32_t>> first(problem.groups.size());
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    if (problem.buffers[b].group == kNoGroup) continue;
    std::optional<std::uint32_t>& one = first[problem.buffers[b].group];
    if (!one) one = b;
    if (plan.offsets[*one] != plan.offsets[b]) {
      return id_of(problem, *one) + " and " + id_of(problem, b) + " are of one alias group and apart";
    }
  }
  return std::nullopt;
}

std::optional<std::string> fault_of_answers(const Problem& problem, const Plan& plan) {
  std::vector<Bytes> peaks(problem.spaces.size());
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    Bytes& peak = peaks[problem.buffers[b].space];
    peak = std::max(peak, plan.offsets[b] + problem.buffers[b].size);
  }
  for (std::size_t s = 0; s < peaks.size(); ++s) {
    const std::string space = "space " + std::to_string(s);
    if (plan.spaces[s].peak != peaks[s]) return space + " has another peak than is stated";
    if (plan.spaces[s].lower_bound > peaks[s]) return space + " has a lower bound above its peak";
  }
  return std::nullopt;
}

// Why it is not a valid plan of the problem, if so.
std::optional<std::string> fault_of_plan(const Problem& problem, const Plan& plan) {
  if (plan.offsets.size() != problem.buffers.size()) return "there are not as many offsets as buffers";
  if (plan.spaces.size() != problem.spaces.size()) return "there are not as many answers as spaces";
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    if (const auto fault = fault_of_offset(problem, plan, b)) return fault;
  }
  if (const auto fault = fault_of_groups(problem, plan)) return fault;
  if (const auto overlap = first_overlap(problem, plan.offsets)) {
    return id_of(problem, overlap->earlier) + " and " + id_of(problem, overlap->later) + " are live together and overlap";
  }
  return fault_of_answers(problem, plan);
}

// The plan that the bytes say, or why they say none.
struct Decoded {
  Plan plan;
  std::string reason;
};

Decoded fail(std::string reason) { return {{}, std::move(reason)}; }

Decoded decode(std::string_view bytes, const Problem& problem) {
  std::string_view rest = bytes;
  if (rest.substr(0, kMagic.size()) != kMagic) return fail("not a plan file");
  rest.remove_prefix(kMagic.size());
  if (rest.size() < 4) return fail("cut off");
  const std::uint64_t version = take(&rest, 4);
  if (version != kPlanFileVersion) return fail("version " + std::to_string(version) + ", and this reads only version 1");
  if (bytes.size() < kHeaderBytes + kChecksumBytes) return fail("cut off");
  const std::uint64_t spaces = take(&rest, 4);
  const std::uint64_t buffers = take(&rest, 8);
  const std::uint64_t hash = take(&rest, 8);
  if (buffers > kBuffersMax) return fail("damaged: more than 2^28 buffers");
  const std::uint64_t size = kHeaderBytes + spaces * kSpaceBytes + buffers * kOffsetBytes + kChecksumBytes;
  if (bytes.size() < size) {
    return fail("cut off after " + std::to_string(bytes.size()) + " of " + std::to_string(size) + " bytes");
  }
  if (bytes.size() > size) return fail("something follows the plan");
  std::string_view sum = bytes.substr(size - kChecksumBytes);
  if (take(&sum, 8) != checksum(bytes.substr(0, size - kChecksumBytes))) return fail("damaged: its checksum is another");
  if (hash != hash_of(problem) || buffers != problem.buffers.size() || spaces != problem.spaces.size()) {
    return fail("made for another problem");
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
  ASHLAR_REQUIRE(!fault_of_plan(problem, plan), Code::kInvalidArgument, "not a valid plan of the problem");
  std::string out(kMagic);
  out.reserve(kHeaderBytes + plan.spaces.size() * kSpaceBytes + plan.offsets.size() * kOffsetBytes + kChecksumBytes);
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

Result<Plan> parse_plan(std::string_view bytes, std::string_view name, const Problem& problem, std::string* error) {
  Decoded decoded = decode(bytes, problem);
  if (decoded.reason.empty()) return std::move(decoded.plan);
  if (error != nullptr) *error = std::string(name) + ": " + decoded.reason;
  return {Code::kMalformed, "not a plan of this problem"};
}

}  // namespace plan
}  // namespace v0
}  // namespace ashlar
