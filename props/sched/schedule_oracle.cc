#include "props/sched/schedule_oracle.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "props/graph/value_oracle.h"
#include "props/sched/late_backend.h"

namespace ashlar::props {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::Operation;
using graph::Tensor;
using graph::TensorId;
using sched::kNoBackend;

bool is_leaf(const Graph& graph, TensorId id) {
  return graph[id].operation == Operation::kNone && graph[id].root == id;
}
bool is_external(const Tensor& tensor) { return (tensor.flags & graph::kExternal) != 0; }

/// Whether somebody outside may read the tensor after a run.
bool is_kept(const Graph& graph, TensorId id) {
  if ((graph[id].flags & (graph::kOutput | graph::kParameter | graph::kExternal)) != 0) return true;
  for (const TensorId node : graph.nodes()) {
    const auto sources = graph.sources(graph[node]);
    if (std::find(sources.begin(), sources.end(), id) != sources.end()) return false;
  }
  return true;
}

/// A plain run: every tensor in a buffer of its own, kept from run to run.
class PlainRun {
 public:
  explicit PlainRun(const MadeGraph& made)
      : made_(made),
        buffers_(std::make_shared<cpu::HostBuffers>()),
        processor_("plain", buffers_),
        addresses_(made.graph.tensors().size()) {
    for (std::uint32_t t = 0; t < addresses_.size(); ++t) {
      const Tensor& tensor = made.graph.tensors()[t];
      if (tensor.root.value() != t) {
        addresses_[t] = addresses_[tensor.root.value()] + tensor.view_offset;
        continue;
      }
      const Bytes size = std::max(tensor.extent, Bytes{1});
      addresses_[t] = buffers_->make(size).value();
      std::memset(addresses_[t].pointer(), 0x5B, size.count());
    }
  }
  Address at(TensorId id) const { return addresses_[id.value()]; }
  Status run() { return processor_.compute(made_.graph, made_.graph.nodes(), addresses_); }

 private:
  const MadeGraph& made_;
  std::shared_ptr<cpu::HostBuffers> buffers_;
  cpu::CpuBackend processor_;
  std::vector<Address> addresses_;
};

/// What a run has left in a tensor, and what it should have.
struct ReadResult {
  std::uint32_t run;
  TensorId tensor;
  std::vector<std::byte> got;
  std::vector<std::byte> expected;
};

class ScheduleRuns {
 public:
  ScheduleRuns(const MadeGraph& made, const ScheduleCase& one)
      : made_(made),
        graph_(made.graph),
        case_(one),
        choices_(one.seed),
        world_(one.seed + 1),
        plain_(made),
        external_(made.graph.tensors().size()) {}

  std::string run() {
    make_backends();
    for (const auto& backend : backends_) pointers_.push_back(backend.get());
    place_externals();
    sched::GraphScheduler scheduler(pointers_, {false, case_.copy_places});
    assign(scheduler);
    const Status reserved = scheduler.reserve(graph_, external_);
    if (reserved.code() == Code::kUnsupported || reserved.code() == Code::kInvalidArgument)
      return can_be_placed() ? std::string("S1: refused, with a place for each: ") + reserved.why()
                             : "";
    if (!reserved.is_ok()) return std::string("reserve: ") + reserved.why();
    const std::string judged = judge_schedule(graph_, *scheduler.schedule(), pointers_, request_);
    if (!judged.empty()) return judged;
    for (std::uint32_t run = 0; run < case_.runs; ++run) {
      if (std::string found = run_once(scheduler, run); !found.empty()) return found;
      if (case_.is_pipelined && run + 1 < case_.runs) continue;
      if (const Status status = scheduler.synchronize(); !status.is_ok())
        return std::string("synchronize: ") + status.why();
      if (std::string found = compare(); !found.empty()) return found;
    }
    if (scheduler.schedules_made() != 1 || scheduler.plans_made() != 1)
      return "H55: a run after the reservation made another schedule or plan";
    return "";
  }

 private:
  void make_backends() {
    for (std::uint32_t k = 0; k < case_.backends; ++k) {
      const bool is_shared = case_.has_shared_memory && k > 0 && choices_() % 2 == 0;
      if (!is_shared) memories_.push_back(std::make_shared<cpu::HostBuffers>());
      LateTraits traits;
      if (case_.has_odd_traits) {
        traits.has_events = choices_() % 3 != 0;
        traits.waits_for_others = choices_() % 3 != 0;
        traits.has_copies = choices_() % 3 != 0;
        if (k + 1 < case_.backends) traits.lacks = choices_() & choices_() & choices_();
      }
      backends_.push_back(std::make_unique<LateBackend>(world_, "late" + std::to_string(k),
                                                        memories_.back(), traits));
    }
  }

  void place_externals() {
    request_.backend_of.assign(graph_.tensors().size(), kNoBackend);
    for (std::uint32_t t = 0; t < graph_.tensors().size(); ++t) {
      const Tensor& tensor = graph_.tensors()[t];
      if (!is_external(tensor) || tensor.root.value() != t) continue;
      const auto home = static_cast<std::uint32_t>(choices_() % backends_.size());
      external_[t] = backends_[home]->make_buffer(std::max(tensor.extent, Bytes{1})).value();
      externals_.emplace_back(TensorId{t}, home);
      fill_leaf(made_, TensorId{t}, case_.seed, external_[t]);
      fill_leaf(made_, TensorId{t}, case_.seed, plain_.at(TensorId{t}));
    }
  }

  /// Some nodes and leafs get a backend. Those of the externals stay the ones they lie on.
  void assign(sched::GraphScheduler& scheduler) {
    for (std::uint32_t t = 0; t < graph_.tensors().size(); ++t) {
      const Tensor& tensor = graph_.tensors()[t];
      if (is_external(tensor) || tensor.root.value() != t || choices_() % 3 != 0) continue;
      const auto backend = static_cast<std::uint32_t>(choices_() % backends_.size());
      static_cast<void>(scheduler.assign(TensorId{t}, backend));
      request_.backend_of[t] = backend;
    }
  }

  /// Whether each set of roots that nodes write together has a backend, by definition: one on which its external memory is,
  /// where the caller wants its members (inputs that nobody assigns: the last one), and that has each node's kernel.
  bool can_be_placed() const {
    std::vector<std::uint32_t> set_of(graph_.tensors().size());
    for (std::uint32_t t = 0; t < set_of.size(); ++t) set_of[t] = graph_.tensors()[t].root.value();
    const auto unite = [&](std::uint32_t a, std::uint32_t b) {
      const std::uint32_t from = set_of[a], to = set_of[b];
      for (std::uint32_t& set : set_of) set = set == from ? to : set;
    };
    for (const TensorId node : graph_.nodes()) {
      if (graph_[node].operation != Operation::kOptStepAdamw) continue;
      for (const std::size_t k : {0u, 2u, 3u})
        unite(graph_.sources(graph_[node])[k].value(), node.value());
    }
    std::map<std::uint32_t, std::set<std::uint32_t>> allowed;  // backends by set
    for (const std::uint32_t set : set_of) {
      for (std::uint32_t b = 0; b < pointers_.size(); ++b) allowed[set].insert(b);
    }
    const auto keep = [&](std::uint32_t t, const auto& fits) {
      std::erase_if(allowed[set_of[t]], [&](std::uint32_t b) { return !fits(b); });
    };
    for (std::uint32_t t = 0; t < set_of.size(); ++t) {
      const Tensor& tensor = graph_.tensors()[t];
      std::uint32_t home = request_.backend_of[t];
      if (is_external(tensor) && tensor.root.value() == t) {
        // The first backend that holds the bytes: those that share a memory all do.
        home = 0;
        while (!pointers_[home]->holds(external_[t], tensor.extent)) home += 1;
        if (tensor.extent == Bytes{}) home = kNoBackend;
      }
      if (home == kNoBackend && is_leaf(graph_, TensorId{t}))
        home = static_cast<std::uint32_t>(pointers_.size() - 1);
      if (home != kNoBackend) keep(t, [home](std::uint32_t b) { return b == home; });
    }
    for (const TensorId node : graph_.nodes())
      keep(node.value(), [&](std::uint32_t b) { return pointers_[b]->supports(graph_, node); });
    return std::all_of(allowed.begin(), allowed.end(),
                       [](const auto& set) { return !set.second.empty(); });
  }

  /// Enqueues a run and the reading of its results; what they have to be is noted.
  std::string run_once(sched::GraphScheduler& scheduler, std::uint32_t run) {
    inputs_.emplace_back(graph_.tensors().size());
    for (std::uint32_t t = 0; t < graph_.tensors().size(); ++t) {
      const Tensor& tensor = graph_.tensors()[t];
      if (!is_leaf(graph_, TensorId{t}) || is_external(tensor)) continue;
      fill_leaf(made_, TensorId{t}, case_.seed + run, plain_.at(TensorId{t}));
      std::vector<std::byte>& bytes = inputs_.back()[t];
      bytes = plain_bytes(TensorId{t});
      if (const Status status = scheduler.set_async(TensorId{t}, bytes); !status.is_ok())
        return std::string("set: ") + status.why();
    }
    const Status ran = scheduler.run(graph_, external_);
    const Status plain = plain_.run();
    if (!ran.is_ok() || !plain.is_ok())
      return std::string("run: ") + (ran.is_ok() ? plain.why() : ran.why());
    return read(scheduler, run);
  }

  std::vector<std::byte> plain_bytes(TensorId id) const {
    const auto* const from = static_cast<const std::byte*>(plain_.at(id).pointer());
    return {from, from + graph_[id].extent.count()};
  }

  std::string read(sched::GraphScheduler& scheduler, std::uint32_t run) {
    for (std::uint32_t t = 0; t < graph_.tensors().size(); ++t) {
      const TensorId id{t};
      if (!is_kept(graph_, id) || graph_[id].operation == Operation::kControl) continue;
      if (is_leaf(graph_, id) && !is_external(graph_[id])) continue;
      results_.push_back(
          {run, id, std::vector<std::byte>(graph_[id].extent.count()), plain_bytes(id)});
      const Status got = scheduler.get_async(id, results_.back().got);
      if (!got.is_ok()) return std::string("get: ") + got.why();
    }
    return "";
  }

  std::string compare() {
    for (const ReadResult& result : results_) {
      const Tensor& tensor = graph_[result.tensor];
      if (has_equal_elements(tensor, result.got.data(), result.expected.data())) continue;
      return "run " + std::to_string(result.run) + ": tensor " +
             std::to_string(result.tensor.value()) + " (" +
             std::string(graph::traits_of(tensor.operation).name) + ") has other values";
    }
    results_.clear();
    return "";
  }

  const MadeGraph& made_;
  const Graph& graph_;
  const ScheduleCase& case_;
  std::mt19937_64 choices_;
  LateWorld world_;
  PlainRun plain_;
  std::vector<Address> external_;
  std::vector<std::pair<TensorId, std::uint32_t>> externals_;
  std::vector<std::shared_ptr<cpu::HostBuffers>> memories_;
  std::vector<std::unique_ptr<LateBackend>> backends_;
  std::vector<sched::Backend*> pointers_;
  sched::ScheduleRequest request_;
  std::deque<std::vector<std::vector<std::byte>>> inputs_;  // by run and tensor
  std::deque<ReadResult> results_;
};

}  // namespace

std::string judge_schedule(const Graph& graph, const sched::Schedule& schedule,
                           std::span<sched::Backend* const> backends,
                           const sched::ScheduleRequest& request) {
  const Graph& planned = schedule.graph;
  std::set<std::uint32_t> there;  // tensors that have their values
  for (std::uint32_t t = 0; t < planned.tensors().size(); ++t) {
    if (is_leaf(planned, TensorId{t})) there.insert(t);
  }
  std::size_t works = 0;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> copied;
  std::map<std::uint32_t, std::uint32_t> writes;  // by root of the schedule's graph
  for (const sched::ScheduleSplit& split : schedule.splits) {
    const sched::Backend& backend = *backends[split.backend];
    for (std::uint32_t c = split.copies_begin; c < split.copies_end; ++c) {
      const sched::ScheduledCopy& copy = schedule.copies[c];
      const std::uint32_t root = planned[copy.from].root.value();
      if (there.count(root) == 0) return "S1: a copy of what is not computed yet";
      const auto key = std::make_pair(copy.from.value(), backend.memory().value());
      const auto [at, is_new] = copied.emplace(key, writes[root]);
      if (!is_new && at->second == writes[root]) return "S2: a second copy to the same memory";
      at->second = writes[root];
      if (copy.to_backend != split.backend) return "S1: a copy for another backend";
      if (planned[copy.from].extent != copy.bytes) return "S2: a copy of other bytes";
      there.insert(copy.to.value());
    }
    for (const TensorId node : split.nodes) {
      works += 1;
      if (!backend.supports(planned, node)) return "S1: a node on a backend without a kernel";
      for (const TensorId source : planned.sources(planned[node])) {
        if (source == kNoTensor) continue;
        const TensorId root = planned[source].root;
        if (there.count(root.value()) == 0) return "S1: a source that is not there";
        const sched::MemoryId memory = schedule.memories[schedule.memory_of[source.value()]];
        if (!backend.can_read(memory)) return "S1: a source in a memory that is not read there";
      }
      const TensorId root = planned[node].root;
      const sched::MemoryId memory = schedule.memories[schedule.memory_of[root.value()]];
      if (memory != backend.memory()) return "S1: a result in another memory";
      if (root != node) writes[root.value()] += 1;
      there.insert(node.value());
    }
  }
  std::size_t expected = 0;
  for (const TensorId node : graph.nodes()) {
    const Operation operation = graph[node].operation;
    const bool is_view = operation == Operation::kNone || operation == Operation::kView ||
                         operation == Operation::kReshape || operation == Operation::kPermute ||
                         operation == Operation::kTranspose || operation == Operation::kControl;
    expected += is_view ? 0 : 1;
  }
  if (works != expected) return "S1: not every node is in a split";
  for (std::size_t t = 0; t < request.backend_of.size(); ++t) {
    if (request.backend_of[t] != kNoBackend && request.backend_of[t] != schedule.backend_of[t])
      return "SCH-6: tensor " + std::to_string(t) + " is not where it was assigned";
  }
  return "";
}

std::string compare_schedules(const MadeGraph& made, const ScheduleCase& one) {
  return ScheduleRuns(made, one).run();
}

}  // namespace ashlar::props
