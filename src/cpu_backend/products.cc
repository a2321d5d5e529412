#include <algorithm>
#include <cmath>
#include <Eigen/Core>
#include <limits>

#include "src/cpu_backend/kernels.h"

namespace ashlar::cpu {
namespace {

/// Columns of a product that one unit computes. Fixed, so that threads change no result.
constexpr std::uint64_t kBlockColumns = 64;
/// Rows of a first source that are unpacked at a time: a thread keeps no more of a weight than that.
constexpr std::uint64_t kBlockRows = 256;

using Matrix = Eigen::Map<const Eigen::MatrixXf, 0, Eigen::OuterStride<>>;
using MatrixOut = Eigen::Map<Eigen::MatrixXf, 0, Eigen::OuterStride<>>;

Eigen::Index index(std::uint64_t n) { return static_cast<Eigen::Index>(n); }

/// Whether rows_as_columns() has to unpack.
bool is_unpacked(const Operand& from) {
  const std::uint64_t stride = from.tensor->strides[1];
  return !from.has_float_rows() || stride % sizeof(float) != 0 ||
         stride < from.extent(0) * sizeof(float);
}

/// The rows [begin, end) of one matrix of a tensor, as the columns of an Eigen matrix.
Matrix rows_as_columns(const Operand& from, std::uint64_t begin, std::uint64_t end,
                       std::uint64_t i2, std::uint64_t i3, std::vector<float>& packed,
                       std::vector<float>& scratch) {
  const std::uint64_t length = from.extent(0);
  if (!is_unpacked(from)) {
    const auto* const data = reinterpret_cast<const float*>(from.row(begin, i2, i3));
    return {data, index(length), index(end - begin),
            Eigen::OuterStride<>(index(from.tensor->strides[1] / sizeof(float)))};
  }
  packed.resize(length * (end - begin));
  for (std::uint64_t row = begin; row < end; ++row) {
    const float* const values = read_row(from, row, i2, i3, scratch);
    std::copy(values, values + length, packed.data() + (row - begin) * length);
  }
  return {packed.data(), index(length), index(end - begin), Eigen::OuterStride<>(index(length))};
}

/// Writes the columns of a product as the rows [begin, begin + columns) of one matrix.
void write_columns(const KernelCall& call, std::uint64_t begin, std::uint64_t i2, std::uint64_t i3,
                   const Eigen::MatrixXf& product) {
  for (Eigen::Index column = 0; column < product.cols(); ++column) {
    const std::uint64_t i1 = begin + static_cast<std::uint64_t>(column);
    const float* const values = product.data() + column * product.rows();
    if (call.out.has_float_rows()) {
      std::copy(values, values + product.rows(),
                reinterpret_cast<float*>(call.out.row(i1, i2, i3)));
    } else {
      write_row(call.out, i1, i2, i3, values);
    }
  }
}

/// Each row of matrix [i2, i3] of `a`, with `right`.
Eigen::MatrixXf multiply(const Operand& a, std::uint64_t i2, std::uint64_t i3, const Matrix& right,
                         Scratch& scratch, std::vector<float>& packed) {
  const std::uint64_t rows = a.extent(1), step = is_unpacked(a) ? kBlockRows : rows;
  Eigen::MatrixXf product(index(rows), right.cols());
  for (std::uint64_t begin = 0; begin < rows; begin += step) {
    const std::uint64_t end = std::min(begin + step, rows);
    product.middleRows(index(begin), index(end - begin)).noalias() =
        rows_as_columns(a, begin, end, i2, i3, scratch.a, packed).transpose() * right;
  }
  return product;
}

std::uint64_t blocks_of(const KernelCall& call) {
  return (call.out.extent(1) + kBlockColumns - 1) / kBlockColumns;
}

float dot(const float* x, const float* y, std::uint64_t length) {
  using Vector = Eigen::Map<const Eigen::VectorXf>;
  return length == 0 ? 0.0f : Vector(x, index(length)).dot(Vector(y, index(length)));
}

}  // namespace

std::uint64_t mul_mat_units(const KernelCall& call) {
  return blocks_of(call) * call.out.extent(2) * call.out.extent(3);
}

Status mul_mat_blocks(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                      Scratch& scratch) {
  const graph::Shape &a = call.in[0].tensor->shape, &out = call.out.tensor->shape;
  if (out[0] == 0) return Status::ok();
  std::vector<float> packed;
  for (std::uint64_t unit = begin; unit < end; ++unit) {
    const std::uint64_t first = unit % blocks_of(call) * kBlockColumns;
    const std::uint64_t last = std::min(first + kBlockColumns, out[1]);
    const std::uint64_t matrix = unit / blocks_of(call);
    const std::uint64_t i2 = matrix % out[2], i3 = matrix / out[2];
    const Matrix right = rows_as_columns(call.in[1], first, last, i2, i3, scratch.b, packed);
    write_columns(
        call, first, i2, i3,
        multiply(call.in[0], i2 / (out[2] / a[2]), i3 / (out[3] / a[3]), right, scratch, packed));
  }
  return Status::ok();
}

Status mul_mat_id_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                       Scratch& scratch) {
  const graph::Shape& a = call.in[0].tensor->shape;
  std::vector<float> packed;
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const std::int64_t expert = read_index(call.in[2], at.i1, at.i2, 0, 0);
    if (expert < 0 || static_cast<std::uint64_t>(expert) >= a[2])
      return {Code::kInvalidArgument, "an expert's number is out of range"};
    if (a[1] == 0) continue;
    const std::uint64_t column = at.i1 % call.in[1].extent(1);
    const Matrix right =
        rows_as_columns(call.in[1], column, column + 1, at.i2, 0, scratch.b, packed);
    write_columns(
        call, at.i1, at.i2, 0,
        multiply(call.in[0], static_cast<std::uint64_t>(expert), 0, right, scratch, packed));
  }
  return Status::ok();
}

std::uint64_t out_prod_units(const KernelCall& call) {
  return call.out.extent(2) * call.out.extent(3);
}

Status out_prod_matrices(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                         Scratch& scratch) {
  const graph::Shape &a = call.in[0].tensor->shape, &b = call.in[1].tensor->shape;
  const graph::Shape& out = call.out.tensor->shape;
  if (out[0] == 0 || out[1] == 0) return Status::ok();
  std::vector<float> packed;
  for (std::uint64_t matrix = begin; matrix < end; ++matrix) {
    const std::uint64_t i2 = matrix % out[2], i3 = matrix / out[2];
    const Matrix left = rows_as_columns(call.in[0], 0, a[1], i2 / (out[2] / a[2]),
                                        i3 / (out[3] / a[3]), scratch.a, packed);
    const Matrix right = rows_as_columns(call.in[1], 0, b[1], i2, i3, scratch.b, packed);
    write_columns(call, 0, i2, i3, left * right.transpose());
  }
  return Status::ok();
}

// Out is [values, heads, tokens, batch]: a unit is the row of one head and token.
Status attention_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                      Scratch& scratch) {
  const Operand &q = call.in[0], &k = call.in[1], &v = call.in[2];
  const std::uint64_t length = k.extent(1);
  std::vector<float> scores(length), query(q.extent(0)), mask_row;
  std::vector<double> sums(v.extent(0));
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);  // i1: head, i2: token, i3: batch
    const std::uint64_t head = at.i1 / (q.extent(2) / k.extent(2));
    const std::uint64_t batch = at.i3 / (q.extent(3) / k.extent(3));
    const float* const asked = read_row(q, at.i2, at.i1, at.i3, scratch.a);
    std::copy(asked, asked + query.size(), query.begin());
    const float* const mask = call.has(3) ? read_row(call.in[3], at.i2, 0, 0, mask_row) : nullptr;
    float most = -std::numeric_limits<float>::infinity();
    for (std::uint64_t n = 0; n < length; ++n) {
      const float* const key = read_row(k, n, head, batch, scratch.b);
      scores[n] =
          call.real(0) * dot(query.data(), key, query.size()) + (mask == nullptr ? 0.0f : mask[n]);
      most = std::max(most, scores[n]);
    }
    double total = 0;
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::uint64_t n = 0; n < length; ++n) {
      const auto weight = static_cast<double>(std::exp(scores[n] - most));
      total += weight;
      const float* const value = read_row(v, n, head, batch, scratch.b);
      for (std::size_t d = 0; d < sums.size(); ++d)
        sums[d] += weight * static_cast<double>(value[d]);
    }
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    for (std::size_t d = 0; d < sums.size(); ++d) out[d] = static_cast<float>(sums[d] / total);
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

}  // namespace ashlar::cpu
