#include "spec/model/pool_answers.h"

#include <algorithm>
#include <utility>

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

bool PoolAnswers::judge(DeviceId id, Status got, Code refusal, const char* what,
                        std::uint64_t events) {
  JudgedDevice& device = model_.state_.at(id);
  device.books.begin_call();
  if (refusal != Code::kOk) {
    model_.judge_refused(device, got, refusal, refusal, what);
    return false;
  }
  JudgedCall call;
  call.fails = !got.is_ok();
  call.is_query = events == 0;  // no block, segment or statistic changes
  call.device_calls_max = calls_max_of_uses(events, false);
  if (is_host_refusal(model_.state_, got.code())) {
    call.is_broken_off = true;
  } else if (!got.is_ok()) {
    model_.report("C16", what, " answered ", code_name(got.code()));
  }
  model_.end(device, call);
  return got.is_ok();
}

void PoolAnswers::judge_create(DeviceId id, MemoryPoolId pool, const MemoryPoolOptions& options,
                               Status got) {
  const bool is_known = model_.state_.pools.find(id, pool) != nullptr;
  if (judge(id, got, is_known ? Code::kBusy : Code::kOk, "the creation of a memory pool"))
    model_.state_.pools.retain(id, pool, options);
}

void PoolAnswers::judge_begin(DeviceId id, MemoryPoolId pool, const Stream& routed, Status got) {
  const Code refusal = model_.state_.pools.is_routed(id, pool) ? Code::kBusy : Code::kOk;
  if (judge(id, got, refusal, "a begin of a memory pool"))
    model_.state_.pools.begin(id, pool, routed.id.value());
}

void PoolAnswers::judge_end(DeviceId id, MemoryPoolId pool, Status got) {
  const Code refusal = model_.state_.pools.is_routed(id, pool) ? Code::kOk : Code::kNotFound;
  if (judge(id, got, refusal, "an end of a memory pool")) model_.state_.pools.end(id, pool);
}

void PoolAnswers::judge_retain(DeviceId id, MemoryPoolId pool, Status got) {
  if (judge(id, got, Code::kOk, "a further use of a memory pool"))
    model_.state_.pools.retain(id, pool);
}

void PoolAnswers::judge_release(DeviceId id, MemoryPoolId pool, Status got) {
  const MemoryPoolBook::Pool* const known = model_.state_.pools.find(id, pool);
  Code refusal = Code::kOk;
  if (known == nullptr) refusal = Code::kNotFound;
  if (known != nullptr && known->uses == 1 && model_.state_.pools.is_routed(id, pool))
    refusal = Code::kBusy;
  const bool is_last = refusal == Code::kOk && known->uses == 1;
  if (is_last && got.is_ok()) end_heaps(*known);
  const std::uint64_t events = is_last && !known->may_have_graphs ? known->heaps.size() : 0;
  if (judge(id, got, refusal, "a release of a memory pool", events))
    model_.state_.pools.release(id, pool);
}

void PoolAnswers::end_heaps(const MemoryPoolBook::Pool& pool) {
  StreamBook& streams = model_.state_.streams;
  model_.state_.pools.note_own_uses(pool);
  const DeviceWitness& witness = model_.state_.at(pool.device).ledger.witness();
  if (pool.may_have_graphs)
    model_.state_.pools.note_launches(pool, witness.waits().synchronizations);
  const bool any_failure = model_.state_.at(pool.device).ledger.any_failure();
  for (const MemoryPoolBook::PoolHeap& each : pool.heaps) {
    // No event tells of the launches of its graphs. Otherwise one was recorded now, or at the retirement.
    if (pool.may_have_graphs || any_failure || streams.may_be_unmarked(each.stream)) {
      streams.lose_pool_heap(each.heap);
    } else {
      streams.retire(each.heap);
    }
  }
}

void PoolAnswers::note_graph(GraphId id, const Stream& stream, CapturedGraph contents,
                             AllocationTag before_tag, AllocationTag newest_tag) {
  GraphBook::Graph graph{id,         stream.device, model_.state_.streams.graph_of(stream),
                         before_tag, newest_tag,    std::move(contents),
                         {}};
  for (const auto& [address, block] : model_.state_.at(stream.device).books.owned()) {
    if (!block.is_pending) graph.outputs.push_back(block.tag);
  }
  model_.state_.graphs.add(std::move(graph));
}

void PoolAnswers::judge_replay(GraphId id, BodyRuns runs) const {
  const GraphBook::Graph* const graph = model_.state_.graphs.find(id);
  if (graph == nullptr) return;
  const PageWitness& pages = model_.state_.at(graph->device).ledger.witness().pages();
  std::vector<std::vector<ByteRange>> bytes;
  for (const Touch& touch : graph->contents.touches)
    bytes.push_back(pages.bytes_at(touch.at.value(), touch.at.value() + touch.size.count()));
  judge_run(*graph, bytes, runs);
  if (graph->contents.bodies.empty()) return;
  // Its conditions could have said otherwise.
  for (const BodyRuns each : {BodyRuns::never(), BodyRuns::once(), BodyRuns::twice()})
    judge_run(*graph, bytes, each);
}

void PoolAnswers::judge_run(const GraphBook::Graph& graph,
                            const std::vector<std::vector<ByteRange>>& bytes, BodyRuns runs) const {
  const JudgedDevice& device = model_.state_.at(graph.device);
  const PageWitness& pages = device.ledger.witness().pages();
  const std::vector<std::size_t> order = run_order(graph.contents, runs);
  for (const auto& [address, block] : device.books.owned()) {
    if (block.is_pending) continue;
    const std::vector<ByteRange> held = pages.bytes_at(address, address + block.size);
    for (const std::size_t touch : order) {
      const Touch& write = graph.contents.touches[touch];
      if (!GraphBook::is_write(write) || GraphBook::may_overwrite(graph, write, block)) continue;
      if (std::none_of(bytes[touch].begin(), bytes[touch].end(),
                       [&held](const ByteRange& each) { return share_bytes(held, each); }))
        continue;
      return model_.report("C8", "a replay of graph ", graph.id.value(),
                           " overwrites the live block at ", hex(address),
                           ", which was live when the graph was captured");
    }
  }
  if (const auto found = GraphBook::find_overwritten(graph, order, bytes)) {
    model_.report("C8", "a replay of graph ", graph.id.value(), " overwrites its allocation ",
                  found->tag, ", which it still needs, for allocation ", found->by);
  }
}

MemoryPoolId PoolAnswers::pool_of(const Stream& stream) const {
  const MemoryPoolBook::Pool* const pool =
      model_.state_.pools.routed(model_.state_.streams.parents_of(stream));
  return pool == nullptr ? MemoryPoolId{} : pool->id;
}

bool PoolAnswers::is_routed(DeviceId device, MemoryPoolId id) const {
  return model_.state_.pools.is_routed(device, id);
}

std::uint64_t PoolAnswers::uses(DeviceId device, MemoryPoolId id) const {
  const MemoryPoolBook::Pool* const pool = model_.state_.pools.find(device, id);
  return pool == nullptr ? 0 : pool->uses;
}

}  // namespace ashlar::spec
