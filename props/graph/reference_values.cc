#include "props/graph/reference_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ashlar::props {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::Operation;
using graph::Shape;
using graph::Tensor;
using graph::TensorId;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One node, evaluated element by element.
class ReferenceNode {
 public:
  ReferenceNode(const Graph& graph, TensorId node, const Fetch& fetch)
      : graph_(graph), out_(graph[node]), ids_(graph.sources(out_)), fetch_(fetch) {}

  std::vector<double> values() const {
    std::vector<double> result;
    if (out_.operation == Operation::kSetRows) return rows_set();
    for (std::uint64_t n = 0; n < graph::elements_of(out_.shape); ++n)
      result.push_back(value(place_of(out_.shape, n), n));
    return result;
  }

 private:
  bool has(std::size_t k) const { return k < ids_.size() && ids_[k] != kNoTensor; }
  const Shape& shape(std::size_t k) const { return graph_[ids_[k]].shape; }
  double in(std::size_t k, const Place& at) const { return fetch_(k, at); }
  double real(std::size_t k) const { return static_cast<double>(out_.parameters.reals[k]); }
  std::int64_t number(std::size_t k) const { return out_.parameters.integers[k]; }
  Place wrapped(std::size_t k, Place at) const {
    for (std::size_t d = 0; d < at.size(); ++d) at[d] %= shape(k)[d];
    return at;
  }
  /// The n-th element of a source, in the order of its dimensions.
  double nth(std::size_t k, std::uint64_t n) const { return in(k, place_of(shape(k), n)); }

  double value(const Place& at, std::uint64_t n) const {
    switch (out_.operation) {
      case Operation::kAdd: return in(0, at) + in(1, wrapped(1, at));
      case Operation::kSub: return in(0, at) - in(1, wrapped(1, at));
      case Operation::kMul: return in(0, at) * in(1, wrapped(1, at));
      case Operation::kDiv: return in(0, at) / in(1, wrapped(1, at));
      case Operation::kNorm:
      case Operation::kRmsNorm:
      case Operation::kSoftMax: return row_value(at);
      case Operation::kRope: return turned(at);
      case Operation::kDiagMaskInf: {
        const std::int64_t last = static_cast<std::int64_t>(at[1]) + number(0);
        return static_cast<std::int64_t>(at[0]) > last ? -kInfinity : in(0, at);
      }
      case Operation::kMulMat:
      case Operation::kMulMatId:
      case Operation::kOutProd: return product(at);
      case Operation::kFlashAttnExt: return attention(at);
      case Operation::kGetRows: {
        const auto row = static_cast<std::uint64_t>(in(1, {at[1], at[2], at[3], 0}));
        return in(0, {at[0], row, at[2], at[3]});
      }
      case Operation::kCont:
      case Operation::kCpy: return nth(0, n);
      case Operation::kSwiglu: return gated(at);
      case Operation::kConcat:
      case Operation::kPad:
      case Operation::kRepeat: return joined(at);
      case Operation::kRepeatBack:
      case Operation::kSum:
      case Operation::kSumRows:
      case Operation::kMean: return reduced(at);
      case Operation::kArgsort: return sorted(at);
      case Operation::kIm2col:
      case Operation::kIm2colBack: return patch(at);
      case Operation::kPool2d:
      case Operation::kPool2dBack: return pooled(at);
      case Operation::kCrossEntropyLoss:
      case Operation::kCrossEntropyLossBack: return loss(at);
      case Operation::kOptStepAdamw: return stepped(at);
      default: return unary(in(0, at));
    }
  }

  double unary(double x) const {
    switch (out_.operation) {
      case Operation::kScale: return real(0) * x + real(1);
      case Operation::kSqr: return x * x;
      case Operation::kSqrt: return std::sqrt(x);
      case Operation::kLog: return std::log(x);
      case Operation::kExp: return std::exp(x);
      case Operation::kNeg: return -x;
      case Operation::kStep: return x > 0 ? 1 : 0;
      case Operation::kRelu: return x > 0 ? x : 0;
      case Operation::kGelu:
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      case Operation::kSilu: return x * sigmoid(x);
      case Operation::kTanh: return std::tanh(x);
      case Operation::kSigmoid: return sigmoid(x);
      default: return std::numeric_limits<double>::quiet_NaN();
    }
  }

  double row_value(const Place& at) const {
    const std::uint64_t length = out_.shape[0];
    const auto x = [&](std::uint64_t k) {
      const double own = in(0, {k, at[1], at[2], at[3]});
      if (out_.operation != Operation::kSoftMax) return own;
      if (!has(1)) return real(0) * own;
      return real(0) * own + in(1, {k, at[1], at[2] % shape(1)[2], at[3] % shape(1)[3]});
    };
    if (out_.operation == Operation::kSoftMax) {
      double most = -kInfinity, sum = 0;
      for (std::uint64_t k = 0; k < length; ++k) most = std::max(most, x(k));
      for (std::uint64_t k = 0; k < length; ++k) sum += std::exp(x(k) - most);
      return std::exp(x(at[0]) - most) / sum;
    }
    double mean = 0, squares = 0;
    for (std::uint64_t k = 0; k < length && out_.operation == Operation::kNorm; ++k)
      mean += x(k) / static_cast<double>(length);
    for (std::uint64_t k = 0; k < length; ++k) squares += (x(k) - mean) * (x(k) - mean);
    return (x(at[0]) - mean) / std::sqrt(squares / static_cast<double>(length) + real(0));
  }

  double turned(const Place& at) const {
    const auto size = static_cast<std::uint64_t>(number(0));
    if (at[0] >= size) return in(0, at);
    const bool is_neighbours = number(1) == 0;
    const std::uint64_t pair = is_neighbours ? at[0] / 2 : at[0] % (size / 2);
    const bool is_second = is_neighbours ? at[0] % 2 == 1 : at[0] >= size / 2;
    const double angle =
        in(1, {at[2], 0, 0, 0}) *
        std::pow(real(0), -2.0 * static_cast<double>(pair) / static_cast<double>(size));
    const double a = in(0, {is_neighbours ? 2 * pair : pair, at[1], at[2], at[3]});
    const double b = in(0, {is_neighbours ? 2 * pair + 1 : pair + size / 2, at[1], at[2], at[3]});
    return is_second ? a * std::sin(angle) + b * std::cos(angle)
                     : a * std::cos(angle) - b * std::sin(angle);
  }

  double product(const Place& at) const {
    const Shape &a = shape(0), &b = shape(1);
    double sum = 0;
    if (out_.operation == Operation::kMulMatId) {
      const auto expert = static_cast<std::uint64_t>(in(2, {at[1], at[2], 0, 0}));
      for (std::uint64_t k = 0; k < a[0]; ++k)
        sum += in(0, {k, at[0], expert, 0}) * in(1, {k, at[1] % b[1], at[2], 0});
      return sum;
    }
    const std::uint64_t i2 = at[2] / (b[2] / a[2]), i3 = at[3] / (b[3] / a[3]);
    const bool is_outer = out_.operation == Operation::kOutProd;
    for (std::uint64_t k = 0; k < a[is_outer ? 1 : 0]; ++k) {
      sum += is_outer ? in(0, {at[0], k, i2, i3}) * in(1, {at[1], k, at[2], at[3]})
                      : in(0, {k, at[0], i2, i3}) * in(1, {k, at[1], at[2], at[3]});
    }
    return sum;
  }

  double attention(const Place& at) const {  // at: value, head, token, batch
    const Shape &q = shape(0), &k = shape(1);
    const std::uint64_t head = at[1] / (q[2] / k[2]), batch = at[3] / (q[3] / k[3]);
    std::vector<double> scores;
    for (std::uint64_t n = 0; n < k[1]; ++n) {
      double score = 0;
      for (std::uint64_t d = 0; d < q[0]; ++d)
        score += in(0, {d, at[2], at[1], at[3]}) * in(1, {d, n, head, batch});
      scores.push_back(real(0) * score + (has(3) ? in(3, {n, at[2], 0, 0}) : 0));
    }
    double most = -kInfinity, total = 0, sum = 0;
    for (const double score : scores) most = std::max(most, score);
    for (std::uint64_t n = 0; n < k[1]; ++n) {
      const double weight = std::exp(scores[n] - most);
      total += weight;
      sum += weight * in(2, {at[0], n, head, batch});
    }
    return sum / total;
  }

  double gated(const Place& at) const {
    const double gate = in(0, at);
    Place other = at;
    if (!has(1)) other[0] += out_.shape[0];
    return gate * sigmoid(gate) * (has(1) ? in(1, at) : in(0, other));
  }

  double joined(const Place& at) const {
    if (out_.operation == Operation::kRepeat) return in(0, wrapped(0, at));
    if (out_.operation == Operation::kConcat) {
      const auto axis = static_cast<std::size_t>(number(0));
      Place second = at;
      if (at[axis] < shape(0)[axis]) return in(0, at);
      second[axis] -= shape(0)[axis];
      return in(1, second);
    }
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (at[d] >= shape(0)[d]) return 0;
    }
    return in(0, at);
  }

  double reduced(const Place& at) const {
    double sum = 0;
    for (std::uint64_t n = 0; n < graph::elements_of(shape(0)); ++n) {
      const Place from = place_of(shape(0), n);
      bool is_here = true;
      for (std::size_t d = 0; d < at.size(); ++d)
        is_here = is_here && from[d] % out_.shape[d] == at[d];
      if (is_here) sum += in(0, from);
    }
    return out_.operation == Operation::kMean ? sum / static_cast<double>(shape(0)[0]) : sum;
  }

  double sorted(const Place& at) const {
    std::vector<std::uint64_t> order(out_.shape[0]);
    std::iota(order.begin(), order.end(), 0);
    const auto x = [&](std::uint64_t k) { return in(0, {k, at[1], at[2], at[3]}); };
    std::sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
      if (std::isnan(x(a)) != std::isnan(x(b))) return std::isnan(x(b));
      if (std::isnan(x(a)) || !(x(a) < x(b) || x(a) > x(b))) return a < b;
      return number(0) == 1 ? x(a) > x(b) : x(a) < x(b);
    });
    return static_cast<double>(order[at[0]]);
  }

  /// IM2COL and its back in two dimensions or one: the image as [x, y, channel, n].
  double patch(const Place& at) const {
    const bool is_back = out_.operation == Operation::kIm2colBack, is_flat = number(6) == 1;
    const Shape& kernel = shape(is_back ? 1 : 0);
    const auto width = static_cast<std::int64_t>(kernel[0]);
    const auto height = is_flat ? 1 : static_cast<std::int64_t>(kernel[1]);
    const std::int64_t stride_y = is_flat ? 1 : number(1), pad_y = is_flat ? 0 : number(3);
    const std::int64_t dilation_y = is_flat ? 1 : number(5);
    const auto image_at = [&](std::int64_t x, std::int64_t y, std::uint64_t c, std::uint64_t n) {
      const auto ux = static_cast<std::uint64_t>(x), uy = static_cast<std::uint64_t>(y);
      return is_flat ? Place{ux, c, n, 0} : Place{ux, uy, c, n};
    };
    if (!is_back) {
      const auto k = static_cast<std::int64_t>(at[0]);
      const std::int64_t kx = k % width, ky = k / width % height;
      const auto c = static_cast<std::uint64_t>(k / width / height);
      const std::int64_t x =
          static_cast<std::int64_t>(at[1]) * number(0) - number(2) + kx * number(4);
      const std::int64_t y =
          static_cast<std::int64_t>(is_flat ? 0 : at[2]) * stride_y - pad_y + ky * dilation_y;
      const auto size_x = static_cast<std::int64_t>(shape(1)[0]);
      const auto size_y = is_flat ? 1 : static_cast<std::int64_t>(shape(1)[1]);
      if (x < 0 || y < 0 || x >= size_x || y >= size_y) return 0;
      return in(1, image_at(x, y, c, is_flat ? at[2] : at[3]));
    }
    const auto x = static_cast<std::int64_t>(at[0]);
    const auto y = static_cast<std::int64_t>(is_flat ? 0 : at[1]);
    const auto c = static_cast<std::int64_t>(is_flat ? at[1] : at[2]);
    const std::uint64_t n = is_flat ? at[2] : at[3];
    double sum = 0;
    for (std::uint64_t k = 0; k < shape(0)[0]; ++k) {
      const auto whole = static_cast<std::int64_t>(k);
      if (whole / width / height != c) continue;
      for (std::uint64_t sy = 0; sy < (is_flat ? 1 : shape(0)[2]); ++sy) {
        for (std::uint64_t sx = 0; sx < shape(0)[1]; ++sx) {
          const std::int64_t to_x =
              static_cast<std::int64_t>(sx) * number(0) - number(2) + whole % width * number(4);
          const std::int64_t to_y = static_cast<std::int64_t>(sy) * stride_y - pad_y +
                                    whole / width % height * dilation_y;
          if (to_x == x && to_y == y)
            sum += in(0, is_flat ? Place{k, sx, n, 0} : Place{k, sx, sy, n});
        }
      }
    }
    return sum;
  }

  /// The pixels of a window: f(x, y) for those in the image.
  template <class F>
  void for_window(const Shape& image, std::uint64_t step_x, std::uint64_t step_y,
                  const F& f) const {
    for (std::int64_t dy = 0; dy < number(2); ++dy) {
      for (std::int64_t dx = 0; dx < number(1); ++dx) {
        const std::int64_t x = static_cast<std::int64_t>(step_x) * number(3) - number(5) + dx;
        const std::int64_t y = static_cast<std::int64_t>(step_y) * number(4) - number(6) + dy;
        if (x < 0 || y < 0 || x >= static_cast<std::int64_t>(image[0]) ||
            y >= static_cast<std::int64_t>(image[1]))
          continue;
        f(static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y));
      }
    }
  }

  double pooled(const Place& at) const {
    const bool is_mean = number(0) == 1;
    const auto window = static_cast<double>(number(1) * number(2));
    if (out_.operation == Operation::kPool2d) {
      double value = is_mean ? 0 : -kInfinity;
      for_window(shape(0), at[0], at[1], [&](std::uint64_t x, std::uint64_t y) {
        const double pixel = in(0, {x, y, at[2], at[3]});
        value = is_mean ? value + pixel : std::max(value, pixel);
      });
      return is_mean ? value / window : value;
    }
    double sum = 0;
    for (std::uint64_t sy = 0; sy < shape(0)[1]; ++sy) {
      for (std::uint64_t sx = 0; sx < shape(0)[0]; ++sx) {
        bool is_mine = false, is_any = false;
        double most = 0;
        for_window(out_.shape, sx, sy, [&](std::uint64_t x, std::uint64_t y) {
          const double pixel = in(1, {x, y, at[2], at[3]});
          const bool is_here = x == at[0] && y == at[1];
          if (is_mean) {
            is_mine = is_mine || is_here;
          } else if (!is_any || pixel > most) {
            is_mine = is_here;
            most = pixel;
          }
          is_any = true;
        });
        if (is_mine) sum += in(0, {sx, sy, at[2], at[3]}) / (is_mean ? window : 1);
      }
    }
    return sum;
  }

  double loss(const Place& at) const {
    const bool is_back = out_.operation == Operation::kCrossEntropyLossBack;
    const std::size_t logits = is_back ? 1 : 0, labels = is_back ? 2 : 1;
    const Shape& size = shape(logits);
    const auto rows = static_cast<double>(size[1] * size[2] * size[3]);
    const auto log_soft_max = [&](const Place& p) {
      double most = -kInfinity, sum = 0;
      for (std::uint64_t k = 0; k < size[0]; ++k)
        most = std::max(most, in(logits, {k, p[1], p[2], p[3]}));
      for (std::uint64_t k = 0; k < size[0]; ++k)
        sum += std::exp(in(logits, {k, p[1], p[2], p[3]}) - most);
      return in(logits, p) - most - std::log(sum);
    };
    if (is_back) return (std::exp(log_soft_max(at)) - in(labels, at)) * in(0, {0, 0, 0, 0}) / rows;
    double sum = 0;
    for (std::uint64_t n = 0; n < graph::elements_of(size); ++n) {
      const Place p = place_of(size, n);
      sum -= in(labels, p) * log_soft_max(p);
    }
    return rows == 0 ? 0 : sum / rows;
  }

  double stepped(const Place& at) const {
    const auto constant = [&](std::uint64_t k) { return nth(4, k); };
    const double gradient = in(1, at);
    const double first = in(2, at) * constant(1) + gradient * (1 - constant(1));
    const double second = in(3, at) * constant(2) + gradient * gradient * (1 - constant(2));
    return in(0, at) * (1 - constant(0) * constant(4)) -
           constant(0) * (first * constant(5)) / (std::sqrt(second * constant(6)) + constant(3));
  }

  /// What the tensor is afterwards: its old elements, of source 2, but for the rows that are set.
  std::vector<double> rows_set() const {
    std::vector<double> result;
    for (std::uint64_t n = 0; n < graph::elements_of(out_.shape); ++n)
      result.push_back(in(2, place_of(out_.shape, n)));
    const Shape& values = shape(0);
    for (std::uint64_t n = 0; n < graph::elements_of(values); ++n) {
      const Place p = place_of(values, n);
      const auto row =
          static_cast<std::uint64_t>(in(1, {p[1], p[2] % shape(1)[1], p[3] % shape(1)[2], 0}));
      const Shape& to = out_.shape;
      result[p[0] + to[0] * (row + to[1] * (p[2] + to[2] * p[3]))] = in(0, p);
    }
    return result;
  }

  const Graph& graph_;
  const Tensor& out_;
  const std::span<const TensorId> ids_;
  const Fetch& fetch_;
};

}  // namespace

Place place_of(const Shape& shape, std::uint64_t n) {
  return {n % shape[0], n / shape[0] % shape[1], n / shape[0] / shape[1] % shape[2],
          n / shape[0] / shape[1] / shape[2]};
}

std::vector<double> reference_values(const Graph& graph, TensorId node, const Fetch& fetch) {
  return ReferenceNode(graph, node, fetch).values();
}

}  // namespace ashlar::props
