#include <ashlar/graph/graph.h>

#include <algorithm>
#include <utility>

#include <ashlar/base/mix.h>
#include <ashlar/graph/layout.h>

namespace ashlar::inline v0::graph {
namespace {

/// The sources that Tensor::in_place_sources has a bit for.
constexpr std::size_t kInPlacePlaces = 16;
constexpr std::uint8_t kAllFlags = kInput | kOutput | kParameter | kExternal;

Status check_kind(const TensorSpec& spec) {
  const OperationTraits& traits = traits_of(spec.operation);
  const bool is_view = spec.view_source != kNoTensor;
  if ((spec.flags & ~kAllFlags) != 0) return {Code::kInvalidArgument, "an unknown flag"};
  if (traits.is_view && !is_view)
    return {Code::kInvalidArgument, "a view operation without a view source"};
  const bool may_be_view = traits.is_view || traits.is_writer || spec.operation == Operation::kNone;
  if (is_view && !may_be_view)
    return {Code::kInvalidArgument, "a view source for an operation whose result is no view"};
  if (is_view && (spec.flags & (kExternal | kParameter)) != 0)
    return {Code::kInvalidArgument, "a view flagged as external or as a parameter"};
  return Status::ok();
}

}  // namespace

Status Graph::check_sources(const TensorSpec& spec) const noexcept {
  const OperationTraits& traits = traits_of(spec.operation);
  if (spec.sources.size() < traits.sources_min)
    return {Code::kInvalidArgument, "too few sources for the operation"};
  if (spec.sources.size() > traits.sources_max && spec.operation != Operation::kControl)
    return {Code::kInvalidArgument, "too many sources for the operation"};
  for (std::size_t k = 0; k < spec.sources.size(); ++k) {
    const TensorId source = spec.sources[k];
    if (source == kNoTensor && k >= traits.sources_min) continue;
    if (source == kNoTensor)
      return {Code::kInvalidArgument, "a source that the operation needs is missing"};
    if (source.value() >= tensors_.size())
      return {Code::kInvalidArgument, "a source that is not added before: forward or cyclic"};
  }
  if (spec.view_source != kNoTensor && spec.view_source.value() >= tensors_.size())
    return {Code::kInvalidArgument, "a view source that is not added before: forward or cyclic"};
  return Status::ok();
}

Status Graph::place_in_root(const TensorSpec& spec, Tensor* tensor) const noexcept {
  if (spec.view_source == kNoTensor) {
    if (overlaps_itself(tensor->type, tensor->shape, tensor->strides))
      return {Code::kInvalidArgument, "strides that let elements overlap"};
    tensor->root = TensorId{static_cast<std::uint32_t>(tensors_.size())};
    return Status::ok();
  }
  const Tensor& source = (*this)[spec.view_source];
  const Tensor& root = (*this)[source.root];
  tensor->root = source.root;
  if (spec.view_offset > root.extent || source.view_offset + spec.view_offset > root.extent ||
      root.extent - source.view_offset - spec.view_offset < tensor->extent)
    return {Code::kSizeOverflow, "a view outside its root"};
  tensor->view_offset = source.view_offset + spec.view_offset;
  if (tensor->view_offset % traits_of(tensor->type).alignment != 0)
    return {Code::kInvalidArgument, "a view offset that is no multiple of the type's alignment"};
  if (traits_of(spec.operation).is_writer &&
      overlaps_itself(tensor->type, tensor->shape, tensor->strides))
    return {Code::kInvalidArgument, "strides that let elements overlap"};
  tensor->flags |= root.flags & kExternal;
  return Status::ok();
}

bool Graph::may_overwrite(const Tensor& tensor, std::span<const TensorId> sources,
                          std::size_t place) const noexcept {
  if (sources[place] == kNoTensor) return false;
  const Tensor& over = (*this)[sources[place]];
  if ((over.flags & kExternal) != 0) return false;  // and its layout is no part of the wiring
  if (!is_same_layout(tensor, over) || over.view_offset != 0_B) return false;
  const InPlace in_place = traits_of(tensor.operation).in_place;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (k == place || sources[k] == kNoTensor) continue;
    const Tensor& other = (*this)[sources[k]];
    if (other.root != over.root) continue;
    // It reads the memory that is written: each element at its place only, or not at all.
    if (in_place != InPlace::kAnySource || !is_same_layout(over, other) ||
        other.view_offset != over.view_offset)
      return false;
  }
  return true;
}

std::uint16_t Graph::in_place_sources(const Tensor& tensor,
                                      std::span<const TensorId> sources) const noexcept {
  const InPlace in_place = traits_of(tensor.operation).in_place;
  if (in_place == InPlace::kNever) return 0;
  const std::size_t places =
      in_place == InPlace::kFirstSource ? 1 : std::min(sources.size(), kInPlacePlaces);
  std::uint16_t mask = 0;
  for (std::size_t k = 0; k < places; ++k) {
    if (may_overwrite(tensor, sources, k)) mask = static_cast<std::uint16_t>(mask | 1u << k);
  }
  return mask;
}

void Graph::add_to_wiring(std::uint64_t word) noexcept { wiring_ = mix(wiring_ + word); }

void Graph::add_to_wiring(const Tensor& tensor, const TensorSpec& spec) noexcept {
  const bool is_node = spec.operation != Operation::kNone || spec.view_source != kNoTensor;
  // Larger than the word of any source, so the number of sources need not be told.
  add_to_wiring(std::uint64_t{tensor.flags} | std::uint64_t{tensor.in_place_sources} << 8 |
                std::uint64_t{is_node} << 24 | (std::uint64_t{tensor.root.value()} + 1) << 32);
  for (const TensorId source : spec.sources) add_to_wiring(source.value());
}

Result<TensorId> Graph::add(const TensorSpec& spec) {
  if (tensors_.size() >= kTensorsMax) return {Code::kSizeOverflow, "too many tensors"};
  if (const Status status = check_kind(spec); !status.is_ok()) return status;
  if (const Status status = check_sources(spec); !status.is_ok()) return status;
  Tensor tensor;
  tensor.operation = spec.operation;
  tensor.type = spec.type;
  tensor.flags = spec.flags;
  tensor.shape = spec.shape;
  tensor.strides = spec.strides == Strides{} ? packed_strides(spec.type, spec.shape) : spec.strides;
  tensor.parameters = spec.parameters;
  const Result<Bytes> extent = extent_of(tensor.type, tensor.shape, tensor.strides);
  if (!extent.is_ok()) return extent.status();
  tensor.extent = extent.value();
  if (const Status status = place_in_root(spec, &tensor); !status.is_ok()) return status;
  tensor.in_place_sources =
      spec.view_source == kNoTensor ? in_place_sources(tensor, spec.sources) : std::uint16_t{0};
  tensor.sources_begin = tensors_.empty() ? 0 : tensors_.back().sources_end;
  tensor.sources_end = tensor.sources_begin + static_cast<std::uint32_t>(spec.sources.size());

  const TensorId id{static_cast<std::uint32_t>(tensors_.size())};
  const bool is_node = spec.operation != Operation::kNone || spec.view_source != kNoTensor;
  // Room first, so that a table that cannot grow leaves the graph as it was.
  if (nodes_.size() == nodes_.capacity()) nodes_.reserve(2 * nodes_.size() + 16);
  sources_.resize(tensor.sources_begin);
  sources_.insert(sources_.end(), spec.sources.begin(), spec.sources.end());
  names_.resize(tensors_.size());
  names_.push_back(spec.name);
  tensors_.push_back(tensor);
  if (is_node) nodes_.push_back(id);
  add_to_wiring(tensor, spec);
  return id;
}

void Graph::begin_region(RegionKind kind) {
  const auto at = static_cast<std::uint32_t>(nodes_.size());
  regions_.push_back({kind, at, at, open_});
  open_ = static_cast<std::uint32_t>(regions_.size() - 1);
  add_to_wiring(0x726567696f6e0000u | static_cast<std::uint64_t>(kind));
}

Status Graph::end_region() noexcept {
  if (open_ == kNoRegion) return {Code::kInvalidArgument, "no region is open"};
  regions_[open_].nodes_end = static_cast<std::uint32_t>(nodes_.size());
  open_ = regions_[open_].parent;
  add_to_wiring(0x656e640000000000u);
  return Status::ok();
}

}  // namespace ashlar::inline v0::graph
