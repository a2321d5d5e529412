#include "props/graph/model_graphs.h"

#include <cmath>
#include <utility>

namespace ashlar::props {
namespace {

using graph::ElementType;
using graph::Operation;
using graph::OperationParameters;
using graph::Shape;
using graph::Strides;
using graph::Tensor;
using graph::TensorId;
using graph::TensorSpec;

/// Adds tensors to a model; each must be sound.
class ModelBuilder {
 public:
  explicit ModelBuilder(std::string name) { model_.name = std::move(name); }

  void set_layer(std::int32_t layer) { layer_ = layer; }
  const Tensor& operator[](TensorId id) const { return model_.made.graph[id]; }

  TensorId add(const TensorSpec& spec) {
    const TensorId id = model_.made.graph.add(spec).value();
    const bool is_input = spec.operation == Operation::kNone && (spec.flags & graph::kInput) != 0;
    model_.layers.push_back(is_input ? -1 : layer_);
    return id;
  }
  TensorId input(const Shape& shape, ElementType type = ElementType::kF32,
                 std::uint64_t bound = 1) {
    TensorSpec spec;
    spec.shape = shape;
    spec.type = type;
    spec.flags = graph::kInput;
    const TensorId id = add(spec);
    if (type == ElementType::kI32 || type == ElementType::kI64)
      model_.made.index_bounds[id.value()] = bound;
    return id;
  }
  TensorId weight(const Shape& shape, ElementType type = ElementType::kF32) {
    TensorSpec spec;
    spec.shape = shape;
    spec.type = type;
    spec.flags = graph::kExternal;
    return add(spec);
  }
  TensorId node(Operation operation, const Shape& shape, std::vector<TensorId> sources,
                OperationParameters parameters = {}, ElementType type = ElementType::kF32) {
    TensorSpec spec;
    spec.operation = operation;
    spec.shape = shape;
    spec.type = type;
    spec.sources = std::move(sources);
    spec.parameters = parameters;
    return add(spec);
  }
  /// A node of its first source's shape.
  TensorId same(Operation operation, std::vector<TensorId> sources,
                OperationParameters parameters = {}) {
    const Shape shape = (*this)[sources[0]].shape;
    return node(operation, shape, std::move(sources), parameters);
  }
  TensorId view(Operation operation, TensorId of, const Shape& shape, Strides strides = {},
                std::uint64_t offset = 0) {
    TensorSpec spec;
    spec.operation = operation;
    spec.type = (*this)[of].type;
    spec.shape = shape;
    spec.strides = strides;
    spec.sources = {of};
    spec.view_source = of;
    spec.view_offset = Bytes{offset};
    return add(spec);
  }
  TensorId reshape(TensorId of, const Shape& shape) { return view(Operation::kReshape, of, shape); }
  TensorId permute(TensorId of, std::array<std::size_t, 4> order) {
    Shape shape{};
    Strides strides{};
    for (std::size_t d = 0; d < 4; ++d) {
      shape[order[d]] = (*this)[of].shape[d];
      strides[order[d]] = (*this)[of].strides[d];
    }
    return view(Operation::kPermute, of, shape, strides);
  }
  TensorId mul_mat(TensorId a, TensorId b) {
    const Shape &left = (*this)[a].shape, &right = (*this)[b].shape;
    return node(Operation::kMulMat, {left[1], right[1], right[2], right[3]}, {a, b});
  }
  TensorId scale(TensorId x, double factor) {
    OperationParameters parameters;
    parameters.reals[0] = static_cast<float>(factor);
    return same(Operation::kScale, {x}, parameters);
  }
  TensorId soft_max(std::vector<TensorId> sources, double factor = 1) {
    OperationParameters parameters;
    parameters.reals[0] = static_cast<float>(factor);
    return same(Operation::kSoftMax, std::move(sources), parameters);
  }
  TensorId norm(TensorId x, TensorId weights, Operation operation = Operation::kRmsNorm) {
    OperationParameters parameters;
    parameters.reals[0] = 1e-5f;
    return same(Operation::kMul, {same(operation, {x}, parameters), weights});
  }
  TensorId set_rows(TensorId values, TensorId ids, TensorId into) {
    TensorSpec spec;
    spec.operation = Operation::kSetRows;
    spec.type = (*this)[into].type;
    spec.shape = (*this)[into].shape;
    spec.sources = {values, ids, into};
    spec.view_source = into;
    return add(spec);
  }
  TensorId cast(TensorId x, ElementType type) {
    return node(Operation::kCpy, (*this)[x].shape, {x}, {}, type);
  }

  ModelGraph finish(std::vector<TensorId> outputs) {
    model_.outputs = std::move(outputs);
    return std::move(model_);
  }

 private:
  ModelGraph model_;
  std::int32_t layer_ = -1;
};

/// Llama's block, and Mixtral's.
class Transformer {
 public:
  explicit Transformer(const TransformerShape& shape)
      : s_(shape), b_(name_of(shape)), head_(shape.width / shape.heads) {}

  ModelGraph build() {
    const TensorId table = b_.weight({s_.width, s_.vocabulary, 1, 1}, s_.weights);
    const TensorId tokens = b_.input({s_.tokens, 1, 1, 1}, ElementType::kI32, s_.vocabulary);
    positions_ = b_.input({s_.tokens, 1, 1, 1}, ElementType::kI32, s_.cache);
    slots_ = b_.input({s_.tokens, 1, 1, 1}, ElementType::kI64, s_.cache);
    mask_ = b_.input({s_.cache, s_.tokens, 1, 1});
    TensorId x = b_.node(Operation::kGetRows, {s_.width, s_.tokens, 1, 1}, {table, tokens});
    for (std::uint64_t layer = 0; layer < s_.layers; ++layer) {
      b_.set_layer(static_cast<std::int32_t>(layer));
      x = b_.same(Operation::kAdd, {attend(b_.norm(x, b_.weight({s_.width, 1, 1, 1}))), x});
      const TensorId normed = b_.norm(x, b_.weight({s_.width, 1, 1, 1}));
      x = b_.same(Operation::kAdd, {s_.experts == 0 ? forward(normed) : mix(normed), x});
    }
    b_.set_layer(static_cast<std::int32_t>(s_.layers));
    const TensorId last = b_.norm(x, b_.weight({s_.width, 1, 1, 1}));
    TensorSpec logits;
    logits.operation = Operation::kMulMat;
    logits.shape = {s_.vocabulary, s_.tokens, 1, 1};
    logits.sources = {b_.weight({s_.width, s_.vocabulary, 1, 1}, s_.weights), last};
    logits.flags = graph::kOutput;
    logits.name = "logits";
    return b_.finish({b_.add(logits)});
  }

 private:
  static std::string name_of(const TransformerShape& shape) {
    return std::string(shape.experts == 0 ? "llama" : "mixtral") +
           (shape.has_one_attention ? " with one attention" : "");
  }

  TensorId turned(TensorId x, std::uint64_t heads) {
    OperationParameters parameters;
    parameters.reals[0] = 10000;
    parameters.integers[0] = static_cast<std::int32_t>(head_);
    const TensorId split = b_.reshape(x, {head_, heads, s_.tokens, 1});
    return b_.same(Operation::kRope, {split, positions_}, parameters);
  }

  /// The cache as [head, places, heads], after the new rows are in.
  TensorId cached(TensorId rows, TensorId cache) {
    const std::uint64_t width = head_ * s_.kv_heads;
    const TensorId flat = b_.reshape(rows, {width, s_.tokens, 1, 1});
    const TensorId written = b_.set_rows(flat, slots_, cache);
    const TensorId heads = b_.view(Operation::kView, written, {head_, s_.kv_heads, s_.cache, 1});
    return b_.permute(heads, {0, 2, 1, 3});
  }

  TensorId attend(TensorId x) {
    const std::uint64_t kv = head_ * s_.kv_heads;
    const TensorId q =
        turned(b_.mul_mat(b_.weight({s_.width, s_.width, 1, 1}, s_.weights), x), s_.heads);
    const TensorId k =
        turned(b_.mul_mat(b_.weight({s_.width, kv, 1, 1}, s_.weights), x), s_.kv_heads);
    const TensorId v = b_.mul_mat(b_.weight({s_.width, kv, 1, 1}, s_.weights), x);
    const TensorId keys = cached(k, b_.weight({kv, s_.cache, 1, 1}, ElementType::kF16));
    const TensorId values = cached(v, b_.weight({kv, s_.cache, 1, 1}, ElementType::kF16));
    const TensorId asked = b_.permute(q, {0, 2, 1, 3});
    const double factor = 1 / std::sqrt(static_cast<double>(head_));
    TensorId out;
    if (s_.has_one_attention) {
      OperationParameters parameters;
      parameters.reals[0] = static_cast<float>(factor);
      const TensorId mask = b_.cast(mask_, ElementType::kF16);
      out = b_.node(Operation::kFlashAttnExt, {head_, s_.heads, s_.tokens, 1},
                    {asked, keys, values, mask}, parameters);
    } else {
      const TensorId scores = b_.soft_max({b_.mul_mat(keys, asked), mask_}, factor);
      const TensorId across = b_.node(Operation::kCont, {s_.cache, head_, s_.kv_heads, 1},
                                      {b_.permute(values, {1, 0, 2, 3})});
      out = b_.node(Operation::kCont, {head_, s_.heads, s_.tokens, 1},
                    {b_.permute(b_.mul_mat(across, scores), {0, 2, 1, 3})});
    }
    const TensorId joined = b_.reshape(out, {s_.width, s_.tokens, 1, 1});
    return b_.mul_mat(b_.weight({s_.width, s_.width, 1, 1}, s_.weights), joined);
  }

  TensorId forward(TensorId x) {
    const TensorId gate = b_.mul_mat(b_.weight({s_.width, s_.hidden, 1, 1}, s_.weights), x);
    const TensorId up = b_.mul_mat(b_.weight({s_.width, s_.hidden, 1, 1}, s_.weights), x);
    const TensorId both = b_.same(Operation::kMul, {b_.same(Operation::kSilu, {gate}), up});
    return b_.mul_mat(b_.weight({s_.hidden, s_.width, 1, 1}, s_.weights), both);
  }

  /// The two best experts of each token, weighted.
  TensorId mix(TensorId x) {
    constexpr std::uint64_t kUsed = 2;
    const TensorId odds = b_.soft_max({b_.mul_mat(b_.weight({s_.width, s_.experts, 1, 1}), x)});
    OperationParameters descending;
    descending.integers[0] = 1;
    const TensorId order = b_.node(Operation::kArgsort, {s_.experts, s_.tokens, 1, 1}, {odds},
                                   descending, ElementType::kI32);
    const TensorId best =
        b_.view(Operation::kView, order, {kUsed, s_.tokens, 1, 1}, b_[order].strides);
    const TensorId each = b_.reshape(odds, {1, s_.experts, s_.tokens, 1});
    const TensorId picked = b_.node(Operation::kGetRows, {1, kUsed, s_.tokens, 1}, {each, best});
    const TensorId flat = b_.reshape(picked, {kUsed, s_.tokens, 1, 1});
    const TensorId total = b_.node(Operation::kSumRows, {1, s_.tokens, 1, 1}, {flat});
    const TensorId weights =
        b_.reshape(b_.same(Operation::kDiv, {flat, total}), {1, kUsed, s_.tokens, 1});
    const TensorId rows = b_.reshape(x, {s_.width, 1, s_.tokens, 1});
    const auto expert = [&](std::uint64_t from, std::uint64_t to, TensorId of) {
      return b_.node(Operation::kMulMatId, {to, kUsed, s_.tokens, 1},
                     {b_.weight({from, to, s_.experts, 1}, s_.weights), of, best});
    };
    const TensorId gate = expert(s_.width, s_.hidden, rows);
    const TensorId gated = b_.same(Operation::kSwiglu, {gate, expert(s_.width, s_.hidden, rows)});
    const TensorId out = b_.same(Operation::kMul, {expert(s_.hidden, s_.width, gated), weights});
    const Strides strides = b_[out].strides;
    const auto one = [&](std::uint64_t k) {
      return b_.view(Operation::kView, out, {s_.width, s_.tokens, 1, 1},
                     {strides[0], strides[2], strides[3], strides[3]}, k * strides[1]);
    };
    return b_.same(Operation::kAdd, {one(0), one(1)});
  }

  const TransformerShape s_;
  ModelBuilder b_;
  const std::uint64_t head_;
  TensorId positions_, slots_, mask_;
};

ModelGraph mlp() {
  ModelBuilder b("mlp");
  TensorId x = b.input({24, 6, 1, 1});
  for (std::int32_t layer = 0; layer < 4; ++layer) {
    b.set_layer(layer);
    const std::uint64_t from = b[x].shape[0], to = layer == 3 ? 10 : 32;
    x = b.mul_mat(b.weight({from, to, 1, 1}), x);
    x = b.same(Operation::kAdd, {x, b.weight({to, 1, 1, 1})});
    if (layer < 3) x = b.same(Operation::kRelu, {x});
  }
  return b.finish({b.soft_max({x})});
}

/// GPT-2's block: layer norms, one product for q, k and v, copies into the cache, a diagonal mask.
ModelGraph gpt2() {
  constexpr std::uint64_t kWidth = 32, kHeads = 4, kHead = kWidth / kHeads, kTokens = 3, kPast = 2;
  constexpr std::uint64_t kAll = kTokens + kPast;
  ModelBuilder b("gpt2");
  const TensorId tokens = b.input({kTokens, 1, 1, 1}, ElementType::kI32, 20);
  const TensorId places = b.input({kTokens, 1, 1, 1}, ElementType::kI32, 8);
  const Shape rows{kWidth, kTokens, 1, 1};
  TensorId x = b.same(Operation::kAdd,
                      {b.node(Operation::kGetRows, rows, {b.weight({kWidth, 20, 1, 1}), tokens}),
                       b.node(Operation::kGetRows, rows, {b.weight({kWidth, 8, 1, 1}), places})});
  const auto linear = [&](TensorId of, std::uint64_t to) {
    const TensorId product = b.mul_mat(b.weight({b[of].shape[0], to, 1, 1}, ElementType::kF16), of);
    return b.same(Operation::kAdd, {product, b.weight({to, 1, 1, 1})});
  };
  const auto norm = [&](TensorId of) {
    const TensorId scaled = b.norm(of, b.weight({kWidth, 1, 1, 1}), Operation::kNorm);
    return b.same(Operation::kAdd, {scaled, b.weight({kWidth, 1, 1, 1})});
  };
  for (std::int32_t layer = 0; layer < 2; ++layer) {
    b.set_layer(layer);
    const TensorId qkv = linear(norm(x), 3 * kWidth);
    const auto third = [&](std::uint64_t k) {
      return b.view(Operation::kView, qkv, rows, b[qkv].strides, k * kWidth * 4);
    };
    const auto store = [&](TensorId part) {
      const TensorId cache = b.weight({kWidth * 8, 1, 1, 1});
      const TensorId into =
          b.view(Operation::kView, cache, {kWidth * kTokens, 1, 1, 1}, {}, kPast * kWidth * 4);
      TensorSpec copy;
      copy.operation = Operation::kCpy;
      copy.shape = b[into].shape;
      copy.sources = {part, into};
      copy.view_source = into;
      b.add(copy);
      return b.view(Operation::kView, cache, {kHead, kHeads, kAll, 1});
    };
    const TensorId q = third(0), k = third(1), v = third(2);
    const TensorId keys = b.permute(store(k), {0, 2, 1, 3}), values = store(v);
    const TensorId whole = b.node(Operation::kCont, {kHead, kHeads, kTokens, 1}, {q});
    const TensorId scores =
        b.scale(b.mul_mat(keys, b.permute(whole, {0, 2, 1, 3})), 1 / std::sqrt(double{kHead}));
    OperationParameters past;
    past.integers[0] = kPast;
    const TensorId odds = b.soft_max({b.same(Operation::kDiagMaskInf, {scores}, past)});
    const TensorId across =
        b.node(Operation::kCont, {kAll, kHead, kHeads, 1}, {b.permute(values, {1, 2, 0, 3})});
    const TensorId merged =
        b.node(Operation::kCont, rows, {b.permute(b.mul_mat(across, odds), {0, 2, 1, 3})});
    x = b.same(Operation::kAdd, {linear(merged, kWidth), x});
    const TensorId hidden = b.same(Operation::kGelu, {linear(norm(x), 4 * kWidth)});
    x = b.same(Operation::kAdd, {linear(hidden, kWidth), x});
  }
  b.set_layer(2);
  return b.finish({b.mul_mat(b.weight({kWidth, 20, 1, 1}), norm(x))});
}

/// Whisper's encoder: convolutions in one dimension, then a block without a mask.
ModelGraph whisper() {
  constexpr std::uint64_t kSteps = 10, kMels = 6, kWidth = 16, kHeads = 2, kHead = 8;
  ModelBuilder b("whisper");
  TensorId x = b.input({kSteps, kMels, 1, 1});
  const auto convolve = [&](TensorId of, std::int32_t stride) {
    const std::uint64_t channels = b[of].shape[1];
    const TensorId kernel = b.weight({3, channels, kWidth, 1}, ElementType::kF16);
    OperationParameters numbers;
    numbers.integers = {stride, 1, 1, 0, 1, 1, 1, 0};
    const std::uint64_t steps = (b[of].shape[0] - 1) / static_cast<std::uint64_t>(stride) + 1;
    const TensorId patches = b.node(Operation::kIm2col, {3 * channels, steps, 1, 1}, {kernel, of},
                                    numbers, ElementType::kF16);
    const TensorId product = b.mul_mat(patches, b.reshape(kernel, {3 * channels, kWidth, 1, 1}));
    const TensorId biased = b.same(Operation::kAdd, {product, b.weight({1, kWidth, 1, 1})});
    return b.same(Operation::kGelu, {biased});
  };
  x = convolve(convolve(x, 1), 2);
  const std::uint64_t steps = b[x].shape[0];
  const Shape rows{kWidth, steps, 1, 1};
  x = b.same(Operation::kAdd, {b.weight(rows), b.permute(x, {1, 0, 2, 3})});
  b.set_layer(0);
  const TensorId normed = b.norm(x, b.weight({kWidth, 1, 1, 1}), Operation::kNorm);
  const auto split = [&](TensorId of) { return b.reshape(of, {kHead, kHeads, steps, 1}); };
  const auto linear = [&](TensorId of) {
    return b.mul_mat(b.weight({kWidth, kWidth, 1, 1}, ElementType::kF16), of);
  };
  const TensorId q = b.permute(split(linear(normed)), {0, 2, 1, 3});
  const TensorId k = b.permute(split(linear(normed)), {0, 2, 1, 3});
  const TensorId keys = b.cast(k, ElementType::kF16);
  const TensorId across = b.permute(split(linear(normed)), {1, 2, 0, 3});
  const TensorId values =
      b.node(Operation::kCpy, {steps, kHead, kHeads, 1}, {across}, {}, ElementType::kF16);
  const TensorId odds = b.soft_max({b.mul_mat(keys, q)}, 1 / std::sqrt(double{kHead}));
  const TensorId merged =
      b.node(Operation::kCont, rows, {b.permute(b.mul_mat(values, odds), {0, 2, 1, 3})});
  return b.finish({b.same(Operation::kAdd, {linear(merged), x})});
}

/// Two blocks of a residual network, with a pool before and a mean behind.
ModelGraph resnet() {
  constexpr std::uint64_t kSide = 8, kImages = 2;
  ModelBuilder b("resnet");
  TensorId x = b.input({kSide, kSide, 3, kImages});
  const auto convolve = [&](TensorId of, std::uint64_t to, std::int32_t stride) {
    const Shape image = b[of].shape;
    const TensorId kernel = b.weight({3, 3, image[2], to}, ElementType::kF16);
    OperationParameters numbers;
    numbers.integers = {stride, stride, 1, 1, 1, 1, 0, 0};
    const std::uint64_t side = (image[0] - 1) / static_cast<std::uint64_t>(stride) + 1;
    const Shape patches{9 * image[2], side, side, image[3]};
    const TensorId cols =
        b.node(Operation::kIm2col, patches, {kernel, of}, numbers, ElementType::kF16);
    const TensorId flat = b.reshape(cols, {patches[0], side * side * image[3], 1, 1});
    const TensorId product = b.mul_mat(flat, b.reshape(kernel, {patches[0], to, 1, 1}));
    const TensorId images = b.reshape(product, {side, side, image[3], to});
    const TensorId whole =
        b.node(Operation::kCont, {side, side, to, image[3]}, {b.permute(images, {0, 1, 3, 2})});
    return b.same(Operation::kAdd, {whole, b.weight({1, 1, to, 1})});
  };
  x = b.same(Operation::kRelu, {convolve(x, 4, 1)});
  OperationParameters pool;
  pool.integers = {0, 2, 2, 2, 2, 0, 0, 0};
  x = b.node(Operation::kPool2d, {kSide / 2, kSide / 2, 4, kImages}, {x}, pool);
  for (std::int32_t layer = 0; layer < 2; ++layer) {
    b.set_layer(layer);
    const std::uint64_t to = layer == 0 ? 4 : 6;
    const TensorId first = b.same(Operation::kRelu, {convolve(x, to, layer + 1)});
    const TensorId second = convolve(first, to, 1);
    const TensorId across = layer == 0 ? x : convolve(x, to, 2);
    x = b.same(Operation::kRelu, {b.same(Operation::kAdd, {second, across})});
  }
  b.set_layer(2);
  const std::uint64_t side = b[x].shape[0];
  OperationParameters mean;
  const auto window = static_cast<std::int32_t>(side);
  mean.integers = {1, window, window, window, window, 0, 0, 0};
  const TensorId pooled = b.node(Operation::kPool2d, {1, 1, 6, kImages}, {x}, mean);
  const TensorId features = b.reshape(pooled, {6, kImages, 1, 1});
  return b.finish({b.mul_mat(b.weight({6, 5, 1, 1}), features)});
}

/// A step of training: forward, loss, gradients, AdamW.
ModelGraph training() {
  constexpr std::uint64_t kIn = 12, kOut = 5, kRows = 7;
  ModelBuilder b("training");
  const TensorId images = b.input({kIn, kRows, 1, 1});
  const TensorId labels = b.input({kOut, kRows, 1, 1});
  const TensorId one = b.input({1, 1, 1, 1});
  const TensorId numbers = b.weight({7, 1, 1, 1});
  b.set_layer(0);
  const TensorId w1 = b.weight({kIn, 8, 1, 1}), b1 = b.weight({8, 1, 1, 1});
  const TensorId before = b.same(Operation::kAdd, {b.mul_mat(w1, images), b1});
  const TensorId hidden = b.same(Operation::kRelu, {before});
  b.set_layer(1);
  const TensorId w2 = b.weight({8, kOut, 1, 1}), b2 = b.weight({kOut, 1, 1, 1});
  const TensorId logits = b.same(Operation::kAdd, {b.mul_mat(w2, hidden), b2});
  const TensorId loss = b.node(Operation::kCrossEntropyLoss, {1, 1, 1, 1}, {logits, labels});
  const TensorId gradient =
      b.node(Operation::kCrossEntropyLossBack, b[logits].shape, {one, logits, labels});
  const TensorId gradient_b2 = b.node(Operation::kRepeatBack, {kOut, 1, 1, 1}, {gradient});
  const TensorId gradient_w2 = b.node(Operation::kOutProd, {8, kOut, 1, 1}, {hidden, gradient});
  const TensorId across =
      b.view(Operation::kTranspose, gradient, {kRows, kOut, 1, 1},
             {b[gradient].strides[1], 4, b[gradient].strides[2], b[gradient].strides[3]});
  const TensorId gradient_hidden = b.node(Operation::kOutProd, {8, kRows, 1, 1}, {w2, across});
  const TensorId passed =
      b.same(Operation::kMul, {b.same(Operation::kStep, {before}), gradient_hidden});
  const TensorId gradient_b1 = b.node(Operation::kRepeatBack, {8, 1, 1, 1}, {passed});
  const TensorId gradient_w1 = b.node(Operation::kOutProd, {kIn, 8, 1, 1}, {images, passed});
  const auto step = [&](TensorId parameter, TensorId slope) {
    const Shape shape = b[parameter].shape;
    TensorSpec spec;
    spec.operation = Operation::kOptStepAdamw;
    spec.shape = shape;
    spec.sources = {parameter, slope, b.weight(shape), b.weight(shape), numbers};
    spec.view_source = parameter;
    return b.add(spec);
  };
  const TensorId stepped[] = {step(w1, gradient_w1), step(b1, gradient_b1), step(w2, gradient_w2),
                              step(b2, gradient_b2)};
  return b.finish({loss, stepped[0], stepped[1], stepped[2], stepped[3]});
}

}  // namespace

ModelGraph transformer(const TransformerShape& shape) { return Transformer(shape).build(); }

std::vector<ModelGraph> small_models() {
  std::vector<ModelGraph> models;
  models.push_back(mlp());
  models.push_back(gpt2());
  TransformerShape shape;
  models.push_back(transformer(shape));
  shape.has_one_attention = true;
  shape.weights = ElementType::kQ4_0;
  models.push_back(transformer(shape));
  shape.experts = 4;
  models.push_back(transformer(shape));
  models.push_back(whisper());
  models.push_back(resnet());
  models.push_back(training());
  return models;
}

}  // namespace ashlar::props
