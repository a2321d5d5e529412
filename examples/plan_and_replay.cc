// A run that repeats: recorded once, planned, and from then on served from one segment.
//
// Shows: Recorder -> problem_of -> make_plan -> Replay. The allocations of one training step are known
// after the first step, so their places are worked out, and later steps cost a look-up each. A step that
// differs is served as well: what the plan does not know goes to the allocator.
// Prints:
//   recorded: 9 allocations, 18 events
//   planned: 19 MiB, proved the least possible
//   step 2: 9 planned, 0 others
//   step 3: 9 planned, 0 others
//   step 4, with one allocation more: 9 planned, 1 others
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include <ashlar/ashlar.h>
#include <ashlar/plan.h>

using namespace ashlar;

namespace {

// One training step: activations on the way forward; gradients on the way back, each freed after use.
// It takes its memory from whatever stands behind the interface: the recorder, or the replay.
bool run_step(Upstream& memory, const Stream& stream, Bytes extra) {
  const std::vector<Bytes> layers = {8_MiB, 4_MiB, 2_MiB, 1_MiB};
  std::vector<Address> activations;
  bool is_sound = true;
  const auto take = [&](Bytes size) {
    const Result<Address> block = memory.allocate(size, stream);
    is_sound = is_sound && block.is_ok();
    return block.value_or(Address{});
  };
  const auto give = [&](Address block) { is_sound = memory.free(block).is_ok() && is_sound; };

  const Address batch = take(3_MiB);
  for (const Bytes size : layers) activations.push_back(take(size));
  if (extra > 0_B) give(take(extra));
  for (std::size_t i = layers.size(); i-- > 0;) {
    const Address gradient = take(layers[i]);
    give(activations[i]);
    give(gradient);
  }
  give(batch);
  return is_sound;
}

}  // namespace

int main() {
  HostDevice device;
  Device* const devices[] = {&device};
  auto created = CachingAllocator::create(devices, Config{});
  if (!created.is_ok()) return 1;
  const std::unique_ptr<CachingAllocator> allocator = std::move(created).value();
  const Stream stream = device.identify(HostDevice::kDefaultStream).value();
  CachingUpstream upstream(*allocator);

  // Step 1 runs as ever, and is recorded.
  replay::Recorder recorder(upstream, stream);
  if (!run_step(recorder, stream, 0_B)) return 1;
  const Result<replay::Recording> recording = recorder.take();
  if (!recording.is_ok()) return 1;
  std::cout << "recorded: " << recording.value().allocations.size() << " allocations, "
            << recording.value().events << " events\n";

  // The plan: an offset for each allocation, so that what lives at the same time never overlaps.
  plan::PlanOptions options;
  options.work = 1'000'000;  // a bound that does not depend on the machine's speed
  const plan::Plan plan = plan::make_plan(replay::problem_of(recording.value()), options);
  const plan::SpaceAnswer& answer = plan.spaces.front();
  std::cout << "planned: " << answer.peak / 1_MiB << " MiB, "
            << (answer.is_proved_optimal() ? "proved the least possible" : "perhaps not the least")
            << '\n';

  // From step 2 on the plan serves. rewind() says that a step begins.
  auto made = replay::Replay::create(upstream, stream, recording.value(), plan);
  if (!made.is_ok()) return 1;
  const std::unique_ptr<replay::Replay> replay = std::move(made).value();
  const auto report = [&](const char* step, const replay::ReplayCounts& before) {
    const replay::ReplayCounts now = replay->counts();
    std::cout << step << ": " << now.served - before.served << " planned, "
              << now.fallbacks() - before.fallbacks() << " others\n";
  };
  for (const char* step : {"step 2", "step 3"}) {
    const replay::ReplayCounts before = replay->counts();
    if (!replay->rewind().is_ok() || !run_step(*replay, stream, 0_B)) return 1;
    report(step, before);
  }
  const replay::ReplayCounts before = replay->counts();
  if (!replay->rewind().is_ok() || !run_step(*replay, stream, 5_MiB)) return 1;
  report("step 4, with one allocation more", before);
  return 0;
}
