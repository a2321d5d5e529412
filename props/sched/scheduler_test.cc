// The scheduler in examples: assignments, causes, errors that name the tensor, what is reserved once.
//
// Imitates: a model whose layers lie on two devices, and callers who make mistakes.
#include <ashlar/sched/graph_scheduler.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "props/graph/small_graphs.h"
#include "props/sched/late_backend.h"

namespace ashlar {
namespace {

using graph::Operation;
using graph::TensorId;
using props::LateBackend;
using props::LateTraits;
using props::LateWorld;
using props::SmallGraph;
using sched::GraphScheduler;
using sched::PlacedBy;

/// Two backends that run late, each with a memory of its own.
struct TwoBackends {
  LateWorld world{1};
  std::shared_ptr<cpu::HostBuffers> first_memory = std::make_shared<cpu::HostBuffers>();
  std::shared_ptr<cpu::HostBuffers> second_memory = std::make_shared<cpu::HostBuffers>();
  LateBackend first{world, "first", first_memory, LateTraits{}};
  LateBackend second{world, "second", second_memory, LateTraits{}};
  std::vector<sched::Backend*> both{&first, &second};

  /// Memory for an external tensor on one of the two.
  static Address weight(LateBackend& backend, float value, std::size_t count) {
    const Address at = backend.make_buffer(Bytes{count * sizeof(float)}).value();
    for (std::size_t k = 0; k < count; ++k) static_cast<float*>(at.pointer())[k] = value;
    return at;
  }
};

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> read(GraphScheduler& scheduler, TensorId tensor, std::size_t count) {
  std::vector<float> values(count);
  EXPECT_TRUE(scheduler.get(tensor, std::as_writable_bytes(std::span(values))).is_ok());
  return values;
}

/// x -> scale -> + weight a -> scale -> * weight b -> scale
struct Chain {
  SmallGraph g;
  TensorId x = g.input(16);
  TensorId a = g.leaf(16, graph::kExternal);
  TensorId b = g.leaf(16, graph::kExternal);
  TensorId first = scale(x, 2.0f);
  TensorId sum = g.same(Operation::kAdd, {first, a});
  TensorId middle = scale(sum, 3.0f);
  TensorId product = g.same(Operation::kMul, {middle, b});
  TensorId last = scale(product, 1.0f, graph::kOutput);

  /// The addresses of the external tensors: `a` is four ones on one backend, `b` four tens on another.
  std::vector<Address> weights(LateBackend& of_a, LateBackend& of_b) const {
    std::vector<Address> external(g.graph.tensors().size());
    external[a.value()] = TwoBackends::weight(of_a, 1, 4);
    external[b.value()] = TwoBackends::weight(of_b, 10, 4);
    return external;
  }

  TensorId scale(TensorId of, float factor, std::uint8_t flags = graph::kNoFlags) {
    graph::TensorSpec spec;
    spec.operation = Operation::kScale;
    spec.shape = g.graph[of].shape;
    spec.sources = {of};
    spec.flags = flags;
    spec.parameters.reals[0] = factor;
    spec.name = "scale " + std::to_string(g.graph.tensors().size());
    return g.add(spec);
  }
};

TEST(SchedulerTest, WeightsStayAndTheRestIsCut) {
  TwoBackends two;
  Chain chain;
  const std::vector<Address> external = chain.weights(two.first, two.second);
  GraphScheduler scheduler(two.both);
  ASSERT_TRUE(scheduler.reserve(chain.g.graph, external).is_ok());
  const sched::Schedule& schedule = *scheduler.schedule();
  EXPECT_EQ(schedule.backend_of[chain.sum.value()], 0u);
  EXPECT_EQ(schedule.placed_by[chain.sum.value()], PlacedBy::kMemory);
  EXPECT_EQ(schedule.backend_of[chain.product.value()], 1u);
  EXPECT_EQ(schedule.backend_of[chain.last.value()], 1u);
  EXPECT_EQ(schedule.placed_by[chain.last.value()], PlacedBy::kCut);
  EXPECT_EQ(schedule.placed_by[chain.x.value()], PlacedBy::kInput);
  EXPECT_EQ(schedule.backend_of[chain.x.value()], 1u);  // inputs are on the last backend
  EXPECT_EQ(schedule.copies.size(), 2u);
  EXPECT_EQ(schedule.copied_bytes(), 32_B);
  for (float value = 1; value < 4; ++value) {
    const auto input = bytes_of({value, value, value, value});
    ASSERT_TRUE(scheduler.set(chain.x, input).is_ok());
    ASSERT_TRUE(scheduler.run(chain.g.graph, external).is_ok());
    EXPECT_EQ(read(scheduler, chain.last, 4)[3], (value * 2 + 1) * 3 * 10);
  }
  EXPECT_EQ(scheduler.schedules_made(), 1u);
}

// H55: reserving drops the caller's assignments, and a later run plans anew.
TEST(SchedulerTest, AssignmentsSurviveReservationsRunsAndResets) {
  TwoBackends two;
  Chain chain;
  const std::vector<Address> external = chain.weights(two.first, two.second);
  GraphScheduler scheduler(two.both);
  ASSERT_TRUE(scheduler.assign(chain.last, 0).is_ok());
  ASSERT_TRUE(scheduler.assign(chain.sum, 1).is_ok());  // away from its weight
  EXPECT_EQ(scheduler.assign(chain.sum, 2).code(), Code::kInvalidArgument);
  const auto input = bytes_of({1, 1, 1, 1});
  for (int round = 1; round <= 2; ++round) {
    ASSERT_TRUE(scheduler.reserve(chain.g.graph, external).is_ok());
    ASSERT_TRUE(scheduler.set(chain.x, input).is_ok());
    ASSERT_TRUE(scheduler.run(chain.g.graph, external).is_ok());
    EXPECT_EQ(scheduler.schedules_made(), static_cast<std::uint64_t>(round));
    EXPECT_EQ(scheduler.plans_made(), static_cast<std::uint64_t>(round));
    EXPECT_EQ(scheduler.schedule()->backend_of[chain.last.value()], 0u);
    EXPECT_EQ(scheduler.schedule()->placed_by[chain.last.value()], PlacedBy::kUser);
    EXPECT_EQ(scheduler.schedule()->backend_of[chain.sum.value()], 1u);
    EXPECT_EQ(read(scheduler, chain.last, 4)[0], 90.0f);
    scheduler.reset();
    EXPECT_EQ(scheduler.schedule(), nullptr);
  }
  ASSERT_TRUE(scheduler.assign(chain.last, sched::kNoBackend).is_ok());
  ASSERT_TRUE(scheduler.reserve(chain.g.graph, external).is_ok());
  EXPECT_EQ(scheduler.schedule()->placed_by[chain.last.value()], PlacedBy::kCut);
}

// Defect (e): ggml aborts where no backend supports a node.
TEST(SchedulerErrors, AnOperationThatNoBackendSupportsIsNamed) {
  LateWorld world(1);
  auto memory = std::make_shared<cpu::HostBuffers>();
  LateTraits lacking;
  lacking.lacks = std::uint64_t{1} << static_cast<int>(Operation::kTanh);
  LateBackend first(world, "first", memory, lacking), second(world, "second", memory, lacking);
  SmallGraph g;
  const auto x = g.input(16);
  graph::TensorSpec spec;
  spec.operation = Operation::kTanh;
  spec.shape = {4, 1, 1, 1};
  spec.sources = {x};
  spec.name = "squash";
  g.add(spec);
  GraphScheduler scheduler({&first, &second});
  const std::vector<Address> external(2);
  EXPECT_EQ(scheduler.reserve(g.graph, external).code(), Code::kUnsupported);
  EXPECT_NE(scheduler.last_error().find("'squash' (TANH)"), std::string::npos)
      << scheduler.last_error();
  EXPECT_EQ(scheduler.run(g.graph, external).code(), Code::kUnsupported);
}

TEST(SchedulerErrors, ANodeIsOnTheOnlyBackendThatSupportsIt) {
  TwoBackends two;
  LateTraits lacking;
  lacking.lacks = std::uint64_t{1} << static_cast<int>(Operation::kSqr);
  LateBackend last(two.world, "last", std::make_shared<cpu::HostBuffers>(), lacking);
  SmallGraph g;
  const auto x = g.input(16);
  const auto y = g.same(Operation::kSqr, {x});
  GraphScheduler scheduler({&two.first, &last});
  const std::vector<Address> external(2);
  ASSERT_TRUE(scheduler.reserve(g.graph, external).is_ok());
  EXPECT_EQ(scheduler.schedule()->backend_of[y.value()], 0u);
  EXPECT_EQ(scheduler.schedule()->placed_by[y.value()], PlacedBy::kSupport);
  ASSERT_TRUE(scheduler.assign(y, 1).is_ok());
  EXPECT_EQ(scheduler.reserve(g.graph, external).code(), Code::kUnsupported);
}

TEST(SchedulerErrors, WhatLiesElsewhereIsRefused) {
  TwoBackends two;
  Chain chain;
  std::vector<Address> external(chain.g.graph.tensors().size());
  std::vector<float> outside(4);
  external[chain.a.value()] = TwoBackends::weight(two.first, 1, 4);
  external[chain.b.value()] = Address::of(outside.data());
  GraphScheduler scheduler(two.both);
  EXPECT_EQ(scheduler.reserve(chain.g.graph, external).code(), Code::kWrongDevice);
  EXPECT_NE(scheduler.last_error().find("tensor 2"), std::string::npos);
  external[chain.b.value()] = TwoBackends::weight(two.second, 1, 4);
  ASSERT_TRUE(scheduler.assign(chain.b, 0).is_ok());
  EXPECT_EQ(scheduler.reserve(chain.g.graph, external).code(), Code::kWrongDevice);
  external.pop_back();
  EXPECT_EQ(scheduler.reserve(chain.g.graph, external).code(), Code::kInvalidArgument);
  std::vector<std::byte> bytes(16);
  EXPECT_EQ(scheduler.set(chain.x, bytes).code(), Code::kNotFound);
  EXPECT_EQ(scheduler.get(chain.x, bytes).code(), Code::kNotFound);
}

TEST(SchedulerErrors, SayWhichTensorAndWhy) {
  TwoBackends two;
  SmallGraph g;
  graph::TensorSpec spec;
  spec.shape = {4, 1, 1, 1};
  spec.flags = graph::kExternal;
  const auto plain = g.add(spec);
  spec.name = "table";
  const auto named = g.add(spec);
  g.same(Operation::kAdd, {plain, named});
  std::vector<Address> external(3);
  GraphScheduler scheduler(two.both);
  EXPECT_EQ(scheduler.last_error(), "");
  std::vector<std::byte> bytes(16);
  EXPECT_EQ(scheduler.set(plain, bytes).why(), std::string("no graph is reserved"));
  EXPECT_EQ(scheduler.reserve(g.graph, external).code(), Code::kInvalidArgument);
  EXPECT_EQ(scheduler.last_error(), "tensor 0: external, and has no address");
  external[plain.value()] = TwoBackends::weight(two.first, 1, 4);
  external[named.value()] = external[plain.value()] + 4_B;
  EXPECT_EQ(scheduler.reserve(g.graph, external).code(), Code::kWrongDevice);
  EXPECT_EQ(
      scheduler.last_error(),
      "tensor 1 'table': not all in one buffer of a backend: make_buffer() and adopt_buffer() "
      "make them");
  external[named.value()] = TwoBackends::weight(two.second, 1, 4);
  ASSERT_TRUE(scheduler.assign(named, 0).is_ok());
  EXPECT_EQ(scheduler.reserve(g.graph, external).code(), Code::kWrongDevice);
  EXPECT_EQ(scheduler.last_error(),
            "tensor 1 'table': not in a buffer of the backend that it is assigned to");
  ASSERT_TRUE(scheduler.assign(named, sched::kNoBackend).is_ok());
  ASSERT_TRUE(scheduler.assign(TensorId{3}, 0).is_ok());  // of another graph, perhaps
  ASSERT_TRUE(scheduler.reserve(g.graph, external).is_ok());
  EXPECT_EQ(scheduler.last_error(), "");
  EXPECT_EQ(scheduler.get(TensorId{3}, bytes).code(), Code::kNotFound);
  EXPECT_EQ(scheduler.set(TensorId{3}, bytes).code(), Code::kNotFound);
  sched::ScheduleRequest request;
  request.copy_places = 65;
  EXPECT_EQ(make_schedule(g.graph, two.both, request).code(), Code::kInvalidArgument);
  request.copy_places = 64;
  EXPECT_TRUE(make_schedule(g.graph, two.both, request).is_ok());
}

TEST(SchedulerErrors, SayWhyNoBackendSupportsShapesThatDoNotFit) {
  TwoBackends two;
  SmallGraph g;
  graph::TensorSpec product;
  product.operation = Operation::kMulMat;
  product.shape = {3, 1, 1, 1};
  product.sources = {g.input(64), g.input(64)};
  product.name = "y";
  g.add(product);
  GraphScheduler scheduler(two.both);
  EXPECT_EQ(scheduler.reserve(g.graph, std::vector<Address>(3)).code(), Code::kUnsupported);
  EXPECT_EQ(scheduler.last_error(), "tensor 2 'y' (MUL_MAT): the product has another shape");
}

TEST(SchedulerTest, ReleasesItsBuffersAtAResetAndAtItsEnd) {
  TwoBackends two;
  Chain chain;
  const std::vector<Address> external = chain.weights(two.first, two.second);
  Address seen;
  sched::Backend* on = nullptr;
  sched::NodeObserver observer;
  observer.seen = [&](TensorId, sched::Backend& backend, Address at) {
    seen = at;
    on = &backend;
    return true;
  };
  {
    GraphScheduler scheduler(two.both);
    scheduler.observe(observer);
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(scheduler.run(chain.g.graph, external).is_ok());
      EXPECT_TRUE(on->holds(seen, 16_B));
      if (round > 0) break;
      scheduler.reset();
      EXPECT_FALSE(on->holds(seen, 16_B));
    }
  }
  EXPECT_FALSE(on->holds(seen, 16_B));
  EXPECT_TRUE(two.first.holds(external[chain.a.value()], 16_B));  // the caller's
}

// Each node is computed once, in its order, whichever of them the observer wants.
TEST(SchedulerTest, AnObserverChangesNothing) {
  for (unsigned wanted = 0; wanted < 32; ++wanted) {
    TwoBackends two;
    Chain chain;
    const std::vector<Address> external = chain.weights(two.first, two.first);
    GraphScheduler scheduler({&two.second, &two.first});
    const TensorId nodes[] = {chain.first, chain.sum, chain.middle, chain.product, chain.last};
    unsigned seen = 0;
    sched::NodeObserver observer;
    const auto number = [&](TensorId node) {
      return static_cast<unsigned>(std::find(nodes, nodes + 5, node) - nodes);
    };
    observer.wants = [&](TensorId node) { return (wanted >> number(node) & 1) != 0; };
    observer.seen = [&](TensorId node, sched::Backend&, Address) {
      EXPECT_EQ(seen >> number(node), 0u);  // none behind it was seen before
      seen |= 1u << number(node);
      return true;
    };
    scheduler.observe(observer);
    ASSERT_TRUE(scheduler.reserve(chain.g.graph, external).is_ok());
    ASSERT_TRUE(scheduler.set(chain.x, bytes_of({1, 1, 1, 1})).is_ok());
    ASSERT_TRUE(scheduler.run(chain.g.graph, external).is_ok());
    EXPECT_EQ(seen, wanted);
    EXPECT_EQ(read(scheduler, chain.last, 4)[0], 90.0f);
  }
}

TEST(SchedulerErrors, EventsAndBytesOfOtherBackendsAreRefused) {
  TwoBackends two;
  const auto event = two.first.make_event().value();
  EXPECT_EQ(two.second.record(*event).code(), Code::kWrongDevice);
  EXPECT_EQ(two.second.synchronize(*event).code(), Code::kWrongDevice);
  const Address at = TwoBackends::weight(two.first, 1, 4);
  std::vector<std::byte> bytes(16);
  EXPECT_EQ(two.second.set(at, bytes).code(), Code::kWrongDevice);
  EXPECT_EQ(two.second.get(bytes, at).code(), Code::kWrongDevice);
  EXPECT_EQ(two.second.release_buffer(at).code(), Code::kUnknownPointer);
  cpu::CpuBackend processor("cpu", std::make_shared<cpu::HostBuffers>());
  EXPECT_EQ(processor.make_event().code(), Code::kUnsupported);
  EXPECT_EQ(processor.wait(*event).code(), Code::kWrongDevice);
  EXPECT_EQ(processor.get(bytes, at).code(), Code::kWrongDevice);
}

TEST(SchedulerErrors, RegionsAndImpossibleRequestsAreTyped) {
  TwoBackends two;
  SmallGraph g;
  const auto x = g.input(16);
  g.graph.begin_region(graph::RegionKind::kLoop);
  g.same(Operation::kScale, {x});
  ASSERT_TRUE(g.graph.end_region().is_ok());
  std::string error;
  EXPECT_EQ(make_schedule(g.graph, two.both, {}, &error).code(), Code::kUnsupported);
  SmallGraph plain;
  plain.same(Operation::kScale, {plain.input(16)});
  sched::ScheduleRequest request;
  EXPECT_EQ(make_schedule(plain.graph, {}, request).code(), Code::kInvalidArgument);
  request.backend_of = {0};
  EXPECT_EQ(make_schedule(plain.graph, two.both, request).code(), Code::kInvalidArgument);
  request.backend_of = {0, 7};
  EXPECT_EQ(make_schedule(plain.graph, two.both, request, &error).code(), Code::kInvalidArgument);
  EXPECT_FALSE(error.empty());
  request.backend_of.clear();
  request.copy_places = 0;
  EXPECT_EQ(make_schedule(plain.graph, two.both, request).code(), Code::kInvalidArgument);
}

// A node that writes a view runs where its root lies; a wish that contradicts that is refused.
TEST(SchedulerTest, WritersRunWhereTheirRootLies) {
  TwoBackends two;
  SmallGraph g;
  const auto x = g.input(16);
  const auto cache = g.leaf(32, graph::kExternal);
  graph::TensorSpec spec;
  spec.operation = Operation::kCpy;
  spec.shape = {4, 1, 1, 1};
  spec.sources = {x, cache};
  spec.view_source = cache;
  spec.view_offset = 16_B;
  const auto write = g.add(spec);
  std::vector<Address> external(3);
  external[cache.value()] = TwoBackends::weight(two.first, 0, 8);
  GraphScheduler scheduler(two.both);
  ASSERT_TRUE(scheduler.reserve(g.graph, external).is_ok());
  EXPECT_EQ(scheduler.schedule()->backend_of[write.value()], 0u);
  EXPECT_EQ(scheduler.schedule()->placed_by[write.value()], PlacedBy::kRoot);
  ASSERT_TRUE(scheduler.set(x, bytes_of({1, 2, 3, 4})).is_ok());
  ASSERT_TRUE(scheduler.run(g.graph, external).is_ok());
  ASSERT_TRUE(scheduler.synchronize().is_ok());
  EXPECT_EQ(static_cast<float*>(external[cache.value()].pointer())[6], 3.0f);
  ASSERT_TRUE(scheduler.assign(write, 1).is_ok());
  EXPECT_EQ(scheduler.reserve(g.graph, external).code(), Code::kInvalidArgument);
}

// A copy made before a node writes the tensor does not serve a reader behind it.
TEST(SchedulerTest, WhatIsWrittenAgainIsCopiedAgain) {
  TwoBackends two;
  SmallGraph g;
  const auto x = g.input(16);
  const auto parameter = g.leaf(16, graph::kExternal);
  const auto moment = g.leaf(16, graph::kExternal), second = g.leaf(16, graph::kExternal);
  const auto numbers = g.leaf(28, graph::kExternal);
  const auto before = g.same(Operation::kAdd, {x, moment});
  graph::TensorSpec spec;
  spec.operation = Operation::kOptStepAdamw;
  spec.shape = {4, 1, 1, 1};
  spec.sources = {parameter, x, moment, second, numbers};
  spec.view_source = parameter;
  g.add(spec);
  const auto after = g.same(Operation::kAdd, {x, moment}, graph::kOutput);
  std::vector<Address> external(g.graph.tensors().size());
  for (const TensorId id : {parameter, moment, second})
    external[id.value()] = TwoBackends::weight(two.first, 1, 4);
  external[numbers.value()] = TwoBackends::weight(two.first, 0.5f, 7);
  GraphScheduler scheduler(two.both);
  ASSERT_TRUE(scheduler.assign(before, 1).is_ok());
  ASSERT_TRUE(scheduler.assign(after, 1).is_ok());
  ASSERT_TRUE(scheduler.reserve(g.graph, external).is_ok());
  ASSERT_TRUE(scheduler.set(x, bytes_of({4, 4, 4, 4})).is_ok());
  ASSERT_TRUE(scheduler.run(g.graph, external).is_ok());
  EXPECT_EQ(read(scheduler, before, 4)[0], 5.0f);
  EXPECT_EQ(read(scheduler, after, 4)[0], 6.5f);  // 4 + (1 * 0.5 + 4 * 0.5)
}

// The cast of a mask stands between the nodes of another backend, and would divide them.
TEST(SchedulerTest, ANodeThatCanRunEarlierDividesNoSplit) {
  TwoBackends two;
  SmallGraph g;
  const auto x = g.input(16), mask = g.input(16);
  const auto start = g.same(Operation::kScale, {x});
  const auto a = g.same(Operation::kScale, {start});
  const auto cast = g.same(Operation::kSqr, {mask});
  const auto b = g.same(Operation::kAdd, {a, cast});
  sched::ScheduleRequest request;
  request.backend_of = {1, 1, 1, 0, 1, 0};
  const auto schedule = make_schedule(g.graph, two.both, request).value();
  EXPECT_EQ(schedule.splits.size(), 2u);
  EXPECT_EQ(schedule.copies.size(), 2u);
  static_cast<void>(b);
  static_cast<void>(start);
}

TEST(SchedulerTest, AnObserverSeesTheNodesItWantsAndCanEndTheRun) {
  TwoBackends two;
  Chain chain;
  const std::vector<Address> external = chain.weights(two.first, two.second);
  GraphScheduler scheduler(two.both);
  ASSERT_TRUE(scheduler.reserve(chain.g.graph, external).is_ok());
  ASSERT_TRUE(scheduler.set(chain.x, bytes_of({1, 1, 1, 1})).is_ok());
  std::vector<std::pair<TensorId, float>> seen;
  sched::NodeObserver observer;
  observer.wants = [&](TensorId node) { return node == chain.sum || node == chain.last; };
  observer.seen = [&](TensorId node, sched::Backend& backend, Address at) {
    float value = 0;
    EXPECT_TRUE(backend.get(std::as_writable_bytes(std::span(&value, 1)), at).is_ok());
    seen.emplace_back(node, value);
    return true;
  };
  scheduler.observe(observer);
  ASSERT_TRUE(scheduler.run(chain.g.graph, external).is_ok());
  const std::vector<std::pair<TensorId, float>> expected{{chain.sum, 3.0f}, {chain.last, 90.0f}};
  EXPECT_EQ(seen, expected);
  observer.wants = nullptr;
  std::size_t calls = 0;
  observer.seen = [&](TensorId, sched::Backend&, Address) { return ++calls < 3; };
  scheduler.observe(observer);
  EXPECT_EQ(scheduler.run(chain.g.graph, external).code(), Code::kBusy);
  EXPECT_EQ(calls, 3u);
  scheduler.observe({});
  ASSERT_TRUE(scheduler.set(chain.x, bytes_of({1, 1, 1, 1})).is_ok());
  ASSERT_TRUE(scheduler.run(chain.g.graph, external).is_ok());
  EXPECT_EQ(read(scheduler, chain.last, 4)[0], 90.0f);
}

/// A backend that is preferred for sums.
class EagerBackend final : public sched::Backend {
 public:
  explicit EagerBackend(sched::Backend& inner) : inner_(inner) {}
  std::string_view name() const noexcept override { return "eager"; }
  sched::MemoryId memory() const noexcept override { return inner_.memory(); }
  graph::BufferType buffer_type() const noexcept override { return inner_.buffer_type(); }
  Result<Address> make_buffer(Bytes size) noexcept override { return inner_.make_buffer(size); }
  Status release_buffer(Address base) noexcept override { return inner_.release_buffer(base); }
  bool holds(Address begin, Bytes size) const noexcept override {
    return inner_.holds(begin, size);
  }
  Status set_async(Address to, std::span<const std::byte> from) noexcept override {
    return inner_.set_async(to, from);
  }
  Status get_async(std::span<std::byte> to, Address from) noexcept override {
    return inner_.get_async(to, from);
  }
  Status copy_async(Address from, const Backend& target, Address to, Bytes size) noexcept override {
    return inner_.copy_async(from, target, to, size);
  }
  using Backend::synchronize;
  Status synchronize() noexcept override { return inner_.synchronize(); }
  bool supports(const graph::Graph& graph, TensorId node) const noexcept override {
    return inner_.supports(graph, node);
  }
  bool prefers(const graph::Graph& graph, TensorId node) const noexcept override {
    return graph[node].operation == Operation::kAdd;
  }
  Status compute(const graph::Graph& graph, std::span<const TensorId> nodes,
                 std::span<const Address> addresses) noexcept override {
    return inner_.compute(graph, nodes, addresses);
  }

 private:
  sched::Backend& inner_;
};

TEST(SchedulerTest, OffloadCopiesWeightsToTheBackendThatIsPreferred) {
  TwoBackends two;
  EagerBackend eager(two.first);
  Chain chain;
  std::vector<Address> external(chain.g.graph.tensors().size());
  external[chain.a.value()] = TwoBackends::weight(two.second, 1, 4);
  external[chain.b.value()] = TwoBackends::weight(two.second, 10, 4);
  for (const bool offload : {false, true}) {
    GraphScheduler scheduler({&eager, &two.second}, {offload, 1});
    ASSERT_TRUE(scheduler.reserve(chain.g.graph, external).is_ok());
    EXPECT_EQ(scheduler.schedule()->backend_of[chain.sum.value()], offload ? 0u : 1u);
    EXPECT_EQ(scheduler.schedule()->placed_by[chain.sum.value()],
              offload ? PlacedBy::kOffload : PlacedBy::kMemory);
    ASSERT_TRUE(scheduler.set(chain.x, bytes_of({1, 1, 1, 1})).is_ok());
    ASSERT_TRUE(scheduler.run(chain.g.graph, external).is_ok());
    EXPECT_EQ(read(scheduler, chain.last, 4)[0], 90.0f);
  }
}

TEST(SchedulerTest, OtherShapesAndAddressesAreSeen) {
  TwoBackends two;
  GraphScheduler scheduler(two.both);
  for (const std::uint64_t bytes : {std::uint64_t{16}, std::uint64_t{64}, std::uint64_t{32}}) {
    SmallGraph g;
    const auto x = g.input(bytes);
    const auto w = g.leaf(bytes, graph::kExternal);
    const auto y = g.same(Operation::kAdd, {x, w}, graph::kOutput);
    std::vector<Address> external(3);
    for (float value = 1; value < 3; ++value) {
      external[w.value()] = TwoBackends::weight(two.first, value, bytes / 4);
      ASSERT_TRUE(scheduler.reserve(g.graph, external).is_ok());
      ASSERT_TRUE(scheduler.set(x, bytes_of(std::vector<float>(bytes / 4, 1.0f))).is_ok());
      ASSERT_TRUE(scheduler.run(g.graph, external).is_ok());
      EXPECT_EQ(read(scheduler, y, bytes / 4).back(), 1 + value);
    }
    std::vector<std::byte> wrong(bytes + 4);
    EXPECT_EQ(scheduler.set(x, wrong).code(), Code::kInvalidArgument);
    EXPECT_EQ(scheduler.get(y, wrong).code(), Code::kInvalidArgument);
  }
}

TEST(BackendTest, CopiesTakeTheBestPathThatBothHave) {
  LateWorld world(3);
  LateTraits no_copies;
  no_copies.has_copies = false;
  LateBackend a(world, "a", std::make_shared<cpu::HostBuffers>(), {});
  LateBackend b(world, "b", std::make_shared<cpu::HostBuffers>(), {});
  LateBackend c(world, "c", std::make_shared<cpu::HostBuffers>(), no_copies);
  const std::size_t count = (3u << 20) / 4;  // over two stages of a copy through the host
  const Address at_a = TwoBackends::weight(a, 7, count), at_b = TwoBackends::weight(b, 1, count);
  const Address at_c = TwoBackends::weight(c, 2, count);
  const Bytes size{count * 4};
  EXPECT_TRUE(copy_between(a, at_a, b, at_b, size).is_ok());
  EXPECT_EQ(static_cast<float*>(at_b.pointer())[count - 1], 7.0f);
  EXPECT_TRUE(copy_between(c, at_c, a, at_a, size).is_ok());
  EXPECT_EQ(static_cast<float*>(at_a.pointer())[0], 2.0f);
  EXPECT_EQ(static_cast<float*>(at_a.pointer())[count - 1], 2.0f);
  EXPECT_EQ(copy_between(a, at_b, b, at_b, size).code(), Code::kWrongDevice);
  EXPECT_EQ(copy_between(c, at_b, b, at_b, size).code(), Code::kWrongDevice);
}

TEST(BackendTest, AProcessorAdoptsTheCallersMemory) {
  cpu::CpuBackend processor("cpu", std::make_shared<cpu::HostBuffers>(64_B, 4096_B), 2);
  alignas(64) float own[32] = {};
  EXPECT_EQ(processor.adopt_buffer(own + 1, 4_B).code(), Code::kInvalidArgument);
  EXPECT_EQ(processor.adopt_buffer(nullptr, 4_B).code(), Code::kInvalidArgument);
  const Address at = processor.adopt_buffer(own, Bytes{sizeof own}).value();
  EXPECT_TRUE(processor.holds(at + 64_B, 64_B));
  EXPECT_FALSE(processor.holds(at + 68_B, 64_B));
  EXPECT_TRUE(processor.set(at, bytes_of({5})).is_ok());
  EXPECT_EQ(own[0], 5.0f);
  EXPECT_TRUE(processor.release_buffer(at).is_ok());
  EXPECT_EQ(processor.release_buffer(at).code(), Code::kUnknownPointer);
  EXPECT_EQ(processor.make_buffer(4097_B).code(), Code::kOutOfMemory);
  EXPECT_EQ(processor.make_buffer(Bytes{std::uint64_t{1} << 60}).code(), Code::kOutOfMemory);
}

}  // namespace
}  // namespace ashlar
