// `ashlar schedule`: places the nodes of a model's graph on several backends, and says what is copied.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <ashlar/sched/schedule.h>

#include "src/tool/commands.h"
#include "src/tool/failure.h"
#include "src/tool/graph_file.h"
#include "src/tool/json_output.h"
#include "src/tool/output_file.h"
#include "src/tool/progress.h"
#include "src/tool/sizes.h"

namespace ashlar::tool {
namespace {

using graph::Graph;
using graph::TensorId;

/// A backend with a memory of its own that supports every node, and runs none.
class PlannedBackend final : public sched::Backend {
 public:
  explicit PlannedBackend(std::string name) : name_(std::move(name)) {}
  std::string_view name() const noexcept override { return name_; }
  sched::MemoryId memory() const noexcept override { return memory_; }
  graph::BufferType buffer_type() const noexcept override { return {}; }
  Result<Address> make_buffer(Bytes) noexcept override { return kPlansOnly; }
  Status release_buffer(Address) noexcept override { return kPlansOnly; }
  bool holds(Address, Bytes) const noexcept override { return false; }
  Status set_async(Address, std::span<const std::byte>) noexcept override { return kPlansOnly; }
  Status get_async(std::span<std::byte>, Address) noexcept override { return kPlansOnly; }
  using Backend::synchronize;
  Status synchronize() noexcept override { return Status::ok(); }
  bool supports(const Graph&, TensorId) const noexcept override { return true; }
  Status compute(const Graph&, std::span<const TensorId>,
                 std::span<const Address>) noexcept override {
    return kPlansOnly;
  }

 private:
  static constexpr Status kPlansOnly{Code::kUnsupported, "a backend for plans only"};
  const std::string name_;
  const sched::MemoryId memory_ = sched::new_memory_id();
};

/// The backend of each layer. The last backend is the host: it has the inputs. With two backends the other
/// one has the later half of the layers, or every second one; more devices share the layers evenly.
class LayerPlaces {
 public:
  LayerPlaces(const GraphFile& file, const std::string& placement, std::uint32_t backends)
      : is_alternating_(placement == "alternate"), host_(backends - 1) {
    for (const std::int32_t layer : file.layers) layers_ = std::max(layers_, layer);
  }

  /// kNoBackend for a layer that is not known.
  std::uint32_t backend_of(std::int32_t layer) const {
    if (layer < -1) return sched::kNoBackend;
    if (layer < 0 || host_ == 0) return host_;
    const auto at = static_cast<std::uint32_t>(layer);
    if (is_alternating_) return at % (host_ + 1);
    const auto all = static_cast<std::uint32_t>(layers_) + 1;
    if (host_ == 1) return at * 2 / all == 0 ? host_ : 0;
    return at * host_ / all;
  }

 private:
  const bool is_alternating_;
  const std::uint32_t host_;
  std::int32_t layers_ = 0;
};

sched::ScheduleRequest request_of(const GraphFile& file, const ScheduleCommand& command) {
  const bool is_auto = command.placement == "auto";
  const LayerPlaces places(file, is_auto ? "half" : command.placement, command.backends);
  sched::ScheduleRequest request;
  for (std::size_t t = 0; t < file.layers.size(); ++t) {
    const graph::Tensor& tensor = file.graph.tensors()[t];
    const bool is_root = tensor.root.value() == t;
    const bool is_weight = (tensor.flags & graph::kExternal) != 0;
    const bool is_node = tensor.operation != graph::Operation::kNone && !is_auto;
    const bool is_decided = is_root && (is_weight || is_node);
    request.backend_of.push_back(is_decided ? places.backend_of(file.layers[t])
                                            : sched::kNoBackend);
  }
  // An optimizer's moments are where its parameter is, whatever the file says of their layer.
  for (const TensorId node : file.graph.nodes()) {
    const TensorId own = file.graph[node].root;
    for_each_written_root(file.graph, node, [&](TensorId root) {
      request.backend_of[root.value()] = request.backend_of[own.value()];
    });
  }
  return request;
}

nlohmann::ordered_json json_of(const std::string& name, const ScheduleCommand& command,
                               const sched::Schedule& schedule) {
  nlohmann::ordered_json json;
  json["graph"] = name;
  json["placement"] = command.placement;
  json["backends"] = command.backends;
  json["splits"] = schedule.splits.size();
  json["copies"] = schedule.copies.size();
  json["bytes_copied"] = schedule.copied_bytes().count();
  return json;
}

void print(const std::string& name, const ScheduleCommand& command, const GraphFile& file,
           const sched::Schedule& schedule,
           const std::vector<std::unique_ptr<PlannedBackend>>& backends) {
  fmt::print("{}: {} splits, {} copies, {} copied\n", name, schedule.splits.size(),
             schedule.copies.size(), size_text(schedule.copied_bytes()));
  if (!command.is_verbose) return;
  for (const sched::ScheduleSplit& split : schedule.splits) {
    fmt::print("  split on {}: {} nodes", backends[split.backend]->name(), split.nodes.size());
    for (std::uint32_t c = split.copies_begin; c < split.copies_end; ++c) {
      const sched::ScheduledCopy& copy = schedule.copies[c];
      fmt::print(", copies {} ({})", printable(schedule.graph.name(copy.from)),
                 size_text(copy.bytes));
    }
    fmt::print("\n");
  }
  for (std::size_t t = 0; t < file.graph.tensors().size(); ++t) {
    fmt::print("  {:>5} {:<16} {:<24} on {} by {}\n", t,
               traits_of(file.graph.tensors()[t].operation).name,
               printable(file.graph.name(TensorId{static_cast<std::uint32_t>(t)})),
               backends[schedule.backend_of[t]]->name(), sched::name_of(schedule.placed_by[t]));
  }
}

}  // namespace

int run_schedule(const ScheduleCommand& command) {
  std::vector<std::unique_ptr<PlannedBackend>> backends;
  std::vector<sched::Backend*> pointers;
  for (std::uint32_t k = 0; k < command.backends; ++k) {
    const bool is_host = k + 1 == command.backends;
    backends.push_back(
        std::make_unique<PlannedBackend>(is_host ? "host" : fmt::format("gpu{}", k)));
    pointers.push_back(backends.back().get());
  }
  OutputFile json;
  if (const int code = open_outputs({{"--json", command.json, KnownFile::kJson, &json}});
      code != kExitDone)
    return code;
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  std::string error;
  int code = kExitDone;
  Progress progress("scheduling graphs", command.graphs.size());
  for (const std::string& path : command.graphs) {
    progress.at(results.size());
    const auto file = read_graph(path, &error);
    if (!file) {  // the others are still placed
      const auto quiet = progress.hidden();
      code = fail(kExitUnreadable, error);
      continue;
    }
    const auto schedule =
        sched::make_schedule(file->graph, pointers, request_of(*file, command), &error);
    const auto quiet = progress.hidden();
    if (!schedule.is_ok()) {
      code = fail(kExitUnreadable, fmt::format("{}: {}", path, error));
      continue;
    }
    results.push_back(json_of(path, command, schedule.value()));
    if (!json.is_stdout()) print(path, command, *file, schedule.value(), backends);
  }
  if (results.empty()) return code;
  const std::string text = json_text(command.graphs.size() == 1 ? results[0] : results);
  if (!json.write(text, &error)) return fail(kExitUnreadable, error);
  return code;
}

}  // namespace ashlar::tool
