// The buffers of a backend's memory: what counts as one, and which bytes are in one.
#include <ashlar/sched/buffer_map.h>

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "src/cpu_backend/cpu_backend.h"

namespace ashlar {
namespace {

using sched::BufferMap;

TEST(BufferMap, HoldsWhatLiesInOneBuffer) {
  BufferMap map;
  EXPECT_FALSE(map.holds(Address{100}, 0_B));
  ASSERT_TRUE(map.add(Address{100}, {50_B, true}).is_ok());
  ASSERT_TRUE(map.add(Address{150}, {10_B, false}).is_ok()) << "they touch";
  EXPECT_TRUE(map.holds(Address{100}, 50_B));
  EXPECT_TRUE(map.holds(Address{149}, 1_B));
  EXPECT_FALSE(map.holds(Address{149}, 2_B)) << "the bytes are in two buffers";
  EXPECT_TRUE(map.holds(Address{160}, 0_B)) << "the end of a buffer";
  EXPECT_FALSE(map.holds(Address{160}, 1_B));
  EXPECT_FALSE(map.holds(Address{99}, 1_B));
  EXPECT_FALSE(map.holds(Address{161}, 0_B));
  EXPECT_EQ(map.at(Address{149}).value().base, Address{100});
  EXPECT_EQ(map.at(Address{149}).value().size, 50_B);
  EXPECT_EQ(map.at(Address{150}).value().base, Address{150});
  EXPECT_EQ(map.at(Address{160}).code(), Code::kUnknownPointer);
  EXPECT_EQ(map.at(Address{99}).code(), Code::kUnknownPointer);
}

TEST(BufferMap, RefusesWhatIsNoBufferAndKeepsWhatIsThere) {
  BufferMap map;
  ASSERT_TRUE(map.add(Address{100}, {50_B, true}).is_ok());
  for (const std::uint64_t base : {51u, 99u, 100u, 120u, 149u})
    EXPECT_EQ(map.add(Address{base}, {50_B, false}).code(), Code::kInvalidArgument) << base;
  EXPECT_EQ(map.add(Address{10}, {1000_B, false}).code(), Code::kInvalidArgument) << "around it";
  EXPECT_EQ(map.add(Address{200}, {0_B, false}).code(), Code::kInvalidArgument);
  EXPECT_EQ(map.add(Address{200}, {Bytes::max(), false}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(map.add(Address{~std::uint64_t{0}}, {1_B, false}).is_ok()) << "the last byte";
  EXPECT_TRUE(map.add(Address{50}, {50_B, false}).is_ok());
  EXPECT_TRUE(map.holds(Address{100}, 50_B));
  const auto removed = map.remove(Address{100});
  ASSERT_TRUE(removed.has_value());
  EXPECT_EQ(removed->size, 50_B);
  EXPECT_TRUE(removed->is_own);
  EXPECT_FALSE(map.remove(Address{100}).has_value());
  std::vector<Address> left;
  map.for_each([&](Address base, sched::BufferEntry) { left.push_back(base); });
  EXPECT_EQ(left, (std::vector<Address>{Address{50}, Address{~std::uint64_t{0}}}));
}

TEST(ProcessorBuffers, AdoptNothingThatIsPartlyTheirs) {
  cpu::CpuBackend processor("cpu", std::make_shared<cpu::HostBuffers>());
  const Address own = processor.make_buffer(4_KiB).value();
  EXPECT_EQ(processor.adopt_buffer(own.pointer(), 4_KiB).code(), Code::kInvalidArgument);
  EXPECT_EQ(processor.adopt_buffer((own + 2_KiB).pointer(), 64_B).code(), Code::kInvalidArgument);
  EXPECT_TRUE(processor.holds(own + 2_KiB, 64_B));
  EXPECT_EQ(processor.make_buffer(0_B).code(), Code::kInvalidArgument);
  EXPECT_TRUE(processor.release_buffer(own).is_ok()) << "and it is freed: LeakSanitizer";
}

TEST(ProcessorBuffers, ANullAddressIsAnErrorUnlessTheTensorIsEmpty) {
  cpu::CpuBackend processor("cpu", std::make_shared<cpu::HostBuffers>());
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{64}}) {
    graph::Graph graph;
    graph::TensorSpec in, out;
    in.shape = out.shape = {length, 1, 1, 1};
    out.operation = graph::Operation::kRelu;
    out.sources = {graph.add(in).value()};
    const graph::TensorId node = graph.add(out).value();
    std::vector<float> values(64, 1.0f);
    for (std::size_t missing = 0; missing < 2; ++missing) {
      std::vector<Address> at(2, Address::of(values.data()));
      at[missing] = Address{};
      const Status status = processor.compute(graph, std::span(&node, 1), at);
      EXPECT_EQ(status.code(), length == 0 ? Code::kOk : Code::kInvalidArgument);
    }
  }
}

TEST(ProcessorBuffers, TellTheBufferOfAByte) {
  cpu::CpuBackend processor("cpu", std::make_shared<cpu::HostBuffers>());
  const Address own = processor.make_buffer(4_KiB).value();
  EXPECT_EQ(processor.buffer_at(own + 100_B).value().base, own);
  EXPECT_EQ(processor.buffer_at(own + 100_B).value().size, 4_KiB);
  EXPECT_EQ(processor.buffer_at(own + 4_KiB).code(), Code::kUnknownPointer);
}

TEST(CopyBetween, TakesHostMemoryAsItIs) {
  // A backend without a path from the processor, and no memory of the host's.
  struct Far final : sched::Backend {
    std::vector<std::span<const std::byte>> parts;
    std::string_view name() const noexcept override { return "far"; }
    sched::MemoryId memory() const noexcept override { return id; }
    graph::BufferType buffer_type() const noexcept override { return {}; }
    Result<Address> make_buffer(Bytes) noexcept override { return {Code::kOutOfMemory, "none"}; }
    Status release_buffer(Address) noexcept override { return Status::ok(); }
    bool holds(Address, Bytes) const noexcept override { return true; }
    Status set_async(Address, std::span<const std::byte> from) noexcept override {
      parts.push_back(from);
      return Status::ok();
    }
    Status get_async(std::span<std::byte>, Address) noexcept override { return Status::ok(); }
    using Backend::synchronize;
    Status synchronize() noexcept override { return Status::ok(); }
    bool supports(const graph::Graph&, graph::TensorId) const noexcept override { return true; }
    Status compute(const graph::Graph&, std::span<const graph::TensorId>,
                   std::span<const Address>) noexcept override {
      return Status::ok();
    }
    const sched::MemoryId id = sched::new_memory_id();
  } far;
  cpu::CpuBackend processor("cpu", std::make_shared<cpu::HostBuffers>());
  const Address own = processor.make_buffer(3_MiB).value();
  EXPECT_TRUE(copy_between(processor, own, far, Address{64}, 3_MiB).is_ok());
  ASSERT_EQ(far.parts.size(), 1u) << "in one piece, without a copy on the host";
  EXPECT_EQ(far.parts[0].data(), own.pointer());
  EXPECT_EQ(far.parts[0].size(), (3_MiB).count());
}

}  // namespace
}  // namespace ashlar
