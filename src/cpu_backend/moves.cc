#include <algorithm>
#include <cstring>

#include "src/cpu_backend/kernels.h"

namespace ashlar::cpu {
namespace {

/// The element's bytes, for types that are not quantised.
std::size_t element_bytes(const Operand& operand) {
  return static_cast<std::size_t>(graph::traits_of(operand.tensor->type).block_bytes.count());
}

/// Copies an element of the same type.
void copy_element(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

/// Copies a row of the same type and length.
void copy_row(const Operand& to, std::byte* into, const Operand& from, const std::byte* row) {
  const std::size_t bytes = element_bytes(to);
  const std::uint64_t length = from.extent(0);
  if (to.tensor->strides[0] == bytes && from.tensor->strides[0] == bytes) {
    std::memcpy(into, row, static_cast<std::size_t>(length) * bytes);
    return;
  }
  for (std::uint64_t k = 0; k < length; ++k)
    copy_element(into + k * to.tensor->strides[0], row + k * from.tensor->strides[0], bytes);
}

/// The place of the n-th element, in the order of dimensions.
std::byte* element(const Operand& operand, std::uint64_t n) {
  const graph::Shape& shape = operand.tensor->shape;
  const RowAt at(shape, n / shape[0]);
  return operand.row(at.i1, at.i2, at.i3) + n % shape[0] * operand.tensor->strides[0];
}

/// A row whose shape is another than the source's, element by element.
void reshape_row(const KernelCall& call, std::uint64_t row, Scratch& scratch) {
  const Operand& from = call.in[0];
  const std::uint64_t length = call.out.extent(0);
  const RowAt at(call.out.tensor->shape, row);
  std::byte* const into = call.out.row(at.i1, at.i2, at.i3);
  if (from.tensor->type == call.out.tensor->type) {
    for (std::uint64_t k = 0; k < length; ++k) {
      copy_element(into + k * call.out.tensor->strides[0], element(from, row * length + k),
                   element_bytes(from));
    }
    return;
  }
  float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
  const graph::Shape& shape = from.tensor->shape;
  for (std::uint64_t k = 0; k < length; ++k) {
    const std::uint64_t n = row * length + k;
    const RowAt source(shape, n / shape[0]);
    out[k] = read_element(from, n % shape[0], source.i1, source.i2, source.i3);
  }
  write_row(call.out, at.i1, at.i2, at.i3, out);
}

}  // namespace

Status copy_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch) {
  const Operand& from = call.in[0];
  for (std::uint64_t row = begin; row < end; ++row) {
    if (from.tensor->shape != call.out.tensor->shape) {
      reshape_row(call, row, scratch);
      continue;
    }
    const RowAt at(call.out.tensor->shape, row);
    if (from.tensor->type == call.out.tensor->type) {
      copy_row(call.out, call.out.row(at.i1, at.i2, at.i3), from, from.row(at.i1, at.i2, at.i3));
    } else {
      write_row(call.out, at.i1, at.i2, at.i3, read_row(from, at.i1, at.i2, at.i3, scratch.a));
    }
  }
  return Status::ok();
}

Status get_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch) {
  const Operand& from = call.in[0];
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const std::int64_t wanted = read_index(call.in[1], at.i1, at.i2, at.i3, 0);
    if (wanted < 0 || static_cast<std::uint64_t>(wanted) >= from.extent(1))
      return {Code::kInvalidArgument, "a row's number is out of range"};
    const auto i1 = static_cast<std::uint64_t>(wanted);
    if (from.tensor->type == call.out.tensor->type) {
      copy_row(call.out, call.out.row(at.i1, at.i2, at.i3), from, from.row(i1, at.i2, at.i3));
    } else {
      write_row(call.out, at.i1, at.i2, at.i3, read_row(from, i1, at.i2, at.i3, scratch.a));
    }
  }
  return Status::ok();
}

// In the order of the values' rows, on one thread: of two rows for one place the later one stays.
Status set_rows(const KernelCall& call, std::uint64_t, std::uint64_t, Scratch& scratch) {
  const Operand &values = call.in[0], &ids = call.in[1];
  for (std::uint64_t row = 0; row < rows_of(values.tensor->shape); ++row) {
    const RowAt at(values.tensor->shape, row);
    const std::int64_t wanted =
        read_index(ids, at.i1, at.i2 % ids.extent(1), at.i3 % ids.extent(2), 0);
    if (wanted < 0 || static_cast<std::uint64_t>(wanted) >= call.out.extent(1))
      return {Code::kInvalidArgument, "a row's number is out of range"};
    const auto i1 = static_cast<std::uint64_t>(wanted);
    write_row(call.out, i1, at.i2, at.i3, read_row(values, at.i1, at.i2, at.i3, scratch.a));
  }
  return Status::ok();
}

Status concat_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch&) {
  const auto axis = static_cast<std::size_t>(call.number(0));
  const std::uint64_t split = call.in[0].extent(axis);
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    std::byte* const into = call.out.row(at.i1, at.i2, at.i3);
    if (axis == 0) {
      copy_row(call.out, into, call.in[0], call.in[0].row(at.i1, at.i2, at.i3));
      copy_row(call.out, into + split * call.out.tensor->strides[0], call.in[1],
               call.in[1].row(at.i1, at.i2, at.i3));
      continue;
    }
    std::array<std::uint64_t, graph::kDimensions> i{0, at.i1, at.i2, at.i3};
    const bool is_second = i[axis] >= split;
    if (is_second) i[axis] -= split;
    const Operand& from = call.in[is_second ? 1 : 0];
    copy_row(call.out, into, from, from.row(i[1], i[2], i[3]));
  }
  return Status::ok();
}

Status pad_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch&) {
  const Operand& from = call.in[0];
  const std::size_t bytes = element_bytes(call.out);
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    std::byte* const into = call.out.row(at.i1, at.i2, at.i3);
    const bool is_inside =
        at.i1 < from.extent(1) && at.i2 < from.extent(2) && at.i3 < from.extent(3);
    if (is_inside) copy_row(call.out, into, from, from.row(at.i1, at.i2, at.i3));
    for (std::uint64_t k = is_inside ? from.extent(0) : 0; k < call.out.extent(0); ++k)
      std::memset(into + k * call.out.tensor->strides[0], 0, bytes);
  }
  return Status::ok();
}

Status repeat_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch&) {
  const Operand& from = call.in[0];
  const std::size_t bytes = element_bytes(call.out);
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    std::byte* const into = call.out.row(at.i1, at.i2, at.i3);
    const std::byte* const one =
        from.row(at.i1 % from.extent(1), at.i2 % from.extent(2), at.i3 % from.extent(3));
    for (std::uint64_t k = 0; k < call.out.extent(0); ++k) {
      copy_element(into + k * call.out.tensor->strides[0],
                   one + k % from.extent(0) * from.tensor->strides[0], bytes);
    }
  }
  return Status::ok();
}

}  // namespace ashlar::cpu
