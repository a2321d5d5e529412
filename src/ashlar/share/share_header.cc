#include <ashlar/share/share_header.h>

#include <algorithm>
#include <cstring>

namespace ashlar::inline v0::share {
namespace {

using device::ShareKind;

constexpr char kMagic[8] = {'a', 's', 'h', 'l', 'a', 'r', 'S', 'H'};
constexpr std::uint32_t kVersion = 1;

/// The fixed part of the bytes; numbers have the host's byte order, which is little-endian wherever there is a GPU.
struct Fixed {
  char magic[8];
  std::uint32_t version;
  std::uint32_t parts;
  std::uint64_t exporter;
  std::int32_t process;
  std::uint32_t reserved;
  device::DeviceUuid uuid;
  std::uint64_t segment;
  std::uint64_t segment_size;
  std::uint64_t parts_offset;
  std::uint64_t offset;
  std::uint64_t size;
};
struct FixedPart {
  std::uint64_t size;
  std::uint64_t generation;
  std::uint32_t kind;
  std::int32_t descriptor;
  std::array<std::byte, 64> bytes;
};
static_assert(sizeof(Fixed) == 88 && sizeof(FixedPart) == 88, "no padding is written");

Status malformed(const char* why) { return {Code::kMalformed, why}; }

bool is_kind(std::uint32_t kind) {
  return kind >= static_cast<std::uint32_t>(ShareKind::kSegment) &&
         kind <= static_cast<std::uint32_t>(ShareKind::kFabric);
}

Status check(const ShareHeader& header) {
  constexpr Status kOutside{Code::kMalformed,
                            "shared memory: the parts are not inside of their segment"};
  if (header.parts_offset > header.segment_size) return kOutside;
  const Bytes room = header.segment_size - header.parts_offset;
  Bytes sum;
  for (const SharedPart& part : header.parts) {
    if (part.size == Bytes{}) return malformed("shared memory: a part without a size");
    if (part.size > room - sum) return kOutside;
    sum += part.size;
    if (part.handle.kind == ShareKind::kSegment && header.parts.size() > 1)
      return malformed("shared memory: a segment among other parts");
  }
  if (header.size == Bytes{} || header.size > sum || header.offset > sum - header.size)
    return malformed("shared memory: the allocation is not inside of its parts");
  // So there is a part.
  const bool is_segment = header.parts.front().handle.kind == ShareKind::kSegment;
  if (is_segment && sum != header.segment_size)
    return malformed("shared memory: not the whole segment");
  return Status::ok();
}

}  // namespace

std::size_t ShareHeader::descriptors() const noexcept {
  return static_cast<std::size_t>(std::count_if(
      parts.begin(), parts.end(),
      [](const SharedPart& part) { return part.handle.kind == ShareKind::kDescriptor; }));
}

std::size_t header_bytes_max() noexcept {
  return sizeof(Fixed) + std::size_t{kSharedPartsMax} * sizeof(FixedPart);
}

std::vector<std::byte> write_header(const ShareHeader& header) {
  Fixed fixed{};
  std::memcpy(fixed.magic, kMagic, sizeof kMagic);
  fixed.version = kVersion;
  fixed.parts = static_cast<std::uint32_t>(header.parts.size());
  fixed.exporter = header.exporter;
  fixed.process = header.process;
  fixed.uuid = header.uuid;
  fixed.segment = header.segment.value();
  fixed.segment_size = header.segment_size.count();
  fixed.parts_offset = header.parts_offset.count();
  fixed.offset = header.offset.count();
  fixed.size = header.size.count();
  std::vector<std::byte> bytes(sizeof fixed + header.parts.size() * sizeof(FixedPart));
  std::memcpy(bytes.data(), &fixed, sizeof fixed);
  std::byte* at = bytes.data() + sizeof fixed;
  for (const SharedPart& part : header.parts) {
    const FixedPart written{part.size.count(), part.generation,
                            static_cast<std::uint32_t>(part.handle.kind), part.handle.descriptor,
                            part.handle.bytes};
    std::memcpy(at, &written, sizeof written);
    at += sizeof written;
  }
  return bytes;
}

Result<ShareHeader> read_header(std::span<const std::byte> bytes) {
  Fixed fixed{};
  if (bytes.size() < sizeof fixed) return malformed("shared memory: the header is cut short");
  std::memcpy(&fixed, bytes.data(), sizeof fixed);
  if (std::memcmp(fixed.magic, kMagic, sizeof kMagic) != 0)
    return malformed("shared memory: not a header of Ashlar's");
  if (fixed.version != kVersion || fixed.reserved != 0)
    return malformed("shared memory: a header of another version of Ashlar");
  if (fixed.parts > kSharedPartsMax ||
      bytes.size() != sizeof fixed + fixed.parts * sizeof(FixedPart))
    return malformed("shared memory: the header has another length than its parts");
  ShareHeader header;
  header.exporter = fixed.exporter;
  header.process = fixed.process;
  header.uuid = fixed.uuid;
  header.segment = Address{fixed.segment};
  header.segment_size = Bytes{fixed.segment_size};
  header.parts_offset = Bytes{fixed.parts_offset};
  header.offset = Bytes{fixed.offset};
  header.size = Bytes{fixed.size};
  header.parts.reserve(fixed.parts);
  for (std::uint32_t i = 0; i < fixed.parts; ++i) {
    FixedPart read{};
    std::memcpy(&read, bytes.data() + sizeof fixed + i * sizeof read, sizeof read);
    if (!is_kind(read.kind)) return malformed("shared memory: a part of an unknown kind");
    header.parts.push_back({Bytes{read.size},
                            read.generation,
                            {static_cast<ShareKind>(read.kind), read.descriptor, read.bytes}});
  }
  if (const Status status = check(header); !status.is_ok()) return status;
  return header;
}

}  // namespace ashlar::inline v0::share
