// The queues of recorded uses (UseQueues), against a list of lists.
//
// Imitates: polls that take queues and put them back while frees add to them, on any number of
// streams; a stream whose records cross on their way. Does not prove: what the events are asked.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <ashlar/cache/use_queues.h>

namespace ashlar::cache {
namespace {

/// Stands for a heap: the queues never look into one.
StreamHeap* heap_at(std::uint64_t number) { return reinterpret_cast<StreamHeap*>(number); }

/// The model: the queues from the front, each a list of nodes.
using Row = std::list<UseNode*>;
struct Model {
  std::list<Row> queues;

  void put(Row row) {
    for (Row& other : queues) {
      if (other.front()->user != row.front()->user) continue;
      if (other.front()->sequence < row.front()->sequence) {
        other.splice(other.end(), row);
      } else {
        other.splice(other.begin(), row);
      }
      return;
    }
    queues.push_back(std::move(row));
  }
  UseNode* oldest_of(std::size_t looks) const {
    UseNode* best = nullptr;
    for (const Row& row : queues) {
      if (looks-- == 0) break;
      if (best == nullptr || row.front()->sequence < best->sequence) best = row.front();
    }
    return best;
  }
};

bool is_row(const UseNode* head, const Row& row) {
  for (const UseNode* node : row) {
    if (head != node) return false;
    head = head->next;
  }
  return head == nullptr;
}

class Queues {
 public:
  UseNode* make(StreamHeap* stream, std::uint64_t sequence) {
    UseNode* const node = &nodes_.emplace_back();
    node->user = stream;
    node->sequence = sequence;
    return node;
  }
  void add(UseNode* node) {
    real.add(node);
    model.put({node});
  }
  /// Takes queues from both, which have to be the same.
  void take(unsigned n) {
    std::vector<UseNode*> out(n + 1);
    const unsigned count = real.take(out.data(), n);
    ASSERT_EQ(count, std::min<std::size_t>(n, model.queues.size()));
    for (unsigned i = 0; i < count; ++i) {
      ASSERT_TRUE(is_row(out[i], model.queues.front()));
      taken.push_back(std::move(model.queues.front()));
      model.queues.pop_front();
    }
  }
  void expect_same() {
    ASSERT_STREQ(real.validate([](const UseNode&) { return true; }), nullptr);
    ASSERT_EQ(real.is_empty(), model.queues.empty());
    ASSERT_EQ(real.count(), model.queues.size());
    std::uint64_t nodes = 0;
    for (const Row& row : model.queues) nodes += row.size();
    ASSERT_EQ(real.node_count(), nodes);
    ASSERT_EQ(real.oldest(), model.oldest_of(64));
  }

  UseQueues real;
  Model model;
  std::vector<Row> taken;

 private:
  std::deque<UseNode> nodes_;
};

TEST(UseQueuesTest, AnyOrderOfAddsTakesAndReturnsIsThatOfAListOfLists) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    Queues queues;
    const std::uint64_t streams = std::uint64_t{1} << (seed % 8);
    const std::uint64_t stride = std::uint64_t{256} << (seed % 5 * 8);
    std::uint64_t sequence = 100;
    for (unsigned step = 0; step < 600; ++step) {
      switch (random() % 5) {
        case 0:
        case 1: {
          // Records may cross: a later one joins first.
          sequence += 10;
          const std::uint64_t late = random() % 4 == 0 ? random() % 50 * 10 + 1 : 0;
          queues.add(queues.make(heap_at((1 + random() % streams) * stride),
                                 sequence - std::min(sequence - 1, late) + step % 7));
          break;
        }
        case 2: queues.take(static_cast<unsigned>(random() % 5)); break;
        default: {
          if (queues.taken.empty()) break;
          const std::size_t which = random() % queues.taken.size();
          Row row = std::move(queues.taken[which]);
          queues.taken.erase(queues.taken.begin() + static_cast<std::ptrdiff_t>(which));
          UseNode* head = row.front();
          for (std::uint64_t done = random() % 3; head != nullptr && done > 0; --done) {
            head = UseQueues::advance(head);
            row.pop_front();
            ASSERT_EQ(head, row.empty() ? nullptr : row.front());
          }
          if (head == nullptr) break;
          queues.real.put(head);
          queues.model.put(std::move(row));
        }
      }
      queues.expect_same();
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
    queues.take(1000);
    queues.expect_same();
  }
}

TEST(UseQueuesTest, OfManyQueuesTheOldestOfTheFirst64IsFound) {
  for (const std::uint64_t place : {0u, 1u, 62u, 63u, 64u, 65u, 99u}) {
    Queues queues;
    for (std::uint64_t i = 0; i < 100; ++i)
      queues.add(queues.make(heap_at((i + 1) * 4096), i == place ? 5 : 1000 + (i * 37) % 100));
    queues.expect_same();
    EXPECT_EQ(queues.real.oldest()->sequence == 5, place < 64);
  }
}

TEST(UseQueuesTest, TheWayToAQueueIsShortHoweverManyStreamsThereAre) {
  constexpr std::uint64_t kStreams = 4096;
  for (const std::uint64_t stride : {64u, 4096u, 1u << 21}) {
    Queues queues;
    std::vector<UseNode*> heads;
    for (std::uint64_t i = 0; i < kStreams; ++i) {
      heads.push_back(queues.make(heap_at((std::uint64_t{1} << 40) + i * stride), i + 1));
      queues.real.add(heads.back());
    }
    std::vector<std::pair<const UseNode*, unsigned>> open{{heads[0], 0}};  // the first is the root
    unsigned deepest = 0;
    std::uint64_t seen = 0;
    while (!open.empty()) {
      const auto [node, depth] = open.back();
      open.pop_back();
      if (node == nullptr) continue;
      ++seen;
      deepest = std::max(deepest, depth);
      open.emplace_back(node->queue.child[0], depth + 1);
      open.emplace_back(node->queue.child[1], depth + 1);
    }
    EXPECT_EQ(seen, kStreams);
    EXPECT_LE(deepest, 48u) << "four times log2 of the streams";
  }
}

TEST(UseQueuesTest, EveryBrokenInvariantIsReported) {
  const auto validate = [](const Queues& queues) {
    const char* const broken =
        queues.real.validate([](const UseNode& node) { return node.sequence != 0; });
    return std::string(broken == nullptr ? "" : broken);
  };
  Queues queues;
  std::vector<UseNode*> nodes;
  for (std::uint64_t i = 0; i < 6; ++i)
    queues.add(nodes.emplace_back(queues.make(heap_at((i % 2 + 1) * 4096), i + 1)));
  EXPECT_EQ(validate(queues), "");
  for (UseNode* node : nodes) {
    const std::uint64_t sequence = std::exchange(node->sequence, 0u);
    EXPECT_EQ(validate(queues), "heap(4): a queued block is not pending");
    node->sequence = sequence;
  }
  for (std::size_t i = 2; i < 6; ++i) {
    StreamHeap* const user = std::exchange(nodes[i]->user, heap_at(99 * 4096));
    EXPECT_EQ(validate(queues), "heap(5): a queue mixes streams");
    nodes[i]->user = user;
  }
  for (std::size_t head : {std::size_t{0}, std::size_t{1}}) {
    UseNode* const last = std::exchange(nodes[head]->queue.last, nodes[head]);
    EXPECT_EQ(validate(queues), "heap(5): a queue's tail is not its last");
    nodes[head]->queue.last = last;
  }
  UseNode* const next = std::exchange(nodes[0]->queue.next, nullptr);
  EXPECT_EQ(validate(queues), "heap(5): the queues are not what their counter says");
  nodes[0]->queue.next = next;
  UseNode* const child[] = {std::exchange(nodes[0]->queue.child[0], nullptr),
                            std::exchange(nodes[0]->queue.child[1], nullptr)};
  EXPECT_EQ(validate(queues), "heap(5): a queue is not in the tree");
  nodes[0]->queue.child[0] = child[0];
  nodes[0]->queue.child[1] = child[1];
  EXPECT_EQ(validate(queues), "");
}

}  // namespace
}  // namespace ashlar::cache
