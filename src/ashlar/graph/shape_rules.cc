#include <ashlar/graph/shape_rules.h>

#include <algorithm>

namespace ashlar::inline v0::graph {
namespace {

/// One node and its sources, for the rules.
struct Node {
  const Tensor& out;
  std::span<const TensorId> ids;
  const Graph& graph;

  bool has(std::size_t k) const { return k < ids.size() && ids[k] != kNoTensor; }
  const Tensor& operator[](std::size_t k) const { return graph[ids[k]]; }
  std::int32_t number(std::size_t k) const { return out.parameters.integers[k]; }
};

/// Whether `small` repeated in each dimension gives `large`.
bool repeats_to(const Shape& small, const Shape& large) {
  for (std::size_t d = 0; d < kDimensions; ++d) {
    if (large[d] == 0) continue;
    if (small[d] == 0 || large[d] % small[d] != 0) return false;
  }
  return true;
}

bool is_index(const Tensor& tensor) {
  return tensor.type == ElementType::kI32 || tensor.type == ElementType::kI64;
}

const char* binary_fault(const Node& node) {
  if (node[0].shape != node.out.shape) return "the first source has another shape";
  return repeats_to(node[1].shape, node.out.shape)
             ? nullptr
             : "the second source does not repeat to the first";
}

const char* soft_max_fault(const Node& node) {
  if (node[0].shape != node.out.shape) return "the source has another shape";
  if (!node.has(1)) return nullptr;
  const Tensor& mask = node[1];
  const bool is_long_enough =
      mask.shape[0] == node.out.shape[0] && mask.shape[1] >= node.out.shape[1];
  for (std::size_t d = 2; d < kDimensions; ++d) {
    if (mask.shape[d] == 0 || node.out.shape[d] % mask.shape[d] != 0)
      return "the mask does not repeat to the source";
  }
  return is_long_enough ? nullptr : "the mask does not cover the source's rows";
}

const char* rope_fault(const Node& node) {
  if (node[0].shape != node.out.shape) return "the source has another shape";
  if (!node.has(1) || node[1].type != ElementType::kI32 || node[1].shape[0] < node.out.shape[2])
    return "there is not one i32 position for each step of dimension 2";
  if (elements_of(node[1].shape) == 0 && elements_of(node.out.shape) > 0)
    return "there is not one i32 position for each step of dimension 2";
  const std::int32_t turned = node.number(0);
  if (turned < 0 || turned % 2 != 0 || static_cast<std::uint64_t>(turned) > node.out.shape[0])
    return "the number of turned elements is odd or above the row's";
  return node.number(1) == 0 || node.number(1) == 2 ? nullptr : "an unknown way to pair elements";
}

const char* mul_mat_fault(const Node& node) {
  const Tensor &a = node[0], &b = node[1];
  if (a.shape[0] != b.shape[0]) return "rows of different lengths are multiplied";
  const Shape expected{a.shape[1], b.shape[1], b.shape[2], b.shape[3]};
  if (node.out.shape != expected) return "the product has another shape";
  for (std::size_t d = 2; d < kDimensions; ++d) {
    if (b.shape[d] != 0 && (a.shape[d] == 0 || b.shape[d] % a.shape[d] != 0))
      return "the first matrix does not repeat to the second's";
  }
  return nullptr;
}

const char* mul_mat_id_fault(const Node& node) {
  const Tensor &a = node[0], &b = node[1], &ids = node[2];
  if (a.shape[0] != b.shape[0]) return "rows of different lengths are multiplied";
  if (ids.type != ElementType::kI32) return "the experts' numbers are not i32";
  const Shape expected{a.shape[1], ids.shape[0], b.shape[2], 1};
  if (node.out.shape != expected || a.shape[3] != 1 || b.shape[3] != 1)
    return "the product has another shape";
  if (ids.shape[1] < b.shape[2] || ids.shape[2] == 0 || ids.shape[3] == 0)
    return "there are not experts for each token";
  if (b.shape[1] == 0 || ids.shape[0] % b.shape[1] != 0)
    return "the second matrix does not repeat to the experts";
  return nullptr;
}

const char* out_prod_fault(const Node& node) {
  const Tensor &a = node[0], &b = node[1];
  if (a.shape[1] != b.shape[1]) return "columns of different lengths are multiplied";
  const Shape expected{a.shape[0], b.shape[0], b.shape[2], b.shape[3]};
  if (node.out.shape != expected) return "the product has another shape";
  for (std::size_t d = 2; d < kDimensions; ++d) {
    if (b.shape[d] != 0 && (a.shape[d] == 0 || b.shape[d] % a.shape[d] != 0))
      return "the first matrix does not repeat to the second's";
  }
  return nullptr;
}

const char* attention_fault(const Node& node) {
  const Tensor &q = node[0], &k = node[1], &v = node[2];
  if (q.shape[0] != k.shape[0] || k.shape[1] != v.shape[1]) return "q, k and v do not fit";
  const Shape expected{v.shape[0], q.shape[2], q.shape[1], q.shape[3]};
  if (node.out.shape != expected) return "the result has another shape";
  for (std::size_t d = 2; d < kDimensions; ++d) {
    if (q.shape[d] == 0) continue;
    if (k.shape[d] == 0 || q.shape[d] % k.shape[d] != 0 || v.shape[d] != k.shape[d])
      return "the heads of k and v do not repeat to those of q";
  }
  if (!node.has(3)) return nullptr;
  const Tensor& mask = node[3];
  if (mask.shape[0] != k.shape[1] || mask.shape[1] < q.shape[1]) return "the mask does not fit";
  return mask.shape[2] == 1 && mask.shape[3] == 1 ? nullptr : "the mask has heads of its own";
}

const char* get_rows_fault(const Node& node) {
  const Tensor &a = node[0], &ids = node[1];
  if (!is_index(ids)) return "the rows' numbers are neither i32 nor i64";
  const Shape expected{a.shape[0], ids.shape[0], ids.shape[1], ids.shape[2]};
  if (node.out.shape != expected || ids.shape[3] != 1) return "the result has another shape";
  const bool fits = a.shape[2] == ids.shape[1] && a.shape[3] == ids.shape[2];
  return fits ? nullptr : "there are not numbers for each matrix";
}

const char* set_rows_fault(const Node& node) {
  const Tensor &values = node[0], &ids = node[1];
  if (!is_index(ids)) return "the rows' numbers are neither i32 nor i64";
  if (values.shape[0] != node.out.shape[0] || ids.shape[0] != values.shape[1])
    return "there is not one number for each row";
  for (std::size_t d = 2; d < kDimensions; ++d) {
    if (values.shape[d] != node.out.shape[d]) return "the values have another shape";
    if (ids.shape[d - 1] == 0 || values.shape[d] % ids.shape[d - 1] != 0)
      return "the numbers do not repeat to the values";
  }
  return ids.shape[3] == 1 ? nullptr : "the numbers have a fourth dimension";
}

const char* copy_fault(const Node& node) {
  return elements_of(node[0].shape) == elements_of(node.out.shape)
             ? nullptr
             : "the source has another number of elements";
}

const char* swiglu_fault(const Node& node) {
  if (node.has(1)) {
    const bool is_same = node[0].shape == node.out.shape && node[1].shape == node.out.shape;
    return is_same ? nullptr : "a source has another shape";
  }
  Shape halved = node[0].shape;
  if (halved[0] % 2 != 0) return "the source's rows have no halves";
  halved[0] /= 2;
  return halved == node.out.shape ? nullptr : "the source's halves have another shape";
}

const char* concat_fault(const Node& node) {
  const std::int32_t axis = node.number(0);
  if (axis < 0 || axis >= kDimensions) return "an axis that does not exist";
  for (std::size_t d = 0; d < kDimensions; ++d) {
    const bool is_axis = d == static_cast<std::size_t>(axis);
    if (is_axis ? node[0].shape[d] + node[1].shape[d] != node.out.shape[d]
                : node[0].shape[d] != node.out.shape[d] || node[1].shape[d] != node.out.shape[d])
      return "the sources do not make up the result";
  }
  return nullptr;
}

const char* pad_fault(const Node& node) {
  for (std::size_t d = 0; d < kDimensions; ++d) {
    if (node[0].shape[d] > node.out.shape[d]) return "the source is larger than the result";
  }
  return nullptr;
}

const char* rows_to_one_fault(const Node& node) {
  Shape expected = node[0].shape;
  expected[0] = 1;
  return node.out.shape == expected ? nullptr : "the result does not have one element for a row";
}

/// The steps of a window along a side; 0 if there are none.
std::uint64_t window_steps(std::uint64_t size, std::int64_t window, std::int64_t stride,
                           std::int64_t pad, std::int64_t dilation) {
  // A window far beyond the image takes no step; the product below would not fit.
  const std::int64_t padded = static_cast<std::int64_t>(size) + 2 * pad;
  if (window > 1 && window - 1 > std::max<std::int64_t>(padded - 1, 0) / dilation) return 0;
  const std::int64_t reach = padded - dilation * (window - 1) - 1;
  return reach < 0 ? 0 : static_cast<std::uint64_t>(reach / stride + 1);
}

constexpr std::int32_t kWindowMax = 1 << 16;

bool is_window_number(std::int32_t number, std::int32_t least) {
  return number >= least && number <= kWindowMax;
}

/// Patches of `image` under `kernel` as rows. Number 6 is 1 for images of one dimension: [steps, channels,
/// n] under [width, channels, ...].
const char* patches_fault(const Node& node, const Tensor& kernel, const Shape& image,
                          const Shape& patches) {
  for (std::size_t k = 0; k < 6; ++k) {
    if (!is_window_number(node.number(k), k == 2 || k == 3 ? 0 : 1))
      return "a stride, pad or dilation out of range";
  }
  const bool is_flat = node.number(6) == 1;
  if (!is_flat && node.number(6) != 0) return "neither one nor two dimensions";
  const std::size_t channels = is_flat ? 1 : 2;
  if (kernel.shape[channels] != image[channels]) return "kernel and image have different channels";
  const auto side = [&](std::size_t d) {
    return window_steps(image[d], static_cast<std::int64_t>(kernel.shape[d]), node.number(d),
                        node.number(2 + d), node.number(4 + d));
  };
  const std::uint64_t row = kernel.shape[0] * kernel.shape[1] * (is_flat ? 1 : kernel.shape[2]);
  const Shape expected =
      is_flat ? Shape{row, side(0), image[2], 1} : Shape{row, side(0), side(1), image[3]};
  if (is_flat && image[3] != 1) return "an image of one dimension with four";
  return patches == expected ? nullptr : "the patches have another shape";
}

const char* pool_fault(const Node& node, const Shape& image, const Shape& pooled) {
  if (node.number(0) != 0 && node.number(0) != 1) return "an unknown kind of pool";
  for (std::size_t k = 1; k < 7; ++k) {
    if (!is_window_number(node.number(k), k > 4 ? 0 : 1))
      return "a window, stride or pad out of range";
  }
  for (std::size_t d = 0; d < 2; ++d) {
    if (window_steps(image[d], node.number(1 + d), node.number(3 + d), node.number(5 + d), 1) !=
        pooled[d])
      return "the pooled image has another shape";
    if (node.number(5 + d) >= node.number(1 + d)) return "a pad that is as large as the window";
  }
  return image[2] == pooled[2] && image[3] == pooled[3] ? nullptr
                                                        : "the pooled image has another shape";
}

const char* loss_fault(const Node& node) {
  if (node.out.shape != Shape{1, 1, 1, 1}) return "the loss is not one number";
  return node[0].shape == node[1].shape ? nullptr : "logits and labels have different shapes";
}

const char* loss_back_fault(const Node& node) {
  if (elements_of(node[0].shape) != 1) return "the loss's gradient is not one number";
  const bool is_same = node[1].shape == node.out.shape && node[2].shape == node.out.shape;
  return is_same ? nullptr : "logits and labels have different shapes";
}

const char* adamw_fault(const Node& node) {
  for (std::size_t k = 0; k < 4; ++k) {
    if (node[k].shape != node.out.shape) return "gradient and moments have other shapes";
  }
  if (node[0].root != node.out.root || node[0].view_offset != node.out.view_offset)
    return "the result is not the parameter";
  return node[4].shape[0] >= 7 && elements_of(node[4].shape) > 0 ? nullptr
                                                                 : "there are not seven numbers";
}

const char* rule_of(const Node& node) {
  const bool is_same = node.has(0) && node[0].shape == node.out.shape;
  switch (node.out.operation) {
    case Operation::kAdd:
    case Operation::kSub:
    case Operation::kMul:
    case Operation::kDiv: return binary_fault(node);
    case Operation::kSoftMax: return soft_max_fault(node);
    case Operation::kRope: return rope_fault(node);
    case Operation::kMulMat: return mul_mat_fault(node);
    case Operation::kMulMatId: return mul_mat_id_fault(node);
    case Operation::kOutProd: return out_prod_fault(node);
    case Operation::kFlashAttnExt: return attention_fault(node);
    case Operation::kGetRows: return get_rows_fault(node);
    case Operation::kSetRows: return set_rows_fault(node);
    case Operation::kCont:
    case Operation::kCpy: return copy_fault(node);
    case Operation::kSwiglu: return swiglu_fault(node);
    case Operation::kConcat: return concat_fault(node);
    case Operation::kPad: return pad_fault(node);
    case Operation::kRepeat:
      return repeats_to(node[0].shape, node.out.shape) ? nullptr : "the source does not repeat";
    case Operation::kRepeatBack:
      return repeats_to(node.out.shape, node[0].shape) ? nullptr : "the result does not repeat";
    case Operation::kSum:
      return node.out.shape == Shape{1, 1, 1, 1} ? nullptr : "the sum is not one number";
    case Operation::kSumRows:
    case Operation::kMean: return rows_to_one_fault(node);
    case Operation::kIm2col: return patches_fault(node, node[0], node[1].shape, node.out.shape);
    case Operation::kIm2colBack: return patches_fault(node, node[1], node.out.shape, node[0].shape);
    case Operation::kPool2d: return pool_fault(node, node[0].shape, node.out.shape);
    case Operation::kPool2dBack:
      if (node[1].shape != node.out.shape) return "the image has another shape";
      return pool_fault(node, node.out.shape, node[0].shape);
    case Operation::kCrossEntropyLoss: return loss_fault(node);
    case Operation::kCrossEntropyLossBack: return loss_back_fault(node);
    case Operation::kOptStepAdamw: return adamw_fault(node);
    case Operation::kNone:
    case Operation::kView:
    case Operation::kReshape:
    case Operation::kPermute:
    case Operation::kTranspose:
    case Operation::kControl: return nullptr;
    default: return is_same ? nullptr : "the source has another shape";  // element or row by row
  }
}

}  // namespace

const char* shape_fault(const Graph& graph, TensorId id) noexcept {
  const Tensor& out = graph[id];
  return rule_of(Node{out, graph.sources(out), graph});
}

}  // namespace ashlar::inline v0::graph
