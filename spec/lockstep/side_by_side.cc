// See side_by_side.h.
#include "spec/lockstep/side_by_side.h"

#include <cstdio>

namespace ashlar::spec {

namespace {

constexpr const char* kStates[] = {"free", "live", "pending", "in transfer", "unmapped"};
constexpr std::size_t kColumn = 44;

std::string line(const char* mark, std::string left, const std::string& right) {
  left.resize(std::max(left.size(), kColumn), ' ');
  return std::string(mark) + " " + left + "| " + right + "\n";
}

std::string describe(std::uint64_t address, std::uint64_t size, const char* state) {
  char text[96];
  std::snprintf(text, sizeof text, "%#llx +%llu %s", static_cast<unsigned long long>(address),
                static_cast<unsigned long long>(size), state);
  return text;
}

}  // namespace

std::string side_by_side(const CacheModel& model, DeviceId device,
                         const cache::Snapshot& snapshot) {
  std::string text = line(" ", "model", "subject");
  auto own = model.device(device).books.owned().begin();
  const auto end = model.device(device).books.owned().end();
  const auto only_model = [&](std::uint64_t before) {  // blocks below that address
    for (; own != end && own->first < before; ++own) {
      text += line(
          "!", describe(own->first, own->second.size, own->second.is_pending ? "pending" : "live"),
          "");
    }
  };
  for (const cache::SnapshotSegment& segment : snapshot.segments) {
    only_model(segment.base.value());
    text += line(" ", "",
                 "segment " + std::to_string(segment.ordinal) + " " +
                     describe(segment.base.value(), segment.size.count(),
                              segment.pool == PoolId::kSmall ? "small" : "large") +
                     " of stream " + std::to_string(segment.stream.value()));
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const cache::SnapshotBlock& block = snapshot.blocks[segment.block_first + i];
      only_model(block.address.value());
      std::string left;
      bool is_same = block.state == BlockState::kFree;
      if (own != end && own->first == block.address.value()) {
        const OwnedBlock& known = own->second;
        left = describe(own->first, known.size, known.is_pending ? "pending" : "live");
        is_same = known.size == block.size.count() &&
                  (known.is_pending ? block.state != BlockState::kLive
                                    : block.state == BlockState::kLive);
        ++own;
      }
      text += line(is_same ? " " : "!", left,
                   describe(block.address.value(), block.size.count(),
                            kStates[static_cast<unsigned>(block.state) % kBlockStates]));
    }
  }
  only_model(~std::uint64_t{0});
  return text;
}

}  // namespace ashlar::spec
