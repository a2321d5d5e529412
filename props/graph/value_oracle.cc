#include "props/graph/value_oracle.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "spec/graph/imaginary_buffers.h"
#include "spec/graph/memory_judge.h"
#include "src/cpu_backend/conversions.h"
#include "src/cpu_backend/cpu_backend.h"

namespace ashlar::props {
namespace {

using graph::ElementType;
using graph::Graph;
using graph::Region;
using graph::Tensor;
using graph::TensorId;

constexpr std::uint64_t kAlignment = 64;

/// Memory of the host, filled with poison.
class PoisonedBuffers final : public graph::BufferSource {
 public:
  explicit PoisonedBuffers(int poison) : poison_(poison) {}
  ~PoisonedBuffers() override {
    for (const spec::JudgedBuffer& buffer : live_)
      ::operator delete (buffer.base.pointer(), std::align_val_t{kAlignment});
  }
  Result<Address> make_buffer(std::size_t type, Bytes size) noexcept override {
    void* const memory = ::operator new (size.count(), std::align_val_t{kAlignment});
    std::memset(memory, poison_, size.count());
    live_.push_back({type, Address::of(memory), size});
    return Address::of(memory);
  }
  void release_buffer(std::size_t, Address base, Bytes) noexcept override {
    ::operator delete (base.pointer(), std::align_val_t{kAlignment});
    std::erase_if(live_, [&](const spec::JudgedBuffer& buffer) { return buffer.base == base; });
  }
  const std::vector<spec::JudgedBuffer>& live() const { return live_; }

 private:
  const int poison_;
  std::vector<spec::JudgedBuffer> live_;
};

bool is_leaf(const Graph& graph, TensorId id) {
  return graph[id].operation == graph::Operation::kNone && graph[id].root == id;
}

/// Gives every root in `which` a buffer of its own, and every view its place.
template <class Which>
void place_apart(const Graph& graph, PoisonedBuffers* buffers, const Which& which,
                 std::vector<Address>* addresses) {
  for (std::uint32_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if (tensor.root.value() != t) {
      (*addresses)[t] = (*addresses)[tensor.root.value()] + tensor.view_offset;
    } else if (which(tensor)) {
      const Bytes size = std::max(tensor.extent, Bytes{1});
      (*addresses)[t] = buffers->make_buffer(0, size).value();
    }
  }
}

void fill_leafs(const MadeGraph& made, std::uint64_t seed, const std::vector<Address>& addresses) {
  for (std::uint32_t t = 0; t < made.graph.tensors().size(); ++t) {
    if (is_leaf(made.graph, TensorId{t})) fill_leaf(made, TensorId{t}, seed, addresses[t]);
  }
}

/// The offset of each element in the tensor.
template <class F>
void for_each_block(const Tensor& tensor, const F& f) {
  const graph::TypeTraits& traits = traits_of(tensor.type);
  const std::uint64_t blocks = tensor.shape[0] / traits.block_elements;
  for (std::uint64_t row = 0; row < cpu::rows_of(tensor.shape); ++row) {
    if (blocks == 0) return;
    const cpu::RowAt at(tensor.shape, row);
    for (std::uint64_t b = 0; b < blocks; ++b) {
      f(b * tensor.strides[0] + at.i1 * tensor.strides[1] + at.i2 * tensor.strides[2] +
        at.i3 * tensor.strides[3]);
    }
  }
}

/// Two runs of one graph side by side.
class TwoRuns {
 public:
  TwoRuns(const MadeGraph& made, const OracleOptions& options)
      : made_(made),
        options_(options),
        coins_(options.seed),
        planned_(made.graph.tensors().size()),
        apart_(made.graph.tensors().size()),
        backend_("oracle", std::make_shared<cpu::HostBuffers>(), options.threads) {}

  std::string run() {
    const Graph& graph = made_.graph;
    const auto is_external = [](const Tensor& t) { return (t.flags & graph::kExternal) != 0; };
    place_apart(graph, &external_, is_external, &planned_);
    graph::GraphAllocator allocator(arena_, options_.types);
    if (const Status status = allocator.allocate(graph, options_.request, planned_);
        !status.is_ok())
      return std::string("the allocator refuses: ") + status.why();
    const auto found =
        spec::judge_memory(graph, options_.request, options_.types, arena_.live(), planned_);
    if (found) return *found;
    place_apart(
        graph, &separate_, [](const Tensor&) { return true; }, &apart_);
    fill_leafs(made_, options_.seed, planned_);
    fill_leafs(made_, options_.seed, apart_);
    run_nodes(0, static_cast<std::uint32_t>(graph.nodes().size()), 0);
    if (difference_.empty()) compare_kept();
    return difference_;
  }

 private:
  /// The nodes [begin, end); regions from `region` on are looked at.
  void run_nodes(std::uint32_t begin, std::uint32_t end, std::size_t region) {
    if (!options_.request.order.empty()) return run_in_order();
    const auto regions = made_.graph.regions();
    for (std::uint32_t n = begin; n < end && difference_.empty();) {
      while (region < regions.size() && regions[region].nodes_begin < n) region += 1;
      if (region == regions.size() || regions[region].nodes_begin != n ||
          regions[region].nodes_end > end) {
        run_node(n++);
        continue;
      }
      const Region& body = regions[region];
      const bool is_loop = body.kind == graph::RegionKind::kLoop;
      const std::uint64_t times = is_loop ? 2 : coins_() % 2;
      for (std::uint64_t k = 0; k < times; ++k)
        run_nodes(body.nodes_begin, body.nodes_end, region + 1);
      if (body.nodes_begin == body.nodes_end) {
        region += 1;
      } else {
        n = body.nodes_end;
      }
    }
  }

  /// In the parse order, but the nodes of a group in any order that their sources permit.
  void run_in_order() {
    std::vector<std::uint32_t> group;
    for (const std::uint32_t n : options_.request.order) {
      if (n != graph::kBarrier) {
        group.push_back(n);
        continue;
      }
      run_group(&group);
    }
    run_group(&group);
  }

  void run_group(std::vector<std::uint32_t>* group) {
    while (!group->empty() && difference_.empty()) {
      std::shuffle(group->begin(), group->end(), coins_);
      const auto next = std::find_if(group->begin(), group->end(), [&](std::uint32_t n) {
        const auto sources = made_.graph.sources(made_.graph[made_.graph.nodes()[n]]);
        return std::none_of(group->begin(), group->end(), [&](std::uint32_t other) {
          return std::find(sources.begin(), sources.end(), made_.graph.nodes()[other]) !=
                 sources.end();
        });
      });
      run_node(*next);
      group->erase(next);
    }
    group->clear();
  }

  void run_node(std::uint32_t n) {
    const TensorId node = made_.graph.nodes()[n];
    const TensorId nodes[] = {node};
    const Status a = backend_.compute(made_.graph, nodes, apart_);
    const Status b = backend_.compute(made_.graph, nodes, planned_);
    if (!a.is_ok() || !b.is_ok()) {
      report(node, a.is_ok() ? b.why() : a.why());
    } else if (!has_equal_elements(made_.graph[node], apart_[node.value()].pointer(),
                                   planned_[node.value()].pointer())) {
      report(node, "other values than in a buffer of its own");
    }
  }

  void compare_kept() {
    for (std::uint32_t t = 0; t < made_.graph.tensors().size(); ++t) {
      const Tensor& tensor = made_.graph.tensors()[t];
      const std::uint8_t kept = graph::kOutput | graph::kParameter | graph::kExternal;
      if ((tensor.flags & kept) == 0) continue;
      if (!has_run(TensorId{t})) continue;
      if (!has_equal_elements(tensor, apart_[t].pointer(), planned_[t].pointer()))
        report(TensorId{t}, "is not kept to the end");
    }
  }

  /// Not in the body of a conditional, which may not have run.
  bool has_run(TensorId id) const {
    const auto nodes = made_.graph.nodes();
    const auto at = std::find(nodes.begin(), nodes.end(), id);
    const auto n = static_cast<std::uint32_t>(at - nodes.begin());
    const auto regions = made_.graph.regions();
    return std::none_of(regions.begin(), regions.end(), [&](const Region& region) {
      return region.kind == graph::RegionKind::kBranch && n >= region.nodes_begin &&
             n < region.nodes_end;
    });
  }

  void report(TensorId id, const std::string& what) {
    if (!difference_.empty()) return;
    difference_ = "G1: tensor " + std::to_string(id.value()) + " (" +
                  std::string(traits_of(made_.graph[id].operation).name) + "): " + what;
  }

  const MadeGraph& made_;
  const OracleOptions& options_;
  std::mt19937_64 coins_;
  PoisonedBuffers arena_{0xA5}, external_{0xA5}, separate_{0x5B};
  std::vector<Address> planned_, apart_;
  cpu::CpuBackend backend_;
  std::string difference_;
};

}  // namespace

bool has_equal_elements(const Tensor& tensor, const void* a, const void* b) {
  const std::size_t bytes = traits_of(tensor.type).block_bytes.count();
  bool is_equal = true;
  for_each_block(tensor, [&](std::uint64_t offset) {
    const auto* const left = static_cast<const std::byte*>(a) + offset;
    const auto* const right = static_cast<const std::byte*>(b) + offset;
    is_equal = is_equal && std::memcmp(left, right, bytes) == 0;
  });
  return is_equal;
}

void fill_leaf(const MadeGraph& made, TensorId leaf, std::uint64_t seed, Address at) {
  const Tensor& tensor = made.graph[leaf];
  std::mt19937_64 generator(seed * 1000003 + leaf.value());
  const auto bound = made.index_bounds.find(leaf.value());
  const std::uint64_t limit = bound == made.index_bounds.end() ? 1 : bound->second;
  for_each_block(tensor, [&](std::uint64_t offset) {
    std::byte* const to = static_cast<std::byte*>(at.pointer()) + offset;
    const auto value = static_cast<float>(generator() % 4001) / 1000.0f - 2.0f;
    const std::uint64_t whole = generator() % limit;
    const auto write = [to](auto number) { std::memcpy(to, &number, sizeof number); };
    switch (tensor.type) {
      case ElementType::kF32: write(value); break;
      case ElementType::kF16: write(cpu::float_to_half(value)); break;
      case ElementType::kI32: write(static_cast<std::int32_t>(whole)); break;
      case ElementType::kI64: write(static_cast<std::int64_t>(whole)); break;
      case ElementType::kQ4_0:
      case ElementType::kQ6_K: {
        const std::uint64_t bytes = traits_of(tensor.type).block_bytes.count();
        for (std::uint64_t k = 0; k < bytes; ++k) to[k] = static_cast<std::byte>(generator());
        // The scale is an ordinary number.
        const std::uint64_t scale = tensor.type == ElementType::kQ4_0 ? 0 : bytes - 2;
        const std::uint16_t half = cpu::float_to_half(value / 16.0f);
        std::memcpy(to + scale, &half, sizeof half);
      }
    }
  });
}

std::string compare_runs(const MadeGraph& made, const OracleOptions& options) {
  return TwoRuns(made, options).run();
}

SeparateRun::SeparateRun(const MadeGraph& made, std::uint64_t seed)
    : made_(made), memory_(made.graph.tensors().size()), addresses_(made.graph.tensors().size()) {
  for (std::uint32_t t = 0; t < addresses_.size(); ++t) {
    const Tensor& tensor = made.graph.tensors()[t];
    if (tensor.root.value() != t) {
      addresses_[t] = addresses_[tensor.root.value()] + tensor.view_offset;
      continue;
    }
    memory_[t].resize(tensor.extent.count() + kAlignment, std::byte{0x5B});
    const std::uint64_t begin = Address::of(memory_[t].data()).value();
    addresses_[t] = Address{(begin + kAlignment - 1) / kAlignment * kAlignment};
  }
  fill_leafs(made, seed, addresses_);
  cpu::CpuBackend backend("reference", std::make_shared<cpu::HostBuffers>());
  static_cast<void>(backend.compute(made.graph, made.graph.nodes(), addresses_));
}

std::vector<float> SeparateRun::values(TensorId id) const {
  const Tensor& tensor = made_.graph[id];
  const cpu::Operand operand{&tensor, static_cast<std::byte*>(addresses_[id.value()].pointer())};
  std::vector<float> out, scratch;
  for (std::uint64_t row = 0; row < cpu::rows_of(tensor.shape); ++row) {
    const cpu::RowAt at(tensor.shape, row);
    const float* const values = cpu::read_row(operand, at.i1, at.i2, at.i3, scratch);
    out.insert(out.end(), values, values + tensor.shape[0]);
  }
  return out;
}

}  // namespace ashlar::props
