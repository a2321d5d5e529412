// PyTorch's snapshot as a pickle and as JSON, by the tool's readers: the same document, in which the pickle shares what is repeated.
//
// Imitates: records of many shapes, with call stacks, without, and with some that nobody knows. Does not prove: that Python and the
// viewer read the pickle (read_back_test.sh).
#include <limits>

#include <gtest/gtest.h>

#include "props/exchange/history_maker.h"
#include "props/exchange/small_records.h"
#include "src/tool/json_document.h"
#include "src/tool/pickle_reader.h"

namespace ashlar::props {
namespace {

using cache::ContextId;

std::string snapshot_of(const cache::HistorySnapshot& record,
                        exchange::TorchSnapshotOptions options, exchange::TorchFormat format) {
  options.format = format;
  return text_of([&](const exchange::ByteSink& sink) {
    return exchange::write_torch_snapshot({{DeviceId{1}, &record}}, options, sink);
  });
}
/// What a document holds: of its numbers the bits, of tuples and lists the same.
std::string shown(const tool::ValueArena& values, tool::ValueId id) {
  const tool::Value& value = values[id];
  if (value.kind == tool::ValueKind::kText) return "'" + std::string(values.text(id)) + "'";
  const bool is_dict = value.kind == tool::ValueKind::kDict;
  if (!is_dict && !is_list(value))
    return std::to_string(static_cast<int>(value.kind)) + ":" + std::to_string(value.bits);
  std::string text(1, is_dict ? '{' : '[');
  for (const tool::ValueId item : values.items(id)) text += shown(values, item) + ",";
  return text + (is_dict ? '}' : ']');
}
/// Compares the two forms. How many lists the pickle has: one that is shared counts once.
std::uint64_t lists_of(const cache::HistorySnapshot& record,
                       const exchange::TorchSnapshotOptions& options) {
  const std::string json = snapshot_of(record, options, exchange::TorchFormat::kJson);
  const std::string pickle = snapshot_of(record, options, exchange::TorchFormat::kPickle);
  std::string error;
  const auto of_json = tool::parse_json_document(json, "json", &error);
  const auto of_pickle = tool::parse_pickle(pickle, "pickle", &error);
  if (!of_json || !of_pickle) {
    ADD_FAILURE() << error;
    return 0;
  }
  EXPECT_EQ(shown(of_pickle->arena, of_pickle->root), shown(of_json->arena, of_json->root));
  std::uint64_t lists = 0;
  for (std::uint32_t id = 0; id < of_pickle->arena.size(); ++id)
    lists += of_pickle->arena[tool::ValueId{id}].kind == tool::ValueKind::kList;
  return lists;
}
/// Every third context has no frames.
std::vector<exchange::Frame> frames_of(ContextId context) {
  if (context.value() % 3 == 0) return {};
  return {{"f" + std::to_string(context.value()), "a.cc", 1}, {"main", "a\xff.cc", 70'000}};
}

TEST(TwoForms, AreTheSameDocument) {
  exchange::TorchSnapshotOptions options;
  options.frames = frames_of;
  options.settings = {{"real", 0.1},
                      {"below", std::int64_t{-1}},
                      {"far below", std::int64_t{-0x80000001ll}},
                      {"none", std::numeric_limits<double>::infinity()},
                      {"text", std::string("a\"\n\xff")},
                      {"yes", true}};
  options.annotations = {{DeviceId{0}, 5, {{"name", std::string("a\"\n\xff")}, {"n", false}}}};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    HistoryMaker maker(seed, Address{std::uint64_t{1} << (12 + 2 * seed)});
    maker.run(10 * seed);
    lists_of(maker.record(), options);
    lists_of(maker.record(5 * seed), options);
  }
}

TEST(TwoForms, ThePickleHasEachCallStackOnce) {
  cache::HistorySnapshot record = small_record();
  exchange::TorchSnapshotOptions options;
  options.frames = frames_of;
  const auto with = [&](std::vector<std::uint64_t> contexts) {
    for (std::size_t i = 0; i < 4; ++i) record.block_contexts[i] = ContextId{contexts[i]};
    for (std::size_t i = 0; i < 2; ++i)
      record.history.events[i].context = ContextId{contexts[4 + i]};
    return lists_of(record, options);
  };
  // Of segments, blocks, traces, one for each device, annotations; and that of no frames.
  const std::uint64_t least = 7;
  EXPECT_EQ(with({0, 0, 0, 0, 0, 0}), least);
  EXPECT_EQ(with({3, 6, 0, 0, 9, 0}), least) << "whose frames are not known";
  EXPECT_EQ(with({1, 1, 1, 0, 1, 1}), least + 1);
  EXPECT_EQ(with({1, 2, 1, 0, 2, 1}), least + 2);
  EXPECT_EQ(with({1, 2, 4, 0, 5, 7}), least + 4) << "an event's stack is its block's";
}

}  // namespace
}  // namespace ashlar::props
