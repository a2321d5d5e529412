// FSDP-style training (PyTorch's FullyShardedDataParallel, FULL_SHARD, backward prefetch, limited
// all-gathers).
//
// A rank keeps its shards. Per layer the whole parameters are gathered into a fresh buffer on the
// gather stream, one layer ahead of the compute stream. The compute stream waits for the gather and
// reads the buffer. The host records that use and frees the buffer as soon as the kernel is
// enqueued, so the freed buffer is pending. Gradients are made on the compute stream and reduced on
// a third stream into a shard that the optimizer consumes. The host synchronises with the compute
// stream after every second layer, which limits the gathers in flight.
//
// The shapes are a decoder's: 24 layers of 2048, an embedding at both ends, activations kept for
// backward.
#include <vector>

#include "bench/generators/workloads.h"

namespace ashlar::bench {
namespace {

constexpr unsigned kCompute = 0;
constexpr std::uint32_t kLayers = 24;
constexpr std::uint64_t kHidden = 2048;
constexpr std::uint64_t kVocabulary = 32000;
constexpr std::uint64_t kRanks = 8;
constexpr std::uint64_t kElement = 2;  // bf16

class Fsdp {
 public:
  explicit Fsdp(WorkloadRecorder& recorder)
      : recorder_(recorder), gather_(recorder.new_stream()), reduce_(recorder.new_stream()) {
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const bool is_embedding = layer == 0 || layer == kLayers - 1;
      bytes_.push_back(
          (is_embedding ? kVocabulary * kHidden : 12 * kHidden * kHidden + 13 * kHidden) *
          kElement);
      shards_.push_back(recorder_.allocate(bytes_.back() / kRanks, kCompute));
      // fp32 master, two moments
      states_.push_back(recorder_.allocate(bytes_.back() / kRanks * 6, kCompute));
    }
    recorder_.order(kCompute, gather_);
  }

  void step() {
    tokens_ = 1024 * (1 + recorder_.random().below(4));
    forward();
    backward();
    optimize();
    recorder_.synchronize(kCompute);  // the loss is read
  }

 private:
  Block gather(std::uint32_t layer) {
    const Block whole = recorder_.allocate(bytes_[layer], gather_);
    recorder_.kernel(gather_, shards_[layer], KernelTouch::kRead);
    recorder_.kernel(gather_, whole, KernelTouch::kWrite);
    return whole;
  }

  /// Frees the gathered parameters once the last kernel that reads them is enqueued; it has not run
  /// yet.
  void reshard(const Block& whole, std::uint32_t layer) {
    recorder_.use(whole, kCompute);
    recorder_.free(whole);
    if (layer % 2 == 1) recorder_.synchronize(kCompute);  // the limit on gathers in flight
    recorder_.progress();
  }

  void forward() {
    recorder_.order(kCompute, gather_);  // the shards of the last optimizer step
    Block ahead = gather(0);
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const Block whole = ahead;
      recorder_.order(gather_, kCompute);
      if (layer + 1 < kLayers) ahead = gather(layer + 1);
      const Block scratch = recorder_.allocate(tokens_ * kHidden * 4 * kElement, kCompute);
      const Block kept = recorder_.allocate(tokens_ * kHidden * kElement, kCompute);
      recorder_.kernel(kCompute, whole, KernelTouch::kRead);
      recorder_.kernel(kCompute, scratch, KernelTouch::kReadWrite);
      recorder_.kernel(kCompute, kept, KernelTouch::kWrite);
      recorder_.free(scratch);
      activations_.push_back(kept);
      reshard(whole, layer);
    }
    recorder_.mark("forward end");
  }

  void backward() {
    Block ahead = gather(kLayers - 1);
    for (std::uint32_t layer = kLayers; layer-- > 0;) {
      const Block whole = ahead;
      recorder_.order(gather_, kCompute);
      if (layer > 0) ahead = gather(layer - 1);
      const Block gradient = recorder_.allocate(bytes_[layer], kCompute);
      recorder_.kernel(kCompute, whole, KernelTouch::kRead);
      recorder_.kernel(kCompute, activations_.back(), KernelTouch::kRead);
      recorder_.kernel(kCompute, gradient, KernelTouch::kWrite);
      recorder_.free(activations_.back());
      activations_.pop_back();
      reduce(gradient);
      reshard(whole, layer);
    }
    recorder_.mark("backward end");
  }

  void reduce(const Block& gradient) {
    recorder_.order(kCompute, reduce_);
    const Block shard = recorder_.allocate(gradient.bytes / kRanks, reduce_);
    recorder_.kernel(reduce_, gradient, KernelTouch::kRead);
    recorder_.kernel(reduce_, shard, KernelTouch::kWrite);
    recorder_.use(gradient, reduce_);
    recorder_.free(gradient);
    reduced_.push_back(shard);  // of the layers in reverse
  }

  void optimize() {
    recorder_.order(reduce_, kCompute);
    recorder_.order(gather_, kCompute);  // nobody reads the shards any more
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const Block& gradient = reduced_[kLayers - 1 - layer];
      recorder_.kernel(kCompute, gradient, KernelTouch::kRead);
      recorder_.kernel(kCompute, states_[layer], KernelTouch::kReadWrite);
      recorder_.kernel(kCompute, shards_[layer], KernelTouch::kWrite);
      recorder_.free_on(gradient, kCompute);
    }
    reduced_.clear();
    recorder_.mark("step end");
  }

  WorkloadRecorder& recorder_;
  const unsigned gather_, reduce_;
  std::uint64_t tokens_ = 0;
  std::vector<std::uint64_t> bytes_;  // by layer: its whole parameters
  std::vector<Block> shards_, states_;
  std::vector<Block> activations_, reduced_;
};

}  // namespace

void generate_fsdp(WorkloadRecorder& recorder, std::uint32_t steps) {
  Fsdp fsdp(recorder);
  for (std::uint32_t step = 0; step < steps; ++step) fsdp.step();
}

}  // namespace ashlar::bench
