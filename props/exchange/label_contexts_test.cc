// Labels as contexts: stacks of them, threads, and the frames that a snapshot shows.
//
// Imitates: a program that names its parts. Does not prove anything about who calls the recorder: history_test.cc.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include <ashlar/exchange.h>

namespace ashlar::exchange {
namespace {

std::string stack_of(const LabelContexts& labels, cache::ContextId context) {
  std::string text;
  for (const Frame& frame : labels.frames_of(context)) text += "/" + frame.name;
  return text;
}

TEST(LabelContexts, AStackOfLabelsIsAContextInnermostFirst) {
  LabelContexts labels;
  EXPECT_EQ(labels.gather(), cache::ContextId{});
  const LabelScope forward(labels, "forward");
  cache::ContextId inner;
  {
    const LabelScope layer(labels, "layer 3");
    inner = labels.gather();
    EXPECT_EQ(stack_of(labels, inner), "/layer 3/forward");
  }
  EXPECT_EQ(stack_of(labels, labels.gather()), "/forward");
  const LabelScope again(labels, "layer 3");
  EXPECT_EQ(labels.gather(), inner) << "the same stack has the same number";
}

TEST(LabelContexts, ALabelIsAFrameWithoutAFile) {
  LabelContexts labels;
  const LabelScope forward(labels, "forward");
  const std::vector<Frame> frames = labels.frames()(labels.gather());
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].filename, "");
  EXPECT_EQ(frames[0].line, 0u);
}

TEST(LabelContexts, OneLabelInTwoOthersIsTwoContexts) {
  LabelContexts labels;
  const auto context_in = [&labels](const char* outer) {
    const LabelScope around(labels, outer);
    const LabelScope layer(labels, "layer");
    return labels.gather();
  };
  const cache::ContextId forward = context_in("forward"), backward = context_in("backward");
  EXPECT_NE(forward, backward);
  EXPECT_EQ(stack_of(labels, backward), "/layer/backward");
}

TEST(LabelContexts, ThreadsAndOtherRecordersHaveStacksOfTheirOwn) {
  LabelContexts labels, others;
  const LabelScope mine(labels, "mine");
  const LabelScope theirs(others, "theirs");
  EXPECT_EQ(stack_of(labels, labels.gather()), "/mine");
  EXPECT_EQ(stack_of(others, others.gather()), "/theirs");
  cache::ContextId elsewhere{99};
  std::thread([&] { elsewhere = labels.gather(); }).join();
  EXPECT_EQ(elsewhere, cache::ContextId{});
}

TEST(LabelContexts, AnUnknownContextHasNoFrames) {
  const LabelContexts labels;
  EXPECT_TRUE(labels.frames()(cache::ContextId{0}).empty());
  EXPECT_TRUE(labels.frames()(cache::ContextId{7}).empty());
}

}  // namespace
}  // namespace ashlar::exchange
