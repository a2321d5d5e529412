// Codec of the byte form: see bytes.h.
#include "spec/ops/bytes.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

namespace {

constexpr std::uint64_t kByteCallKinds = 22;
constexpr std::uint64_t kByteCodes = 32;
constexpr std::uint64_t kCountMax = 0x3fff;
constexpr std::uint64_t kSelectable = 0x10000;  ///< pointers that a u16 can select among
/// freed names stay eligible until this many newer ones are freed
constexpr std::size_t kFreedKept = 64;
constexpr std::uint64_t kBoundaries[8] = {0,         512,       1u << 20, 2u << 20,
                                          10u << 20, 20u << 20, 1u << 30, std::uint64_t{1} << 60};
/// no composed configuration string is longer
constexpr std::size_t kTextUsual = 128;
// Fragments of configuration strings. Never reorder them: a stored byte is an index. An
// empty one means "not set".
constexpr const char* kFragments[4][4] = {
    {"", "reuse:own", "reuse:completed", "reuse:ordered"},
    {"", "wait_ms:0", "wait_ms:5", "wait_ms:forever"},
    {"backing:segments", "max_split_size_mb:21", "max_split_size_mb:64", "max_split_size_mb:200"},
    {"", "roundup_power2_divisions:4", "roundup_power2_divisions:[1:2,2:4,64:8,>:1]",
     "per_process_memory_fraction:0.5"}};
// In the bits above the third row's, in place of which it stands: no block is oversize with pages.
constexpr unsigned kPagesAt = 18;
constexpr const char* kPages[4] = {"", "backing:pages", "backing:pages,move:never",
                                   "backing:pages,headroom_mb:12"};
// Above those, and heard with pages alone: a step that repeats is remembered after few requests.
constexpr unsigned kPlacesAt = 20;
constexpr const char* kPlaces[4] = {"", ",place_context:1", ",place_context:2", ",place_context:8"};

// In two of the bits above, and heard with pages alone.
constexpr unsigned kGrowthAt = 22;
constexpr const char* kGrowth[4] = {"", ",move:eager", ",first_growth_mb:4", ",page_handles_max:6"};
// Likewise.
constexpr unsigned kMovesAt = 28;
constexpr const char* kMoves[4] = {"", ",move_us_max:0", ",move_us_max:64", ",move_us_max:640"};
// In the bits above the last row's.
constexpr unsigned kCollectsAt = 26;
constexpr const char* kCollects[4] = {"", "garbage_collection_threshold:0.05",
                                      "garbage_collection_threshold:0.4",
                                      "garbage_collection_threshold:0.9"};
// In the highest bits, and heard without pages alone.
constexpr unsigned kCachesAt = 30;
constexpr const char* kCaches[4] = {"", "cache:off", "cache:on", "backend:cudaMallocAsync"};

// Sizes.

std::uint64_t decode_size(std::uint8_t c, std::uint32_t d) {
  const auto low8 =
      static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int8_t>(d & 0xff)));
  const auto low16 =
      static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int16_t>(d & 0xffff)));
  if (c < 64) return (std::uint64_t{1} << c) + low8;
  if (c < 128) return d & (~std::uint32_t{0} >> (31 - (c - 64) / 2));
  if (c < 192) return kBoundaries[c % 8] + low16 * ((c & 8) != 0 ? 512 : 1);
  return std::uint64_t{d} << (c - 192);
}

struct SizeBytes {
  std::uint8_t c;
  std::uint32_t d;
};

SizeBytes encode_size(std::uint64_t size) {
  if (size <= 0xffffffffu) return {127, static_cast<std::uint32_t>(size)};
  // modulo 2^64: sizes that nearly wrap
  const auto from_boundary = static_cast<std::int64_t>(size);
  if (from_boundary < 0 && from_boundary >= -32768)
    return {128, static_cast<std::uint32_t>(from_boundary & 0xffff)};
  for (std::uint8_t c = 32; c < 64; ++c) {
    const auto off = static_cast<std::int64_t>(size - (std::uint64_t{1} << c));
    if (off >= -128 && off <= 127) return {c, static_cast<std::uint32_t>(off & 0xff)};
  }
  const auto off = static_cast<std::int64_t>(size - kBoundaries[7]);
  if (off >= -32768 && off <= 32767) return {135, static_cast<std::uint32_t>(off & 0xffff)};
  const auto shift = static_cast<unsigned>(32 - std::countl_zero(size));
  return {static_cast<std::uint8_t>(192 + shift), static_cast<std::uint32_t>(size >> shift)};
}

// Counts and texts.

std::uint64_t decode_count(std::uint32_t n) {
  return n < 0x8000 ? n % 8 : n < 0xc000 ? n % 256 : n - 0xc000;
}

std::uint32_t encode_count(std::uint64_t n) {
  if (n < 8) return static_cast<std::uint32_t>(n);
  if (n < 256) return static_cast<std::uint32_t>(0x8000 + n);
  return static_cast<std::uint32_t>(0xc000 + std::min(n, kCountMax));
}

std::string compose_text(std::uint32_t selectors) {
  std::string text;
  if ((selectors & 0xcfff0303) != 0) text.reserve(kTextUsual);
  const auto add = [&text](const char* fragment) {
    if (*fragment == 0) return;
    if (!text.empty()) text += ',';
    text += fragment;
  };
  const char* const pages = kPages[(selectors >> kPagesAt) % 4];
  for (unsigned i = 0; i < 4; ++i) {
    const bool is_paged = i == 2 && *pages != 0;
    add(is_paged ? pages : kFragments[i][(selectors >> (8 * i)) % 4]);
    if (!is_paged) continue;
    text += kPlaces[(selectors >> kPlacesAt) % 4];
    text += kGrowth[(selectors >> kGrowthAt) % 4];
    text += kMoves[(selectors >> kMovesAt) % 4];
  }
  add(kCollects[(selectors >> kCollectsAt) % 4]);
  if (*pages == 0) add(kCaches[selectors >> kCachesAt]);
  return text;
}

/// The selector, at that bit, of the longest of the four fragments that is a part of the text between commas.
std::uint32_t select_fragment(const std::string& text, const char* const (&fragments)[4],
                              unsigned at) {
  std::uint32_t selector = 0;
  std::size_t longest = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    std::string part = fragments[i];
    if (part.empty()) continue;
    if (part.front() != ',') part.insert(0, 1, ',');
    if (part.size() <= longest || ("," + text + ",").find(part + ',') == std::string::npos)
      continue;
    longest = part.size();
    selector = i;
  }
  return selector << at;
}

std::uint32_t select_text(const std::string& text) {
  std::uint32_t selectors =
      select_fragment(text, kPages, kPagesAt) | select_fragment(text, kPlaces, kPlacesAt) |
      select_fragment(text, kGrowth, kGrowthAt) | select_fragment(text, kMoves, kMovesAt) |
      select_fragment(text, kCollects, kCollectsAt) | select_fragment(text, kCaches, kCachesAt);
  for (unsigned i = 0; i < 4; ++i) selectors |= select_fragment(text, kFragments[i], 8 * i);
  return compose_text(selectors) == text ? selectors : 0;
}

// Arguments.

constexpr std::uint8_t width_of(ArgKind kind) {
  switch (kind) {
    case ArgKind::kNone:
    case ArgKind::kNewPointer: return 0;
    case ArgKind::kPointer:
    case ArgKind::kCount: return 2;
    case ArgKind::kText: return 4;
    case ArgKind::kBytes: return 5;
    default: return 1;
  }
}

/// The number of values that a one-byte argument has.
constexpr std::uint64_t choices_of(ArgKind kind) {
  switch (kind) {
    case ArgKind::kStream: return kByteStreams;
    case ArgKind::kDevice: return kByteDevices;
    case ArgKind::kCallKind: return kByteCallKinds;
    case ArgKind::kCode: return kByteCodes;
    case ArgKind::kFailure: return kFailureCodes.size();
    case ArgKind::kAccess:
    case ArgKind::kMode: return 3;
    case ArgKind::kFailMode: return 2;
    default: return kByteNames;
  }
}

// Pointers.

enum class Names : std::uint8_t { kLive, kFreed, kPending };

/// Which set an op takes its pointer from, and which set it puts it in.
struct Motion {
  Names from = Names::kLive;
  Names to = Names::kLive;
};

Motion motion_of(std::uint8_t s) {
  switch (s) {
    case slot::kFree:
    case slot::kFreeOn:
    case slot::kPoolFree: return {Names::kLive, Names::kFreed};
    case slot::kFreeStale:
    case slot::kPinStale:
    case slot::kUseStale: return {Names::kFreed, Names::kFreed};
    case slot::kPoolDefer: return {Names::kLive, Names::kPending};
    case slot::kPoolComplete: return {Names::kPending, Names::kFreed};
    default: return {};
  }
}

/// Tracks which pointers are bound after each op, without running the ops.
class Binder {
 public:
  Binder() {
    for (const Names set : {Names::kLive, Names::kFreed})
      names_[static_cast<unsigned>(set)].reserve(kUsual);
  }
  void bind(std::uint64_t name) { names_[0].push_back(name); }
  const std::vector<std::uint64_t>& eligible(Names set) const {
    return names_[static_cast<unsigned>(set)];
  }
  void move(const Motion& motion, std::size_t position) {
    if (motion.from == motion.to) return;
    std::vector<std::uint64_t>& from = names_[static_cast<unsigned>(motion.from)];
    std::vector<std::uint64_t>& to = names_[static_cast<unsigned>(motion.to)];
    to.push_back(from[position]);
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(position));
    std::vector<std::uint64_t>& freed = names_[static_cast<unsigned>(Names::kFreed)];
    if (freed.size() > kFreedKept) freed.erase(freed.begin());
  }
  /// Is it too late for this op? conf and device come before the first alloc.
  bool is_late(std::uint8_t s) const {
    return (s == slot::kConf || s == slot::kDevice) && is_begun_;
  }
  void begin() { is_begun_ = true; }

 private:
  static constexpr std::size_t kUsual = 32;
  std::vector<std::uint64_t> names_[3];
  bool is_begun_ = false;
};

bool is_in(std::uint8_t s, unsigned first, unsigned last) { return s >= first && s <= last; }

/// Calls `each(op, selector)` for every op that can run, with pointers renumbered. `selector` is
/// the pointer's place among the eligible ones.
template <class Each>
void walk_canonical(const OpFile& file, Each&& each) {
  Binder names;
  std::vector<std::uint64_t> old_names;  // by new number
  std::uint64_t next = 0;
  for (const Op& given : file.ops) {
    if (!slot_drives(file.subject, given.slot) || names.is_late(given.slot)) continue;
    const OpInfo& info = op_info(given.slot);
    Op op;
    op.slot = given.slot;
    std::size_t selector = 0;
    bool can_run = true;
    for (unsigned i = 0; i < kArgsMax && can_run; ++i) {
      const std::uint64_t value = given.arg[i];
      switch (info.args[i]) {
        case ArgKind::kNone: break;
        case ArgKind::kNewPointer: op.arg[i] = next; break;
        case ArgKind::kPointer: {
          const std::vector<std::uint64_t>& set = names.eligible(motion_of(op.slot).from);
          can_run = false;
          for (std::size_t k = std::min<std::size_t>(set.size(), kSelectable);
               k-- > 0 && !can_run;) {
            if (old_names[set[k]] != value) continue;
            can_run = true;
            selector = k;
            op.arg[i] = set[k];
          }
          break;
        }
        case ArgKind::kBytes: {
          const SizeBytes bytes = encode_size(value);
          op.arg[i] = decode_size(bytes.c, bytes.d);
          break;
        }
        case ArgKind::kCount: op.arg[i] = std::min(value, kCountMax); break;
        case ArgKind::kText: op.text = compose_text(select_text(given.text)); break;
        default: op.arg[i] = value % choices_of(info.args[i]); break;
      }
    }
    if (!can_run) continue;
    for (unsigned i = 0; i < kArgsMax; ++i) {
      if (info.args[i] == ArgKind::kPointer) names.move(motion_of(op.slot), selector);
      if (info.args[i] != ArgKind::kNewPointer) continue;
      names.bind(next++);
      names.begin();
      old_names.push_back(given.arg[i]);
    }
    each(op, selector);
  }
}

}  // namespace

bool slot_drives(Subject subject, std::uint8_t s) {
  if (op_info(s).slot == slot::kNop) return false;
  switch (subject) {
    case Subject::kCache:
      return is_in(s, 1, 39) || is_in(s, 52, 59) || is_in(s, 160, 167) || is_in(s, 170, 173) ||
             is_in(s, 175, 177);
    case Subject::kPool: return is_in(s, 40, 51) || is_in(s, 140, 142);
    case Subject::kGpu: return is_in(s, 60, 127) || s == slot::kGraphLaunchRuns;
  }
  return false;
}

std::size_t encoded_size(std::uint8_t s) {
  const OpInfo& info = op_info(s);
  return 1u + width_of(info.args[0]) + width_of(info.args[1]) + width_of(info.args[2]) +
         width_of(info.args[3]);
}

void decode_ops(Subject subject, std::span<const std::uint8_t> bytes, OpFile* file,
                std::size_t ops_max) {
  file->subject = subject;
  file->ops.clear();
  file->lines.clear();
  Binder names;
  std::uint64_t next = 0;
  std::size_t at = 0;
  const auto take = [&](unsigned width) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i, ++at) {
      if (at < bytes.size()) value |= std::uint64_t{bytes[at]} << (8 * i);
    }
    return value;
  };
  while (at < bytes.size() && file->ops.size() < ops_max) {
    Op op;
    op.slot = bytes[at];
    const OpInfo& info = op_info(op.slot);
    if (!slot_drives(subject, op.slot) || names.is_late(op.slot)) {
      at += encoded_size(op.slot);
      continue;
    }
    ++at;
    bool can_run = true;
    for (unsigned i = 0; i < kArgsMax; ++i) {
      const ArgKind kind = info.args[i];
      const std::uint64_t raw = take(width_of(kind));
      switch (kind) {
        case ArgKind::kNone: break;
        case ArgKind::kNewPointer:
          op.arg[i] = next;
          names.bind(next++);
          names.begin();
          break;
        case ArgKind::kPointer: {
          const Motion motion = motion_of(op.slot);
          const std::vector<std::uint64_t>& set = names.eligible(motion.from);
          can_run = can_run && !set.empty();
          if (!can_run) break;
          const std::size_t position = raw % std::min<std::size_t>(set.size(), kSelectable);
          op.arg[i] = set[position];
          names.move(motion, position);
          break;
        }
        case ArgKind::kBytes:
          op.arg[i] =
              decode_size(static_cast<std::uint8_t>(raw), static_cast<std::uint32_t>(raw >> 8));
          break;
        case ArgKind::kCount: op.arg[i] = decode_count(static_cast<std::uint32_t>(raw)); break;
        case ArgKind::kText: op.text = compose_text(static_cast<std::uint32_t>(raw)); break;
        default: op.arg[i] = raw % choices_of(kind); break;
      }
    }
    if (can_run) file->ops.push_back(std::move(op));
  }
}

OpFile decode_ops(Subject subject, std::span<const std::uint8_t> bytes, std::size_t ops_max) {
  OpFile file;
  decode_ops(subject, bytes, &file, ops_max);
  return file;
}

OpFile canonical_ops(const OpFile& file) {
  OpFile canonical;
  canonical.subject = file.subject;
  walk_canonical(file, [&](const Op& op, std::size_t) { canonical.ops.push_back(op); });
  return canonical;
}

std::vector<std::uint8_t> encode_ops(const OpFile& file) {
  std::vector<std::uint8_t> bytes;
  const auto put = [&](std::uint64_t value, unsigned width) {
    for (unsigned i = 0; i < width; ++i)
      bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  walk_canonical(file, [&](const Op& op, std::size_t selector) {
    put(op.slot, 1);
    const OpInfo& info = op_info(op.slot);
    for (unsigned i = 0; i < kArgsMax; ++i) {
      const ArgKind kind = info.args[i];
      std::uint64_t value = op.arg[i];
      if (kind == ArgKind::kPointer) value = selector;
      if (kind == ArgKind::kCount) value = encode_count(value);
      if (kind == ArgKind::kText) value = select_text(op.text);
      if (kind == ArgKind::kBytes) {
        const SizeBytes size = encode_size(value);
        value = size.c | std::uint64_t{size.d} << 8;
      }
      put(value, width_of(kind));
    }
  });
  return bytes;
}

}  // namespace ashlar::spec
