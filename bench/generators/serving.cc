// Language-model serving with continuous batching and KV caches that grow.
//
// Requests arrive at random, bring a prompt of 16 to 1039 tokens and leave after 8 to 135 more.
// Each keeps one key-value cache per layer, grown by concatenation, as frameworks without a paged
// cache do: a new block for the old contents and 16 more tokens, a copy, the old one freed. Every
// step all running requests decode one token together; prompts come and logits go on a copy stream,
// and the host waits for the logits before the next step.
//
// The shapes are those of a 7B model's layers; 8 of them.
#include <vector>

#include "bench/generators/workloads.h"

namespace ashlar::bench {
namespace {

constexpr unsigned kCompute = 0;
constexpr std::uint32_t kLayers = 8;
constexpr std::uint64_t kHidden = 4096;
constexpr std::uint64_t kFeedForward = 11008;
constexpr std::uint64_t kVocabulary = 32000;
constexpr std::uint64_t kElement = 2;
constexpr std::uint64_t kTokensPerGrowth = 16;
constexpr std::size_t kRunningMax = 24;

struct Request {
  std::uint64_t tokens = 0;
  std::uint64_t room = 0;  ///< tokens its caches hold before they grow
  std::uint64_t tokens_end = 0;
  std::vector<Block> caches;  ///< by layer
};

class Serving {
 public:
  explicit Serving(WorkloadRecorder& recorder) : recorder_(recorder), copy_(recorder.new_stream()) {
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      weights_.push_back(recorder_.allocate(4 * kHidden * kHidden * kElement, kCompute));
      weights_.push_back(recorder_.allocate(3 * kHidden * kFeedForward * kElement, kCompute));
    }
    weights_.push_back(recorder_.allocate(kVocabulary * kHidden * kElement, kCompute));
  }

  void step() {
    if (running_.size() < kRunningMax && recorder_.random().one_in(3)) admit();
    if (running_.empty()) admit();
    for (Request& request : running_) {
      if (request.tokens == request.room) grow(request);
      ++request.tokens;
    }
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) run_layer(layer, running_.size());
    send_logits();
    retire();
    recorder_.progress();
  }

 private:
  static std::uint64_t cache_bytes(std::uint64_t tokens) { return 2 * tokens * kHidden * kElement; }

  void admit() {
    Request request;
    request.tokens = request.room = 16 + recorder_.random().below(1024);
    request.tokens_end = request.tokens + 8 + recorder_.random().below(128);
    recorder_.mark("request arrives, prompt " + std::to_string(request.tokens));
    const Block prompt = recorder_.allocate(request.tokens * 8, copy_);
    recorder_.kernel(copy_, prompt, KernelTouch::kWrite);
    recorder_.order(copy_, kCompute);
    recorder_.kernel(kCompute, prompt, KernelTouch::kRead);
    recorder_.use(prompt, kCompute);
    recorder_.free(prompt);
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      request.caches.push_back(recorder_.allocate(cache_bytes(request.room), kCompute));
      run_layer(layer, request.tokens);  // the prompt
      recorder_.kernel(kCompute, request.caches.back(), KernelTouch::kWrite);
    }
    running_.push_back(std::move(request));
  }

  void grow(Request& request) {
    request.room += kTokensPerGrowth;
    for (Block& cache : request.caches) {
      const Block larger = recorder_.allocate(cache_bytes(request.room), kCompute);
      recorder_.kernel(kCompute, cache, KernelTouch::kRead);
      recorder_.kernel(kCompute, larger, KernelTouch::kWrite);
      recorder_.free(cache);
      cache = larger;
    }
  }

  void run_layer(std::uint32_t layer, std::uint64_t tokens) {
    const Block attention = recorder_.allocate(tokens * 3 * kHidden * kElement, kCompute);
    recorder_.kernel(kCompute, weights_[2 * layer], KernelTouch::kRead);
    recorder_.kernel(kCompute, attention, KernelTouch::kReadWrite);
    const Block gate = recorder_.allocate(tokens * kFeedForward * kElement, kCompute);
    const Block up = recorder_.allocate(tokens * kFeedForward * kElement, kCompute);
    recorder_.free(attention);
    recorder_.kernel(kCompute, weights_[2 * layer + 1], KernelTouch::kRead);
    recorder_.kernel(kCompute, gate, KernelTouch::kReadWrite);
    recorder_.kernel(kCompute, up, KernelTouch::kReadWrite);
    recorder_.free(gate);
    recorder_.free(up);
  }

  /// The copy's use of the logits is announced and the block freed at once; the host needs only the
  /// copy.
  void send_logits() {
    const Block logits = recorder_.allocate(running_.size() * kVocabulary * 4, kCompute);
    recorder_.kernel(kCompute, weights_.back(), KernelTouch::kRead);
    recorder_.kernel(kCompute, logits, KernelTouch::kWrite);
    recorder_.order(kCompute, copy_);
    recorder_.kernel(copy_, logits, KernelTouch::kRead);
    recorder_.use(logits, copy_);
    recorder_.free(logits);
    recorder_.synchronize(copy_);
  }

  void retire() {
    for (std::size_t i = 0; i < running_.size();) {
      if (running_[i].tokens < running_[i].tokens_end) {
        ++i;
        continue;
      }
      for (const Block& cache : running_[i].caches) recorder_.free(cache);
      recorder_.mark("request finished");
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  WorkloadRecorder& recorder_;
  const unsigned copy_;
  std::vector<Block> weights_;
  std::vector<Request> running_;
};

}  // namespace

void generate_serving(WorkloadRecorder& recorder, std::uint32_t steps) {
  Serving serving(recorder);
  for (std::uint32_t step = 0; step < steps; ++step) serving.step();
}

}  // namespace ashlar::bench
