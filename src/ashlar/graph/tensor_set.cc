#include <ashlar/graph/tensor_set.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include <ashlar/base/checked.h>
#include <ashlar/graph/graph_plan.h>
#include <ashlar/plan/problem.h>

namespace ashlar::inline v0::graph {
namespace {

constexpr std::uint64_t kSearchSteps = 200'000;

/// Divides sizes, the largest first, over buffers of one limit.
class Division {
 public:
  Division(std::span<const Bytes> sizes, Bytes limit) : sizes_(sizes), limit_(limit) {}

  /// First fit. Returns the number of buffers.
  std::size_t first_fit(std::vector<std::uint32_t>* buffer_of) {
    std::vector<Bytes> rests;
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      std::size_t b = 0;
      while (b < rests.size() && rests[b] < sizes_[k]) b += 1;
      if (b == rests.size()) rests.push_back(limit_);
      rests[b] -= sizes_[k];
      (*buffer_of)[k] = static_cast<std::uint32_t>(b);
    }
    return rests.size();
  }

  /// Searches a division over `count` buffers. False: there is none, or is_given_up().
  bool search(std::size_t count, std::vector<std::uint32_t>* buffer_of) {
    rests_.assign(count, limit_);
    buffer_of_.assign(sizes_.size(), 0);
    if (!place(0)) return false;
    *buffer_of = buffer_of_;
    return true;
  }
  bool is_given_up() const { return steps_ >= kSearchSteps; }

 private:
  /// How deep the recursion may go; larger sets keep the first fit.
  static constexpr std::size_t kDepthMax = 4000;

  bool place(std::size_t k) {
    if (k == sizes_.size()) return true;
    if (k >= kDepthMax) steps_ = kSearchSteps;
    for (std::size_t b = 0; b < rests_.size(); ++b) {
      if (++steps_ >= kSearchSteps) return false;
      if (rests_[b] < sizes_[k]) continue;
      const auto alike =
          std::find(rests_.begin(), rests_.begin() + static_cast<std::ptrdiff_t>(b), rests_[b]);
      if (alike != rests_.begin() + static_cast<std::ptrdiff_t>(b)) continue;
      rests_[b] -= sizes_[k];
      buffer_of_[k] = static_cast<std::uint32_t>(b);
      if (place(k + 1)) return true;
      rests_[b] += sizes_[k];
      if (is_given_up()) return false;
    }
    return false;
  }

  const std::span<const Bytes> sizes_;
  const Bytes limit_;
  std::vector<Bytes> rests_;
  std::vector<std::uint32_t> buffer_of_;
  std::uint64_t steps_ = 0;
};

/// The padded size of each tensor of the set.
Result<std::vector<Bytes>> padded_sizes(const Graph& graph, std::span<const TensorId> tensors,
                                        const BufferType& type) {
  std::vector<Bytes> sizes;
  Bytes sum;
  for (const TensorId id : tensors) {
    if (id.value() >= graph.tensors().size() || graph[id].root != id)
      return {Code::kInvalidArgument, "a tensor that is a view, or not of the graph"};
    const Bytes needed = bytes_in(type, graph[id]);
    const auto padded = checked_round_up(needed, type.alignment);
    const auto total = padded ? checked_add(sum, *padded) : std::nullopt;
    if (!total || *total > plan::kPlanBytesMax)
      return {Code::kSizeOverflow, "the tensors' bytes exceed the bound of a plan"};
    if (needed > type.buffer_max)
      return {Code::kSizeOverflow, "a tensor is larger than the largest buffer of its type"};
    sum = *total;
    // One that fills a buffer but for the padding is alone there, and needs none.
    sizes.push_back(std::min(*padded, type.buffer_max));
  }
  return sizes;
}

}  // namespace

Result<TensorSetPlan> plan_tensor_set(const Graph& graph, std::span<const TensorId> tensors,
                                      const BufferType& type) {
  if (!is_power_of_two(type.alignment.count()))
    return {Code::kInvalidArgument, "a buffer type's alignment is no power of two"};
  Result<std::vector<Bytes>> padded = padded_sizes(graph, tensors, type);
  if (!padded.is_ok()) return padded.status();
  const std::vector<Bytes>& sizes = padded.value();
  TensorSetPlan plan;
  for (const Bytes size : sizes) plan.padded_bytes += size;

  std::vector<std::uint32_t> order;
  for (std::uint32_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] > 0_B) order.push_back(k);
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
  });
  std::vector<Bytes> sorted;
  sorted.reserve(order.size());
  for (const std::uint32_t k : order) sorted.push_back(sizes[k]);
  const Bytes limit = std::min(type.buffer_max, plan::kPlanBytesMax);
  std::vector<std::uint32_t> buffer_of(sorted.size(), 0);
  Division division(sorted, limit);
  std::size_t count = division.first_fit(&buffer_of);
  const std::uint64_t least =
      (plan.padded_bytes.count() + limit.count() - 1) / std::max<std::uint64_t>(limit.count(), 1);
  while (count > least && division.search(count - 1, &buffer_of)) count -= 1;
  plan.is_least = count == least || !division.is_given_up();

  plan.places.resize(sizes.size());
  plan.buffers.resize(count);
  for (std::size_t k = 0; k < order.size(); ++k) {
    Bytes& end = plan.buffers[buffer_of[k]];
    plan.places[order[k]] = {buffer_of[k], end};
    end += sorted[k];
  }
  return plan;
}

TensorSet::TensorSet(TensorSet&& other) noexcept { *this = std::move(other); }

TensorSet& TensorSet::operator=(TensorSet&& other) noexcept {
  if (this == &other) return *this;
  release();
  source_ = std::exchange(other.source_, nullptr);
  type_ = other.type_;
  bases_ = std::exchange(other.bases_, {});
  sizes_ = std::exchange(other.sizes_, {});
  return *this;
}

TensorSet::~TensorSet() { release(); }

void TensorSet::release() noexcept {
  for (std::size_t b = 0; b < bases_.size(); ++b)
    source_->release_buffer(type_, bases_[b], sizes_[b]);
  bases_.clear();
  sizes_.clear();
}

Result<TensorSet> TensorSet::make(const Graph& graph, std::span<const TensorId> tensors,
                                  const BufferType& type, std::size_t type_index,
                                  BufferSource& source, std::span<Address> addresses) {
  if (addresses.size() != graph.tensors().size())
    return {Code::kInvalidArgument, "not one address for each tensor"};
  Result<TensorSetPlan> planned = plan_tensor_set(graph, tensors, type);
  if (!planned.is_ok()) return planned.status();
  const TensorSetPlan& plan = planned.value();
  TensorSet set;
  set.source_ = &source;
  set.type_ = type_index;
  set.bases_.reserve(plan.buffers.size());
  set.sizes_.reserve(plan.buffers.size());
  for (const Bytes size : plan.buffers) {
    const Result<Address> made = source.make_buffer(type_index, size);
    if (!made.is_ok()) return made.status();  // the set releases the others
    set.bases_.push_back(made.value());
    set.sizes_.push_back(size);
  }
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const SetPlace& place = plan.places[k];
    addresses[tensors[k].value()] =
        set.bases_.empty() ? Address{} : set.bases_[place.buffer] + place.offset;
  }
  return set;
}

}  // namespace ashlar::inline v0::graph
