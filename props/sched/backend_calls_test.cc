// What every backend has in common: copies between two of them, and what a backend need not say.
//
// Imitates: devices with and without a direct path, of sizes around the piece that goes through the host.
#include <ashlar/sched/backend.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "props/graph/small_graphs.h"
#include "props/sched/recording_backend.h"

namespace ashlar {
namespace {

using graph::Operation;
using graph::TensorId;
using props::CallLog;
using props::RecordingBackend;
using props::RecordingTraits;
using props::SmallGraph;
using Calls = std::vector<std::string>;

// Through the host, in pieces of a mebibyte; the last one is what is left.
TEST(CopyBetween, TakesAMebibyteAtATimeThroughTheHost) {
  CallLog log;
  RecordingTraits traits;
  traits.has_copies = false;
  RecordingBackend a(log, "a", traits), b(log, "b");
  constexpr std::size_t kPiece = 1u << 20;
  const Address from = a.make_buffer(Bytes{4 * kPiece}).value();
  const Address to = b.make_buffer(Bytes{4 * kPiece}).value();
  auto* const source = static_cast<unsigned char*>(from.pointer());
  auto* const target = static_cast<unsigned char*>(to.pointer());
  for (std::size_t k = 0; k < 4 * kPiece; ++k) source[k] = static_cast<unsigned char>(k % 251);
  for (const std::vector<std::size_t>& pieces : std::vector<std::vector<std::size_t>>{
           {}, {1}, {kPiece - 1}, {kPiece}, {kPiece, 1}, {kPiece, kPiece, kPiece / 2}}) {
    Calls expected{"a.synchronize", "b.synchronize"};
    std::size_t size = 0;
    for (const std::size_t piece : pieces) {
      size += piece;
      const std::string bytes = std::to_string(piece);
      expected.insert(expected.end(),
                      {"a.get " + bytes, "a.synchronize", "b.set " + bytes, "b.synchronize"});
    }
    std::fill(target, target + 4 * kPiece, static_cast<unsigned char>(255));
    log.calls.clear();
    ASSERT_TRUE(copy_between(a, from, b, to, Bytes{size}).is_ok());
    EXPECT_EQ(log.take(), expected) << size;
    EXPECT_TRUE(std::equal(target, target + size, source));
    EXPECT_EQ(std::count(target + size, target + 4 * kPiece, 255),
              static_cast<std::ptrdiff_t>(4 * kPiece - size));
  }
}

TEST(CopyBetween, IsOneCallWhereThereIsADirectPath) {
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b");
  const Address from = a.make_buffer(16_B).value(), to = b.make_buffer(16_B).value();
  log.calls.clear();
  EXPECT_TRUE(copy_between(a, from, b, to, 16_B).is_ok());
  EXPECT_EQ(log.take(), (Calls{"a.synchronize", "b.synchronize", "a.copy b 16", "a.synchronize"}));
  log.refuse("a.copy", Code::kDeviceLost);
  EXPECT_EQ(copy_between(a, from, b, to, 16_B).code(), Code::kDeviceLost);
}

/// A backend that says nothing of itself but what it has to.
class PlainBackend final : public sched::Backend {
 public:
  std::string_view name() const noexcept override { return "plain"; }
  sched::MemoryId memory() const noexcept override { return memory_; }
  graph::BufferType buffer_type() const noexcept override { return {}; }
  Result<Address> make_buffer(Bytes) noexcept override { return {Code::kOutOfMemory, "none"}; }
  Status release_buffer(Address) noexcept override { return {Code::kUnknownPointer, "none"}; }
  bool holds(Address, Bytes) const noexcept override { return false; }
  Status set_async(Address, std::span<const std::byte>) noexcept override { return {}; }
  Status get_async(std::span<std::byte>, Address) noexcept override { return {}; }
  using Backend::synchronize;
  Status synchronize() noexcept override { return {}; }
  bool supports(const graph::Graph&, TensorId) const noexcept override { return true; }
  Status compute(const graph::Graph&, std::span<const TensorId>,
                 std::span<const Address>) noexcept override {
    return {};
  }

 private:
  const sched::MemoryId memory_ = sched::new_memory_id();
};

TEST(BackendDefaults, PromiseNothing) {
  PlainBackend plain;
  SmallGraph g;
  const auto node = g.same(Operation::kScale, {g.input(16)});
  EXPECT_FALSE(plain.is_host_memory());
  EXPECT_FALSE(plain.prefers(g.graph, node));
  EXPECT_TRUE(plain.can_read(plain.memory()));
  EXPECT_FALSE(plain.can_read(sched::new_memory_id()));
  EXPECT_EQ(plain.adopt_buffer(&g, 16_B).code(), Code::kUnsupported);
  EXPECT_EQ(plain.make_event().code(), Code::kUnsupported);
  EXPECT_EQ(plain.copy_async({}, plain, {}, 16_B).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace ashlar
