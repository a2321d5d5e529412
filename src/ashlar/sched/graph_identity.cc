#include <ashlar/sched/graph_identity.h>

#include <bit>

namespace ashlar::inline v0::sched {
namespace {

class Mixer {
 public:
  explicit Mixer(std::uint64_t start) : state_(start) {}
  void add(std::uint64_t word) {
    std::uint64_t z = state_ + 0x9e3779b97f4a7c15u + word;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    state_ = z ^ (z >> 31);
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_;
};

}  // namespace

std::uint64_t identity_of(const graph::Graph& graph) noexcept {
  Mixer mixer(graph.wiring());
  for (const graph::Tensor& tensor : graph.tensors()) {
    mixer.add(static_cast<std::uint64_t>(tensor.operation) | static_cast<std::uint64_t>(tensor.type)
                                                                 << 8);
    for (const std::uint64_t side : tensor.shape) mixer.add(side);
    for (const std::uint64_t stride : tensor.strides) mixer.add(stride);
    mixer.add(tensor.view_offset.count());
    for (const float real : tensor.parameters.reals) mixer.add(std::bit_cast<std::uint32_t>(real));
    for (const std::int32_t whole : tensor.parameters.integers)
      mixer.add(static_cast<std::uint64_t>(static_cast<std::uint32_t>(whole)));
  }
  return mixer.value();
}

}  // namespace ashlar::inline v0::sched
