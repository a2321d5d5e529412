// Training fed from the host: the next batch is copied on a side stream while this one is computed
// on.
//
// Batches are images of one of three sizes. A batch's buffer belongs to the copy stream; the
// compute stream waits for the copy, uses it, announces its use and frees it. Activations are a
// stack: made going forward, freed going back.
#include <vector>

#include "bench/generators/workloads.h"

namespace ashlar::bench {

namespace {

constexpr unsigned kCompute = 0;
constexpr std::uint32_t kLayers = 16;

struct Batch {
  Block images, labels;
  std::uint64_t count = 0;
  std::uint64_t side = 0;
};

Batch copy_batch(WorkloadRecorder& recorder, unsigned copy) {
  Batch batch;
  batch.count = 8 + recorder.random().below(25);
  batch.side = 160 + 32 * recorder.random().below(3);
  batch.images = recorder.allocate(batch.count * batch.side * batch.side * 3 * 4, copy);
  batch.labels = recorder.allocate(batch.count * 8, copy);
  recorder.kernel(copy, batch.images, KernelTouch::kWrite);
  recorder.kernel(copy, batch.labels, KernelTouch::kWrite);
  return batch;
}

void train_on(WorkloadRecorder& recorder, const Batch& batch, const std::vector<Block>& weights) {
  std::vector<Block> activations;
  std::uint64_t side = batch.side / 2, channels = 16;
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    if (layer % 4 == 3) {
      side /= 2;
      channels *= 2;
    }
    const Block output = recorder.allocate(batch.count * side * side * channels * 4, kCompute);
    const Block workspace = recorder.allocate(output.bytes / 2 + 512, kCompute);
    recorder.kernel(kCompute, layer == 0 ? batch.images : activations.back(), KernelTouch::kRead);
    recorder.kernel(kCompute, weights[layer], KernelTouch::kRead);
    recorder.kernel(kCompute, workspace, KernelTouch::kReadWrite);
    recorder.kernel(kCompute, output, KernelTouch::kWrite);
    recorder.free(workspace);
    activations.push_back(output);
  }
  recorder.kernel(kCompute, batch.labels, KernelTouch::kRead);
  for (std::uint32_t layer = kLayers; layer-- > 0;) {
    const Block gradient = recorder.allocate(weights[layer].bytes, kCompute);
    recorder.kernel(kCompute, activations.back(), KernelTouch::kRead);
    recorder.kernel(kCompute, gradient, KernelTouch::kWrite);
    recorder.kernel(kCompute, weights[layer], KernelTouch::kReadWrite);
    recorder.free(activations.back());
    activations.pop_back();
    recorder.free(gradient);
  }
}

}  // namespace

void generate_host_to_device(WorkloadRecorder& recorder, std::uint32_t steps) {
  const unsigned copy = recorder.new_stream();
  std::vector<Block> weights;
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    const std::uint64_t channels = std::uint64_t{16} << (layer + 1) / 4;
    weights.push_back(recorder.allocate(channels * channels * 9 * 4, kCompute));
  }
  Batch next = copy_batch(recorder, copy);
  for (std::uint32_t step = 0; step < steps; ++step) {
    const Batch batch = next;
    recorder.order(copy, kCompute);
    next = copy_batch(recorder, copy);
    train_on(recorder, batch, weights);
    for (const Block& block : {batch.images, batch.labels}) {
      recorder.use(block, kCompute);
      recorder.free(block);
    }
    recorder.progress();
    if (step % 10 == 9) recorder.synchronize(kCompute);  // the loss is logged
    recorder.mark("step end");
  }
}

}  // namespace ashlar::bench
