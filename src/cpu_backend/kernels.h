// The kernels of the operations, by what they are like.
//
// Purpose: a kernel computes some units of a node: rows of the result, or blocks of a product. Which
// thread computes which units changes no bit of the result.
// Thread safety: units of one node from any threads at the same time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/graph/graph.h>

#include "src/cpu_backend/rows.h"

namespace ashlar::cpu {

/// A node with its sources and where they lie.
struct KernelCall {
  static constexpr std::size_t kSourcesMax = 5;
  Operand out;
  std::array<Operand, kSourcesMax> in;
  std::size_t sources = 0;

  bool has(std::size_t k) const { return k < sources && in[k].tensor != nullptr; }
  float real(std::size_t k) const { return out.tensor->parameters.reals[k]; }
  std::int32_t number(std::size_t k) const { return out.tensor->parameters.integers[k]; }
};

/// Memory that a thread works in.
struct Scratch {
  std::vector<float> a, b, c;
};

/// Computes the units [begin, end). kInvalidArgument: an index in a source is out of range. Throws
/// std::bad_alloc.
using Kernel = Status (*)(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                          Scratch& scratch);

/// A kernel, and into how many units a node is divided.
struct KernelEntry {
  Kernel kernel = nullptr;  ///< null: there is nothing to compute
  std::uint64_t (*units)(const KernelCall& call) = nullptr;
};

/// Whether there is a kernel for a node of that shape and those types. Never throws.
bool has_kernel(const graph::Graph& graph, graph::TensorId node) noexcept;
/// The kernel. REQUIRES: has_kernel().
KernelEntry kernel_of(graph::Operation operation) noexcept;

// By source file. Units are rows, unless a function that counts them says otherwise.
Status binary_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                   Scratch& scratch);
Status unary_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);
Status swiglu_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                   Scratch& scratch);

Status norm_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);
Status soft_max_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                     Scratch& scratch);
Status rope_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);
Status diag_mask_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                      Scratch& scratch);

std::uint64_t mul_mat_units(const KernelCall& call);
Status mul_mat_blocks(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                      Scratch& scratch);
Status mul_mat_id_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                       Scratch& scratch);
std::uint64_t out_prod_units(const KernelCall& call);
Status out_prod_matrices(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                         Scratch& scratch);
Status attention_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                      Scratch& scratch);

Status copy_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);
Status get_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);
Status set_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);
Status concat_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                   Scratch& scratch);
Status pad_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);
Status repeat_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                   Scratch& scratch);

Status repeat_back_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                        Scratch& scratch);
Status sum_all(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);
Status sum_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);
Status argsort_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                    Scratch& scratch);

Status im2col_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                   Scratch& scratch);
Status im2col_back_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                        Scratch& scratch);
Status pool_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);
std::uint64_t plane_units(const KernelCall& call);
Status pool_back_planes(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                        Scratch& scratch);

Status loss_sum(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);
Status loss_back_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                      Scratch& scratch);
Status adamw_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch);

}  // namespace ashlar::cpu
