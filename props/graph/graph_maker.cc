#include "props/graph/graph_maker.h"

#include <algorithm>
#include <array>
#include <random>

#include <ashlar/graph/shape_rules.h>

#include "src/cpu_backend/kernels.h"

namespace ashlar::props {
namespace {

using graph::ElementType;
using graph::Graph;
using graph::kNoTensor;
using graph::Operation;
using graph::Shape;
using graph::Tensor;
using graph::TensorId;
using graph::TensorSpec;

constexpr std::array<Operation, 12> kUnary{
    Operation::kScale, Operation::kSqr,  Operation::kSqrt, Operation::kLog,
    Operation::kExp,   Operation::kNeg,  Operation::kStep, Operation::kRelu,
    Operation::kGelu,  Operation::kSilu, Operation::kTanh, Operation::kSigmoid};
constexpr std::array<Operation, 4> kBinary{Operation::kAdd, Operation::kSub, Operation::kMul,
                                           Operation::kDiv};
constexpr std::array<std::uint64_t, 8> kSides{1, 2, 3, 4, 5, 8, 1, 0};
constexpr std::uint64_t kElementsMax = 4096;

class Maker {
 public:
  Maker(ByteSource& bytes, const MakerOptions& options) : bytes_(bytes), options_(options) {}

  MadeGraph make() {
    const std::uint64_t leafs = 1 + bytes_.below(4);
    for (std::uint64_t k = 0; k < leafs; ++k) add_leaf();
    while (!bytes_.is_empty() && made_.graph.nodes().size() < options_.nodes_max) {
      add_something();
      if (options_.has_regions) change_region();
    }
    while (!regions_.empty()) close_region();
    return std::move(made_);
  }

 private:
  struct OpenRegion {
    bool is_branch;
    std::size_t usable;  // how many tensors were usable when it began
  };

  const Graph& graph() const { return made_.graph; }
  const Tensor& at(TensorId id) const { return graph()[id]; }
  /// A float tensor that may be read here.
  TensorId pick() { return usable_[bytes_.below(std::min<std::size_t>(usable_.size(), 256))]; }
  TensorId pick_late() {
    const std::size_t back = bytes_.below(std::min<std::size_t>(usable_.size(), 4));
    return usable_[usable_.size() - 1 - back];
  }

  std::uint8_t leaf_flags() {
    constexpr std::array<std::uint8_t, 5> kFlags{graph::kInput, graph::kNoFlags, graph::kExternal,
                                                 graph::kParameter, graph::kInput};
    return kFlags[bytes_.below(kFlags.size())];
  }

  void add_leaf() {
    TensorSpec spec;
    for (std::uint64_t& side : spec.shape) side = kSides[bytes_.below(kSides.size())];
    spec.flags = leaf_flags();
    keep(spec);
  }

  /// A leaf of numbers below `bound`.
  TensorId add_indices(const Shape& shape, ElementType type, std::uint64_t bound) {
    TensorSpec spec;
    spec.type = type;
    spec.shape = shape;
    spec.flags = leaf_flags();
    const auto added = made_.graph.add(spec);
    made_.index_bounds[added.value().value()] = bound;
    return added.value();
  }

  /// Adds a tensor if it is sound and has a kernel.
  bool keep(const TensorSpec& spec) {
    std::uint64_t size = 1;  // also of a tensor without elements
    for (const std::uint64_t side : spec.shape) size *= std::max<std::uint64_t>(side, 1);
    if (size > kElementsMax) return false;
    Graph trial = made_.graph;
    const auto added = trial.add(spec);
    if (!added.is_ok() || !cpu::has_kernel(trial, added.value())) return false;
    made_.graph = std::move(trial);
    const bool is_float = spec.type == ElementType::kF32 || spec.type == ElementType::kF16;
    if (is_float) usable_.push_back(added.value());
    return true;
  }

  TensorSpec spec_of(Operation operation, const Shape& shape, std::vector<TensorId> sources) {
    TensorSpec spec;
    spec.operation = operation;
    spec.shape = shape;
    spec.sources = std::move(sources);
    if (bytes_.below(8) == 0) spec.flags = graph::kOutput;
    if (bytes_.below(8) == 1) spec.type = ElementType::kF16;
    return spec;
  }

  void add_something() {
    switch (bytes_.below(16)) {
      case 0:
      case 1: return add_unary();
      case 2:
      case 3: return add_binary();
      case 4:
      case 5: return add_view();
      case 6: return add_row_wise();
      case 7: return add_product();
      case 8: return add_rows();
      case 9: return add_copy();
      case 10: return add_writer();
      case 11: return add_joined();
      case 12: return add_reduction();
      case 13: return add_window();
      case 14: return add_training();
      default: return add_attention();
    }
  }

  void add_unary() {
    const TensorId x = pick_late();
    TensorSpec spec = spec_of(kUnary[bytes_.below(kUnary.size())], at(x).shape, {x});
    spec.parameters.reals = {0.5f, 0.25f, 0, 0};
    keep(spec);
  }

  /// A tensor that repeats to the shape, or `otherwise`.
  TensorId repeating(const Shape& shape, TensorId otherwise) {
    for (int k = 0; k < 6; ++k) {
      const TensorId y = pick();
      bool repeats = true;
      for (std::size_t d = 0; d < graph::kDimensions; ++d) {
        const std::uint64_t side = at(y).shape[d];
        repeats = repeats && side != 0 && shape[d] % side == 0;
      }
      if (repeats) return y;
    }
    return otherwise;
  }

  void add_binary() {
    const TensorId x = pick_late();
    const TensorId y = bytes_.below(4) == 0 ? x : repeating(at(x).shape, x);
    keep(spec_of(kBinary[bytes_.below(kBinary.size())], at(x).shape, {x, y}));
  }

  void add_view() {
    const TensorId x = pick_late();
    TensorSpec spec;
    spec.type = at(x).type;
    spec.sources = {x};
    spec.view_source = x;
    spec.shape = at(x).shape;
    spec.strides = at(x).strides;
    if (bytes_.below(8) == 0) spec.flags = graph::kOutput;
    switch (bytes_.below(4)) {
      case 0: {  // the same bytes in another shape
        spec.operation = Operation::kReshape;
        if (!is_packed(at(x))) return;
        std::swap(spec.shape[0], spec.shape[bytes_.below(4)]);
        spec.strides = {};
        break;
      }
      case 1: {
        spec.operation = Operation::kPermute;
        const std::uint64_t a = bytes_.below(4), b = bytes_.below(4);
        std::swap(spec.shape[a], spec.shape[b]);
        std::swap(spec.strides[a], spec.strides[b]);
        break;
      }
      case 2: {  // a part
        spec.operation = Operation::kView;
        const std::uint64_t d = bytes_.below(4);
        if (spec.shape[d] < 2) return;
        const std::uint64_t from = bytes_.below(spec.shape[d]);
        spec.shape[d] -= from + bytes_.below(spec.shape[d] - from);
        spec.view_offset = Bytes{from * spec.strides[d]};
        break;
      }
      default: spec.operation = Operation::kView;  // all of it
    }
    keep(spec);
  }

  void add_row_wise() {
    const TensorId x = pick_late();
    TensorSpec spec = spec_of(Operation::kNorm, at(x).shape, {x});
    spec.parameters.reals[0] = 1e-5f;
    switch (bytes_.below(5)) {
      case 0: break;
      case 1: spec.operation = Operation::kRmsNorm; break;
      case 2:
        spec.operation = Operation::kSoftMax;
        spec.parameters.reals[0] = 0.5f;
        if (bytes_.below(2) == 0) spec.sources.push_back(bytes_.below(3) == 0 ? x : pick());
        break;
      case 3:
        spec.operation = Operation::kRope;
        spec.sources.push_back(add_indices({std::max<std::uint64_t>(at(x).shape[2], 1), 1, 1, 1},
                                           ElementType::kI32, 16));
        spec.parameters.reals[0] = 10000.0f;
        spec.parameters.integers[0] = static_cast<std::int32_t>(at(x).shape[0] / 2 * 2);
        spec.parameters.integers[1] = bytes_.below(2) == 0 ? 0 : 2;
        break;
      default:
        spec.operation = Operation::kDiagMaskInf;
        spec.parameters.integers[0] = static_cast<std::int32_t>(bytes_.below(3));
    }
    keep(spec);
  }

  void add_product() {
    const TensorId b = pick_late();
    for (int k = 0; k < 6; ++k) {
      const TensorId a = k == 5 ? b : pick();
      const Shape &left = at(a).shape, &right = at(b).shape;
      const bool is_outer = bytes_.below(2) == 0;
      const Shape shape = is_outer ? Shape{left[0], right[0], right[2], right[3]}
                                   : Shape{left[1], right[1], right[2], right[3]};
      const Operation operation = is_outer ? Operation::kOutProd : Operation::kMulMat;
      if (keep(spec_of(operation, shape, {a, b}))) return;
    }
  }

  void add_rows() {
    const TensorId x = pick_late();
    const Shape from = at(x).shape;
    const std::uint64_t count = 1 + bytes_.below(3);
    if (from[1] == 0) return;
    if (bytes_.below(3) == 0 && from[3] == 1 && from[2] != 0) {  // experts
      const std::uint64_t used = 1 + bytes_.below(from[2]);
      const TensorId b = pick();
      const Shape right = at(b).shape;
      if (right[0] != from[0] || right[3] != 1 || right[2] == 0) return;
      const TensorId ids = add_indices({used, right[2], 1, 1}, ElementType::kI32, from[2]);
      keep(spec_of(Operation::kMulMatId, {from[1], used, right[2], 1}, {x, b, ids}));
      return;
    }
    const auto type = bytes_.below(2) == 0 ? ElementType::kI32 : ElementType::kI64;
    const TensorId ids = add_indices({count, from[2], from[3], 1}, type, from[1]);
    keep(spec_of(Operation::kGetRows, {from[0], count, from[2], from[3]}, {x, ids}));
  }

  void add_copy() {
    const TensorId x = pick_late();
    const bool is_cast = bytes_.below(2) == 0;
    TensorSpec spec = spec_of(is_cast ? Operation::kCpy : Operation::kCont, at(x).shape, {x});
    if (bytes_.below(3) == 0) std::swap(spec.shape[0], spec.shape[bytes_.below(4)]);
    keep(spec);
  }

  /// Writes a tensor through a view of it.
  void add_writer() {
    if (!options_.has_writers) return;
    const TensorId x = pick(), into = pick_late();
    if (at(x).root == at(into).root) return;
    TensorSpec spec;
    spec.type = at(into).type;
    spec.shape = at(into).shape;
    spec.strides = at(into).strides;
    spec.view_source = into;
    if (bytes_.below(2) == 0) {
      spec.operation = Operation::kCpy;
      spec.sources = {x, into};
    } else {
      spec.operation = Operation::kSetRows;
      const Shape& values = at(x).shape;
      if (spec.shape[1] == 0) return;
      const Shape shape{values[1], values[2], values[3], 1};
      const TensorId ids = add_indices(shape, ElementType::kI64, spec.shape[1]);
      spec.sources = {x, ids, into};
    }
    keep(spec);
  }

  void add_joined() {
    const TensorId x = pick_late();
    Shape shape = at(x).shape;
    const std::uint64_t d = bytes_.below(4);
    switch (bytes_.below(4)) {
      case 0: {
        const TensorId y = bytes_.below(2) == 0 ? x : pick();
        shape[d] += at(y).shape[d];
        TensorSpec spec = spec_of(Operation::kConcat, shape, {x, y});
        spec.parameters.integers[0] = static_cast<std::int32_t>(d);
        keep(spec);
        return;
      }
      case 1:
        shape[d] += bytes_.below(3);
        keep(spec_of(Operation::kPad, shape, {x}));
        return;
      case 2:
        shape[d] *= 1 + bytes_.below(3);
        keep(spec_of(Operation::kRepeat, shape, {x}));
        return;
      default: {
        const TensorId y = bytes_.below(2) == 0 ? x : pick();
        keep(spec_of(Operation::kSwiglu, shape, {x, y}));
      }
    }
  }

  void add_reduction() {
    const TensorId x = pick_late();
    Shape shape = at(x).shape;
    switch (bytes_.below(5)) {
      case 0: keep(spec_of(Operation::kSum, {1, 1, 1, 1}, {x})); return;
      case 1:
        shape[0] = 1;
        keep(spec_of(Operation::kSumRows, shape, {x}));
        return;
      case 2:
        shape[0] = 1;
        keep(spec_of(Operation::kMean, shape, {x}));
        return;
      case 3:
        shape[bytes_.below(4)] = 1;
        keep(spec_of(Operation::kRepeatBack, shape, {x}));
        return;
      default: {
        TensorSpec spec = spec_of(Operation::kArgsort, shape, {x});
        spec.type = ElementType::kI32;
        spec.parameters.integers[0] = static_cast<std::int32_t>(bytes_.below(2));
        keep(spec);
      }
    }
  }

  void add_window() {
    const TensorId x = pick_late();
    const Shape image = at(x).shape;
    TensorSpec spec = spec_of(Operation::kPool2d, image, {x});
    auto& numbers = spec.parameters.integers;
    if (bytes_.below(2) == 0) {
      numbers = {static_cast<std::int32_t>(bytes_.below(2)), 2, 2, 1, 1, 0, 1, 0};
      if (image[0] < 2 || image[1] < 1) return;
      spec.shape = {image[0] - 1, image[1] + 1, image[2], image[3]};
      if (!keep(spec)) return;
      if (bytes_.below(2) == 0) return;
      spec.operation = Operation::kPool2dBack;
      spec.sources = {usable_.back(), x};
      spec.shape = image;
      keep(spec);
      return;
    }
    if (image[0] < 2 || image[1] < 2) return;
    numbers = {1, 1, 0, 1, 1, 1, 0, 0};
    TensorSpec kernel;
    kernel.shape = {2, 2, image[2], 3};
    kernel.flags = leaf_flags();
    if (!keep(kernel)) return;
    const TensorId weights = usable_.back();
    spec.operation = Operation::kIm2col;
    spec.sources = {weights, x};
    spec.shape = {4 * image[2], image[0] - 1, image[1] + 1, image[3]};
    if (!keep(spec) || bytes_.below(2) == 0) return;
    spec.operation = Operation::kIm2colBack;
    spec.sources = {usable_.back(), weights};
    spec.shape = image;
    keep(spec);
  }

  void add_training() {
    const TensorId x = pick_late();
    switch (bytes_.below(3)) {
      case 0: keep(spec_of(Operation::kCrossEntropyLoss, {1, 1, 1, 1}, {x, same_as(x)})); return;
      case 1: {
        TensorSpec one;
        one.flags = leaf_flags();
        if (!keep(one)) return;
        const TensorId gradient = usable_.back();
        keep(spec_of(Operation::kCrossEntropyLossBack, at(x).shape, {gradient, x, same_as(x)}));
        return;
      }
      default: add_adamw(x);
    }
  }

  TensorId same_as(TensorId x) {
    const TensorId y = pick();
    return at(y).shape == at(x).shape ? y : x;
  }

  void add_adamw(TensorId gradient) {
    if (!options_.has_writers) return;
    TensorSpec leaf;
    leaf.shape = at(gradient).shape;
    std::vector<TensorId> sources;
    for (int k = 0; k < 4; ++k) {
      leaf.flags = leaf_flags();
      if (k == 3) leaf.shape = {7, 1, 1, 1};
      const auto added = made_.graph.add(leaf);
      if (!added.is_ok()) return;
      usable_.push_back(added.value());
      sources.push_back(added.value());
    }
    TensorSpec spec;
    spec.operation = Operation::kOptStepAdamw;
    spec.shape = at(gradient).shape;
    spec.sources = {sources[0], gradient, sources[1], sources[2], sources[3]};
    spec.view_source = sources[0];
    keep(spec);
  }

  void add_attention() {
    const TensorId q = pick_late();
    const TensorId k = bytes_.below(2) == 0 ? q : pick();
    const TensorId v = bytes_.below(2) == 0 ? k : pick();
    const Shape asked = at(q).shape;
    TensorSpec spec = spec_of(Operation::kFlashAttnExt,
                              {at(v).shape[0], asked[2], asked[1], asked[3]}, {q, k, v});
    spec.parameters.reals[0] = 0.5f;
    keep(spec);
  }

  void change_region() {
    const std::uint64_t choice = bytes_.below(24);
    if (choice == 1 && regions_.size() < 3) {
      const bool is_branch = bytes_.below(2) == 0;
      made_.graph.begin_region(is_branch ? graph::RegionKind::kBranch : graph::RegionKind::kLoop);
      regions_.push_back({is_branch, usable_.size()});
    } else if (choice == 2 && !regions_.empty()) {
      close_region();
    }
  }

  /// What a conditional computes is not read outside: whether it has run is not known.
  void close_region() {
    static_cast<void>(made_.graph.end_region());
    if (regions_.back().is_branch) usable_.resize(regions_.back().usable);
    regions_.pop_back();
  }

  ByteSource& bytes_;
  const MakerOptions options_;
  MadeGraph made_;
  std::vector<TensorId> usable_;  // float tensors
  std::vector<OpenRegion> regions_;
};

bool has_writer(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](TensorId node) {
    return graph[node].root != node && graph::traits_of(graph[node].operation).is_writer;
  });
}

/// The nodes in a random order behind their sources, with barriers.
std::vector<std::uint32_t> make_order(ByteSource& bytes, const Graph& graph) {
  std::vector<std::uint32_t> order;
  std::vector<bool> is_computed(graph.tensors().size(), true);
  for (const TensorId node : graph.nodes()) is_computed[node.value()] = false;
  std::vector<bool> is_taken(graph.nodes().size(), false);
  for (std::size_t done = 0; done < graph.nodes().size(); ++done) {
    std::vector<std::uint32_t> ready;
    for (std::uint32_t n = 0; n < graph.nodes().size() && ready.size() < 4; ++n) {
      const auto sources = graph.sources(graph[graph.nodes()[n]]);
      const bool is_ready = std::all_of(sources.begin(), sources.end(), [&](TensorId source) {
        return source == kNoTensor || is_computed[source.value()];
      });
      if (is_ready && !is_taken[n]) ready.push_back(n);
    }
    const std::uint32_t next = ready[bytes.below(ready.size())];
    is_taken[next] = true;
    is_computed[graph.nodes()[next].value()] = true;
    order.push_back(next);
    if (bytes.below(3) == 0) order.push_back(graph::kBarrier);
  }
  return order;
}

}  // namespace

MadeGraph make_graph(ByteSource& bytes, const MakerOptions& options) {
  return Maker(bytes, options).make();
}

graph::MemoryRequest make_request(ByteSource& bytes, const Graph& graph, std::uint64_t types) {
  graph::MemoryRequest request;
  if (types > 1) {
    for (std::size_t t = 0; t < graph.tensors().size(); ++t)
      request.types.push_back(static_cast<std::uint16_t>(bytes.below(types)));
  }
  if (bytes.below(3) == 1 && graph.regions().empty() && !has_writer(graph))
    request.order = make_order(bytes, graph);
  if (bytes.below(4) == 1 && !graph.nodes().empty()) {
    const auto node = static_cast<std::uint32_t>(bytes.below(graph.nodes().size()));
    const auto tensor = static_cast<std::uint32_t>(bytes.below(graph.tensors().size()));
    request.uses.push_back({node, TensorId{tensor}});
  }
  return request;
}

std::string describe(const Graph& graph) {
  std::string text;
  std::size_t node = 0;
  for (std::uint32_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    const bool is_node = node < graph.nodes().size() && graph.nodes()[node].value() == t;
    for (const graph::Region& region : graph.regions()) {
      const bool is_loop = region.kind == graph::RegionKind::kLoop;
      if (is_node && region.nodes_begin == node) text += is_loop ? "loop of " : "branch of ";
      if (is_node && region.nodes_begin == node)
        text += std::to_string(region.nodes_end - region.nodes_begin) + " nodes\n";
    }
    text += std::to_string(t) + (is_node ? " node " : " leaf ");
    text += std::string(graph::traits_of(tensor.operation).name) + " " +
            std::string(graph::traits_of(tensor.type).name) + " [";
    for (const std::uint64_t side : tensor.shape) text += " " + std::to_string(side);
    text += " ] flags " + std::to_string(tensor.flags) + " sources";
    for (const TensorId source : graph.sources(tensor))
      text += " " + std::to_string(source.value());
    if (tensor.root.value() != t) {
      text += " in " + std::to_string(tensor.root.value()) + " at " +
              std::to_string(tensor.view_offset.count());
    }
    text += "\n";
    node += is_node ? 1 : 0;
  }
  return text;
}

std::vector<std::uint8_t> random_bytes(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 generator(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(generator());
  return bytes;
}

}  // namespace ashlar::props
