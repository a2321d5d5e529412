// `ashlar graph`: plans the memory of a model's graph and says what that saves and costs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <ashlar/base/checked.h>
#include <ashlar/graph/graph_allocator.h>
#include <ashlar/graph/graph_plan.h>
#include <ashlar/graph/lifetimes.h>
#include <ashlar/plan/plan.h>

#include "spec/graph/imaginary_buffers.h"
#include "spec/graph/memory_judge.h"
#include "src/tool/commands.h"
#include "src/tool/failure.h"
#include "src/tool/graph_file.h"
#include "src/tool/json_output.h"
#include "src/tool/output_file.h"
#include "src/tool/plan_report.h"
#include "src/tool/progress.h"
#include "src/tool/sizes.h"

namespace ashlar::tool {
namespace {

using graph::Graph;
using graph::GraphAllocator;
using graph::MemoryRequest;
using graph::Tensor;

constexpr int kTimedRuns = 51;

struct GraphAnswer {
  std::uint64_t tensors = 0;
  std::uint64_t nodes = 0;
  Bytes naive;
  Bytes lower_bound;
  Bytes planned;
  std::uint64_t in_place = 0;
  double plan_ns = 0;
  double apply_ns = 0;
  std::optional<Bytes> peer;
  std::string violation;
};

double median_ns(const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int k = 0; k < kTimedRuns; ++k) {
    const auto start = Clock::now();
    run();
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + kTimedRuns / 2, times.end());
  return times[kTimedRuns / 2];
}

/// The sizes of all tensors that have memory of their own, without sharing.
Bytes naive_bytes(const Graph& graph, Bytes alignment) {
  Bytes sum;
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if (tensor.root.value() != t || (tensor.flags & graph::kExternal) != 0) continue;
    sum += round_up(tensor.extent, alignment);
  }
  return sum;
}

/// Plans and applies, measures both, and has the result judged.
Status answer_for(const GraphFile& file, GraphAnswer* answer) {
  const std::vector<graph::BufferType> types{{file.alignment, Bytes::max(), nullptr}};
  const MemoryRequest request;
  spec::ImaginaryBuffers source;
  GraphAllocator allocator(source, types);
  const auto memory = allocator.measure(file.graph, request);
  if (!memory.is_ok()) return memory.status();
  if (const Status status = allocator.reserve(file.graph, request); !status.is_ok()) return status;
  std::vector<Address> addresses(file.graph.tensors().size());
  Status applied = allocator.apply(file.graph, request, addresses);
  if (!applied.is_ok()) return applied;
  const auto violation = spec::judge_memory(file.graph, request, types, source.live(), addresses);
  answer->violation = violation.value_or("");
  answer->plan_ns = median_ns([&] { applied = allocator.reserve(file.graph, request); });
  answer->apply_ns = median_ns([&] { applied = allocator.apply(file.graph, request, addresses); });
  answer->tensors = file.graph.tensors().size();
  answer->nodes = file.nodes;
  answer->naive = naive_bytes(file.graph, file.alignment);
  answer->lower_bound = memory.value().lower_bound;
  answer->planned = round_up(memory.value().total, file.alignment);
  answer->in_place = memory.value().in_place_nodes;
  answer->peer = file.peer_bytes;
  return applied;
}

nlohmann::ordered_json json_of(const std::string& name, const GraphAnswer& answer) {
  nlohmann::ordered_json json;
  json["graph"] = name;
  json["nodes"] = answer.nodes;
  json["tensors"] = answer.tensors;
  json["naive_bytes"] = answer.naive.count();
  json["lower_bound_bytes"] = answer.lower_bound.count();
  json["planned_bytes"] = answer.planned.count();
  json["in_place_nodes"] = answer.in_place;
  json["plan_ns"] = answer.plan_ns;
  json["apply_ns"] = answer.apply_ns;
  if (answer.peer) json["peer_bytes"] = answer.peer->count();
  return json;
}

void print(const std::string& name, const GraphAnswer& answer) {
  const auto nodes = static_cast<double>(std::max<std::uint64_t>(answer.nodes, 1));
  fmt::print("{}: {} nodes, {} tensors, {} of the nodes in place\n", name, answer.nodes,
             answer.tensors, answer.in_place);
  fmt::print("  each tensor its own memory {}, lower bound {}, planned {}\n",
             size_text(answer.naive), size_text(answer.lower_bound), size_text(answer.planned));
  fmt::print("  plan {:.1f} us ({:.0f} ns a node), apply {:.1f} us ({:.1f} ns a node)\n",
             answer.plan_ns / 1e3, answer.plan_ns / nodes, answer.apply_ns / 1e3,
             answer.apply_ns / nodes);
}

/// The plan as a packing problem and its answer, for the page of `ashlar plan`.
std::string page_of(const std::string& name, const GraphFile& file, const GraphAnswer& answer) {
  const Graph& graph = file.graph;
  const std::vector<graph::BufferType> types{{file.alignment, Bytes::max(), nullptr}};
  const auto steps = graph::steps_of(graph, {});
  std::vector<Bytes> padded;
  for (const Tensor& tensor : graph.tensors())
    padded.push_back(round_up(tensor.extent, file.alignment));
  const auto lives = graph::lifetimes_of(graph, steps.value(), padded, MemoryRequest{});
  const graph::GraphOptions options;
  const auto planned = graph::make_graph_plan(
      graph, {}, types, options.work + options.work_per_tensor * graph.tensors().size());
  plan::Problem problem;
  plan::Plan packing;
  std::vector<std::uint32_t> group(lives.size(), plan::kNoGroup);
  for (std::uint32_t t = 0; t < lives.size(); ++t) {
    if (lives[t].end == 0 || padded[t] == 0_B) continue;
    const bool is_in_place = lives[t].takes_over != graph::kNoTensor;
    if (is_in_place) {
      group[t] = group[lives[t].takes_over.value()];
    } else {
      group[t] = static_cast<std::uint32_t>(problem.groups.size());
      problem.groups.emplace_back();
    }
    plan::Buffer buffer;
    buffer.life = {lives[t].begin, lives[t].end};
    buffer.size = padded[t];
    buffer.group = group[t];
    problem.buffers.push_back(buffer);
    const std::string_view label = graph.name(graph::TensorId{t});
    problem.ids.push_back(fmt::format("{} {}", t, label));
    packing.offsets.push_back(planned.value().places[t].offset);
  }
  packing.spaces.push_back({answer.planned, answer.lower_bound});
  return plan_page(problem, packing, name, answer.plan_ns / 1e9);
}

}  // namespace

int run_graph(const GraphCommand& command) {
  OutputFile json, report;
  if (const int code = open_outputs({{"--json", command.json, KnownFile::kJson, &json},
                                     {"--report", command.report, KnownFile::kPage, &report}});
      code != kExitDone)
    return code;
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  std::string error, page;
  std::string violations;
  int code = kExitDone;
  Progress progress("planning graphs", command.graphs.size());
  for (const std::string& path : command.graphs) {
    progress.at(results.size());
    const auto file = read_graph(path, &error);
    GraphAnswer answer;
    if (file) {
      if (const Status status = answer_for(*file, &answer); !status.is_ok())
        error = fmt::format("{}: {}", path, status.why());
    }
    const auto quiet = progress.hidden();
    if (!error.empty()) {  // the others are still planned
      code = std::max(code, fail(kExitUnreadable, error));
      error.clear();
      continue;
    }
    if (!answer.violation.empty()) violations += fmt::format("{}: {}\n", path, answer.violation);
    results.push_back(json_of(path, answer));
    if (!json.is_stdout() && !report.is_stdout()) print(path, answer);
    if (report.is_open() && page.empty()) page = page_of(path, *file, answer);
  }
  if (results.empty()) return code;
  if (!json.write(json_text(command.graphs.size() == 1 ? results[0] : results), &error) ||
      !report.write(page, &error))
    return fail(kExitUnreadable, error);
  if (!violations.empty()) {
    fmt::print(stderr, "{}", violations);
    code = std::max(code, kExitFailed);
  }
  return code;
}

}  // namespace ashlar::tool
