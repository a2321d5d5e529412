#include "spec/model/graph_book.h"

namespace ashlar::spec {
namespace {

using Graph = GraphBook::Graph;

/// One launch, touch by touch.
class Replay {
 public:
  Replay(const Graph& graph, const std::vector<std::vector<ByteRange>>& bytes)
      : graph_(graph), bytes_(bytes), is_made_(graph.contents.touches.size()) {
    // In the order of the capture: a kernel that reads what nothing has written may find anything.
    std::vector<AllocationTag> written;
    for (std::size_t i = 0; i < is_made_.size(); ++i) {
      const Touch& touch = at(i);
      is_made_[i] = touch.tag <= graph.before_tag || is_among(written, touch.tag);
      if (GraphBook::is_write(touch)) written.push_back(touch.tag);
    }
  }

  /// The touch runs.
  std::optional<GraphBook::Overwritten> run(std::size_t touch) {
    std::optional<GraphBook::Overwritten> found;
    if (GraphBook::is_read(at(touch)) && is_made_[touch]) found = judge(touch);
    if (GraphBook::is_write(at(touch))) writes_.push_back(touch);
    return found;
  }
  /// The launch is over.
  std::optional<GraphBook::Overwritten> judge_outputs() const {
    for (const std::size_t write : writes_) {
      if (!is_among(graph_.outputs, at(write).tag)) continue;
      if (const auto found = judge(write)) return found;
    }
    return std::nullopt;
  }

 private:
  static bool is_among(const std::vector<AllocationTag>& tags, AllocationTag tag) {
    return std::find(tags.begin(), tags.end(), tag) != tags.end();
  }
  const Touch& at(std::size_t touch) const { return graph_.contents.touches[touch]; }
  /// A kernel touches the whole of its allocation, so the last write of any of its bytes says whose they are.
  std::optional<GraphBook::Overwritten> judge(std::size_t touch) const {
    const AllocationTag tag = at(touch).tag;
    const bool is_known = tag <= graph_.before_tag ||
                          std::any_of(writes_.begin(), writes_.end(),
                                      [&](std::size_t write) { return at(write).tag == tag; });
    if (!is_known) return std::nullopt;  // the body that writes it did not run
    for (auto write = writes_.rbegin(); write != writes_.rend(); ++write) {
      const bool shares =
          std::any_of(bytes_[*write].begin(), bytes_[*write].end(),
                      [&](const ByteRange& each) { return share_bytes(bytes_[touch], each); });
      if (!shares) continue;
      if (at(*write).tag == tag) return std::nullopt;
      return GraphBook::Overwritten{tag, at(*write).tag};
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const std::vector<std::vector<ByteRange>>& bytes_;
  std::vector<bool> is_made_;        ///< by touch: does it find what something has written?
  std::vector<std::size_t> writes_;  ///< so far
};

}  // namespace

std::optional<GraphBook::Overwritten> GraphBook::find_overwritten(
    const Graph& graph, const std::vector<std::size_t>& order,
    const std::vector<std::vector<ByteRange>>& bytes) {
  Replay replay(graph, bytes);
  for (const std::size_t touch : order) {
    if (const auto found = replay.run(touch)) return found;
  }
  return replay.judge_outputs();
}

}  // namespace ashlar::spec
