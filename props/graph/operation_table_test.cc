// The tables of operations and element types, row by row, and what Graph::add() makes of a row: how many sources,
// whether the result may be a view, over which sources it may be computed.
//
// Imitates: graph/README.md's table, written down a second time from the operations' meanings.
// Does not prove: that a kernel of a backend really reads before it writes; value_oracle_test.cc runs them.
#include <ashlar/graph/operation.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "props/graph/small_graphs.h"

namespace ashlar {
namespace {

using graph::ElementType;
using graph::InPlace;
using graph::kNoTensor;
using graph::Operation;
using graph::OperationTraits;
using graph::TensorId;
using graph::TensorSpec;
using props::SmallGraph;

enum class Result { kOwn, kView, kViewOrOwn };

struct Row {
  const char* name;
  unsigned least, most;  // sources
  Result result;
  InPlace in_place;
};

// In the order of enum Operation.
const std::vector<Row> kRows{
    {"NONE", 0, 0, Result::kOwn, InPlace::kNever},  // a view too, but that is no property of it
    {"VIEW", 1, 2, Result::kView, InPlace::kNever},
    {"RESHAPE", 1, 2, Result::kView, InPlace::kNever},
    {"PERMUTE", 1, 2, Result::kView, InPlace::kNever},
    {"TRANSPOSE", 1, 2, Result::kView, InPlace::kNever},
    {"ADD", 2, 2, Result::kOwn, InPlace::kAnySource},
    {"SUB", 2, 2, Result::kOwn, InPlace::kAnySource},
    {"MUL", 2, 2, Result::kOwn, InPlace::kAnySource},
    {"DIV", 2, 2, Result::kOwn, InPlace::kAnySource},
    {"SCALE", 1, 1, Result::kOwn, InPlace::kAnySource},
    {"SQR", 1, 1, Result::kOwn, InPlace::kAnySource},
    {"SQRT", 1, 1, Result::kOwn, InPlace::kAnySource},
    {"LOG", 1, 1, Result::kOwn, InPlace::kAnySource},
    {"EXP", 1, 1, Result::kOwn, InPlace::kAnySource},
    {"NEG", 1, 1, Result::kOwn, InPlace::kAnySource},
    {"STEP", 1, 1, Result::kOwn, InPlace::kAnySource},
    {"RELU", 1, 1, Result::kOwn, InPlace::kAnySource},
    {"GELU", 1, 1, Result::kOwn, InPlace::kAnySource},
    {"SILU", 1, 1, Result::kOwn, InPlace::kAnySource},
    {"TANH", 1, 1, Result::kOwn, InPlace::kAnySource},
    {"SIGMOID", 1, 1, Result::kOwn, InPlace::kAnySource},
    // Each reads all of a row before it writes that row.
    {"NORM", 1, 1, Result::kOwn, InPlace::kFirstSource},
    {"RMS_NORM", 1, 1, Result::kOwn, InPlace::kFirstSource},
    {"SOFT_MAX", 1, 2, Result::kOwn, InPlace::kFirstSource},
    {"ROPE", 1, 2, Result::kOwn, InPlace::kFirstSource},
    {"DIAG_MASK_INF", 1, 1, Result::kOwn, InPlace::kFirstSource},
    {"MUL_MAT", 2, 2, Result::kOwn, InPlace::kNever},
    {"MUL_MAT_ID", 3, 3, Result::kOwn, InPlace::kNever},
    {"OUT_PROD", 2, 2, Result::kOwn, InPlace::kNever},
    {"FLASH_ATTN_EXT", 3, 4, Result::kOwn, InPlace::kNever},
    {"GET_ROWS", 2, 2, Result::kOwn, InPlace::kNever},
    {"CONT", 1, 1, Result::kOwn, InPlace::kNever},
    {"SWIGLU", 1, 2, Result::kOwn, InPlace::kNever},
    {"CONCAT", 2, 2, Result::kOwn, InPlace::kNever},
    {"REPEAT", 1, 1, Result::kOwn, InPlace::kNever},
    {"REPEAT_BACK", 1, 1, Result::kOwn, InPlace::kNever},
    {"PAD", 1, 1, Result::kOwn, InPlace::kNever},
    {"SUM", 1, 1, Result::kOwn, InPlace::kNever},
    {"SUM_ROWS", 1, 1, Result::kOwn, InPlace::kNever},
    {"MEAN", 1, 1, Result::kOwn, InPlace::kNever},
    {"ARGSORT", 1, 1, Result::kOwn, InPlace::kNever},
    {"IM2COL", 2, 2, Result::kOwn, InPlace::kNever},
    {"IM2COL_BACK", 2, 2, Result::kOwn, InPlace::kNever},
    {"POOL_2D", 1, 1, Result::kOwn, InPlace::kNever},
    {"POOL_2D_BACK", 2, 2, Result::kOwn, InPlace::kNever},
    {"CROSS_ENTROPY_LOSS", 2, 2, Result::kOwn, InPlace::kNever},
    {"CROSS_ENTROPY_LOSS_BACK", 3, 3, Result::kOwn, InPlace::kNever},
    {"CPY", 1, 2, Result::kViewOrOwn, InPlace::kNever},
    {"SET_ROWS", 2, 3, Result::kViewOrOwn, InPlace::kNever},
    {"OPT_STEP_ADAMW", 5, 5, Result::kViewOrOwn, InPlace::kNever},
    {"CONTROL", 0, 255, Result::kOwn, InPlace::kNever},
};

TEST(OperationTable, HasTheRowsOfTheReadme) {
  ASSERT_EQ(kRows.size(), graph::kOperations);
  for (std::size_t k = 0; k < kRows.size(); ++k) {
    const Row& row = kRows[k];
    const OperationTraits& traits = graph::traits_of(static_cast<Operation>(k));
    EXPECT_EQ(traits.name, row.name);
    EXPECT_EQ(traits.sources_min, row.least) << row.name;
    EXPECT_EQ(traits.sources_max, row.most) << row.name;
    EXPECT_EQ(traits.is_view, row.result == Result::kView) << row.name;
    EXPECT_EQ(traits.is_writer, row.result == Result::kViewOrOwn) << row.name;
    EXPECT_EQ(traits.in_place, row.in_place) << row.name;
  }
}

// Each source has the result's layout and memory of its own, so that the operation alone decides.
TEST(OperationTable, DecidesWhatAddAcceptsAndWhichSourcesMayBeWrittenOver) {
  for (std::size_t k = 0; k < kRows.size(); ++k) {
    const Row& row = kRows[k];
    const auto operation = static_cast<Operation>(k);
    for (unsigned sources = 0; sources <= 6; ++sources) {
      for (const bool is_view : {false, true}) {
        SmallGraph g;
        const TensorId root = g.leaf(64);
        TensorSpec spec;
        spec.operation = operation;
        spec.shape = {16, 1, 1, 1};
        for (unsigned s = 0; s < sources; ++s) spec.sources.push_back(g.leaf(64));
        if (is_view) spec.view_source = root;
        const bool fits = is_view ? row.result != Result::kOwn || operation == Operation::kNone
                                  : row.result != Result::kView;
        const auto added = g.graph.add(spec);
        ASSERT_EQ(added.is_ok(), fits && sources >= row.least && sources <= row.most)
            << row.name << ' ' << sources << ' ' << is_view << ' ' << added.status().why();
        if (!added.is_ok()) continue;
        const unsigned over = is_view || row.in_place == InPlace::kNever ? 0u
                              : row.in_place == InPlace::kFirstSource    ? 1u
                                                                         : (1u << sources) - 1u;
        EXPECT_EQ(g.graph[added.value()].in_place_sources, over) << row.name;
        EXPECT_EQ(g.graph[added.value()].root, is_view ? root : added.value()) << row.name;
        // A leaf is a tensor that nothing computes and that is no view.
        EXPECT_EQ(g.graph.nodes().size(), operation == Operation::kNone && !is_view ? 0u : 1u);
      }
    }
  }
}

// Which sources have to be there, and which may be left out.
TEST(OperationTable, SourcesBehindTheLeastMayBeNone) {
  for (std::size_t k = 0; k < kRows.size(); ++k) {
    const Row& row = kRows[k];
    const unsigned most = std::min(row.most, 6u);
    for (unsigned none = 0; none < most; ++none) {
      SmallGraph g;
      TensorSpec spec;
      spec.operation = static_cast<Operation>(k);
      spec.shape = {16, 1, 1, 1};
      spec.sources.assign(most, g.leaf(64));
      spec.sources[none] = kNoTensor;
      if (row.result == Result::kView) spec.view_source = TensorId{0};
      EXPECT_EQ(g.graph.add(spec).is_ok(), none >= row.least) << row.name << ' ' << none;
    }
  }
}

TEST(OperationTable, NamesAreWholeWords) {
  // What lies behind the last row is no row.
  for (const char* name : {"", " ", "ADD ", "add", "ADD1", "CONTROL1", "NON"})
    EXPECT_EQ(graph::operation_of(name), std::nullopt) << name;
  for (const char* name : {"", " ", "f3", "F32", "f32 ", "q6_K1"})
    EXPECT_EQ(graph::element_type_of(name), std::nullopt) << name;
}

// Block sizes of ggml-common.h: block_q4_0 is a half and 16 bytes; block_q6_K 128 + 64 + 16 bytes and a half.
TEST(OperationTable, ElementTypesHaveTheirSizes) {
  struct TypeRow {
    const char* name;
    std::uint64_t elements, bytes, alignment;
  };
  const std::vector<TypeRow> rows{{"f32", 1, 4, 4},        {"f16", 1, 2, 2},
                                  {"i32", 1, 4, 4},        {"i64", 1, 8, 8},
                                  {"q4_0", 32, 2 + 16, 2}, {"q6_K", 256, 128 + 64 + 16 + 2, 2}};
  ASSERT_EQ(rows.size(), graph::kElementTypes);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const graph::TypeTraits& traits = graph::traits_of(static_cast<ElementType>(k));
    EXPECT_EQ(traits.name, rows[k].name);
    EXPECT_EQ(traits.block_elements, rows[k].elements);
    EXPECT_EQ(traits.block_bytes, Bytes{rows[k].bytes});
    EXPECT_EQ(traits.alignment, Bytes{rows[k].alignment});
  }
}

}  // namespace
}  // namespace ashlar
