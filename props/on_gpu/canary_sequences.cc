#include "props/on_gpu/canary_sequences.h"

#include <iterator>
#include <utility>
#include <vector>

#include "props/sequences/cache_sequences.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"

namespace ashlar::props {
namespace {

namespace slot = spec::slot;

/// Segments and pages, each way of reuse, pages that move early and late, no cache, the driver's pool. The generator's own for null.
constexpr const char* kSettings[] = {"",
                                     "backing:segments",
                                     "backing:segments,reuse:ordered",
                                     "backing:segments,wait_ms:0",
                                     "expandable_segments:True",
                                     "backing:pages,move:eager",
                                     "backing:pages,move:limit,reuse:ordered",
                                     "page_handles_max:12,move:eager",
                                     "cache:off",
                                     "backend:cudaMallocAsync",
                                     "backend:cudaMallocAsync,wait_ms:0",
                                     nullptr};

const char* settings_of(std::uint64_t seed, Planted planted) {
  switch (planted) {
    case Planted::kDroppedWait: return "backing:segments,reuse:ordered";
    case Planted::kEarlyRemap: return "backing:pages,move:eager";
    case Planted::kEarlyDone:
    case Planted::kForgottenUse:
    case Planted::kLostPool: return "backing:segments,wait_ms:0";
    case Planted::kNothing: break;
  }
  return kSettings[seed % std::size(kSettings)];
}

/// The graphs of the file's memory pools are launched again and again between its other ops.
void add_launches(std::uint32_t streams, spec::Random& random, spec::OpFile* file) {
  constexpr std::uint64_t kOneIn = 9, kPools = 4, kNewest = 3;
  std::vector<spec::Op> all;
  for (spec::Op& each : file->ops) {
    // What the file's first ops ask for is read before the world is made.
    const bool is_first = each.slot == slot::kConf || each.slot == slot::kSeed ||
                          each.slot == slot::kObserve || each.slot == slot::kDevice;
    all.push_back(std::move(each));
    if (is_first || !random.one_in(kOneIn)) continue;
    spec::Op launch;
    launch.slot = slot::kMemoryPoolLaunch;
    launch.arg = {random.below(kPools), random.below(kNewest), random.below(streams), 0};
    all.push_back(std::move(launch));
  }
  file->ops = std::move(all);
}

}  // namespace

spec::OpFile canary_sequence(std::uint64_t seed, Planted planted) {
  spec::Random random(seed ^ 0xca9a41e5);
  SequenceShape shape;
  shape.ops = 150 + static_cast<std::uint32_t>(random.below(250));
  shape.streams = 2 + static_cast<std::uint32_t>(random.below(4));
  shape.live_max = 8 + static_cast<std::uint32_t>(random.below(40));
  shape.has_capacity = !random.one_in(4);
  shape.has_dead_streams = random.one_in(3);
  shape.has_pools = shape.has_captures = planted == Planted::kLostPool || random.one_in(2);
  shape.has_collections = random.one_in(6);
  shape.has_pins = random.one_in(4);
  shape.has_conf = true;
  spec::OpFile file = random_sequence(shape, seed);
  const char* const settings = settings_of(seed, planted);
  for (spec::Op& op : file.ops) {
    if (op.slot == slot::kConf && settings != nullptr) op.text = settings;
    if (op.slot == slot::kSeed) op.arg[0] = seed;
  }
  if (shape.has_pools) add_launches(shape.streams, random, &file);
  return file;
}

std::uint64_t seed_of(const spec::OpFile& file) {
  for (const spec::Op& op : file.ops) {
    if (op.slot == slot::kSeed) return op.arg[0];
  }
  return 1;
}

}  // namespace ashlar::props
