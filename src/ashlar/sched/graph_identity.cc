#include <ashlar/sched/graph_identity.h>

#include <bit>

#include <ashlar/base/mix.h>

namespace ashlar::inline v0::sched {

std::uint64_t identity_of(const graph::Graph& graph) noexcept {
  std::uint64_t hash = graph.wiring();
  const auto add = [&hash](std::uint64_t word) { hash = mix(hash + word); };
  for (const graph::Tensor& tensor : graph.tensors()) {
    add(static_cast<std::uint64_t>(tensor.operation) | static_cast<std::uint64_t>(tensor.type)
                                                           << 8);
    for (const std::uint64_t side : tensor.shape) add(side);
    for (const std::uint64_t stride : tensor.strides) add(stride);
    add(tensor.view_offset.count());
    for (const float real : tensor.parameters.reals) add(std::bit_cast<std::uint32_t>(real));
    for (const std::int32_t whole : tensor.parameters.integers)
      add(static_cast<std::uint64_t>(static_cast<std::uint32_t>(whole)));
  }
  return hash;
}

}  // namespace ashlar::inline v0::sched
