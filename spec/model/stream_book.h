// StreamBook: what is known of streams: which capture, and which ended so that their last work is
// unknown.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ashlar/base/types.h>

#include "spec/model/owned_blocks.h"

namespace ashlar::spec {

class StreamBook {
  struct Capturing {
    Stream stream;
    std::uint64_t capture;  ///< or body
    std::uint64_t graph;    ///< the capture that it is in the end a part of
    StreamId parent;        ///< of a body: the stream whose capture has it
  };
  /// By identity: handles come back.
  struct Is {
    const Stream& stream;
    bool operator()(const Capturing& each) const {
      return each.stream.id == stream.id && each.stream.device == stream.device;
    }
  };

 public:
  /// A capture on any device forbids its calls to all (CUDA's global capture mode).
  bool is_capturing() const { return !capturing_.empty(); }
  bool is_capturing(const Stream& stream) const {
    return std::any_of(capturing_.begin(), capturing_.end(), Is{stream});
  }
  /// Is the use of the block only a part of graphs whose captures have ended?
  bool is_only_in_graph(const OwnedBlock& block, std::uint64_t user) const {
    return std::any_of(block.captured.begin(), block.captured.end(),
                       [this, user](const OwnedBlock::CapturedUse& use) {
                         return use.user == user && !is_under_way(use);
                       });
  }
  /// The capture that the stream is in, or the body that it captures: a number of that alone; 0 if none is
  /// announced.
  std::uint64_t capture_of(const Stream& stream) const {
    const Capturing* const at = find(stream.id);
    return at == nullptr ? 0 : at->capture;
  }
  /// The capture that ends in a graph, and that the stream is in; 0 if none is announced.
  std::uint64_t graph_of(const Stream& stream) const { return graph_of(stream.id); }
  std::uint64_t graph_of(StreamId stream) const {
    const Capturing* const at = find(stream);
    return at == nullptr ? 0 : at->graph;
  }
  /// The stream, the one whose capture has the body that it captures, the one that has that, ...
  std::vector<Stream> parents_of(const Stream& stream) const {
    std::vector<Stream> chain{stream};
    for (const Capturing* at = find(stream.id); at != nullptr && at->parent != StreamId{};) {
      at = find(at->parent);
      chain.push_back(at->stream);
    }
    return chain;
  }
  bool is_body(const Stream& stream) const {
    const Capturing* const at = find(stream.id);
    return at != nullptr && at->parent != StreamId{};
  }
  bool any_body() const {
    return std::any_of(capturing_.begin(), capturing_.end(),
                       [](const Capturing& each) { return each.parent != StreamId{}; });
  }
  /// Is a body of the stream's capture captured now?
  bool has_body(const Stream& stream) const {
    return std::any_of(capturing_.begin(), capturing_.end(), [&stream](const Capturing& each) {
      return each.parent == stream.id && each.stream.device == stream.device;
    });
  }
  /// `joined`: a stream whose capture it joins, or null.
  void begin_capture(const Stream& stream, const Stream* joined) {
    const std::uint64_t capture = joined == nullptr ? ++captures_made_ : capture_of(*joined);
    capturing_.push_back(
        {stream, capture, joined == nullptr ? capture : graph_of(*joined), StreamId{}});
  }
  /// REQUIRES: `parent` captures.
  void begin_body(const Stream& stream, const Stream& parent) {
    capturing_.push_back({stream, ++captures_made_, graph_of(parent), parent.id});
  }
  void end_capture(const Stream& stream) { std::erase_if(capturing_, Is{stream}); }

  /// The stream was destroyed without a word to the subject.
  void lose(std::uint64_t stream) {
    lost_.push_back(stream);
    any_lost_ = true;
  }
  /// A memory pool was released: no event tells of the launches of graphs that use its heap.
  void lose_pool_heap(std::uint64_t heap) { lost_.push_back(heap); }
  /// Ever.
  bool any_lost() const { return any_lost_; }
  /// Did any stream end so that no event tells of its last work?
  bool any_unknown() const { return !lost_.empty() || !unmarked_.empty(); }
  /// The stream was retired, and its last event recorded.
  void retire(std::uint64_t stream) { retired_.push_back(stream); }
  bool is_retired(std::uint64_t stream) const { return is_among(retired_, stream); }
  /// The stream was retired while no event could be recorded.
  void retire_unmarked(std::uint64_t stream) { unmarked_.push_back(stream); }
  bool is_dead(std::uint64_t stream) const {
    return is_retired(stream) || is_last_work_unknown(stream);
  }
  /// A trim found all work of every device done: of streams that ended without a last event too.
  void settle() {
    retired_.insert(retired_.end(), lost_.begin(), lost_.end());
    retired_.insert(retired_.end(), unmarked_.begin(), unmarked_.end());
    lost_.clear();
    unmarked_.clear();
  }
  /// A thread's default stream: other threads can record no event on it.
  void add_thread_bound(std::uint64_t stream) { thread_bound_.push_back(stream); }
  bool any_thread_bound() const { return !thread_bound_.empty(); }
  /// May it be that no event tells of the stream's newest work?
  bool may_be_unmarked(std::uint64_t stream) const {
    return is_last_work_unknown(stream) || is_among(thread_bound_, stream);
  }
  bool any_dead() const { return any_unknown() || !retired_.empty(); }
  /// Did the stream end so that no event tells of its last work?
  bool is_last_work_unknown(std::uint64_t stream) const {
    return is_among(lost_, stream) || is_among(unmarked_, stream);
  }

 private:
  const Capturing* find(StreamId stream) const {
    const auto at =
        std::find_if(capturing_.begin(), capturing_.end(),
                     [stream](const Capturing& each) { return each.stream.id == stream; });
    return at == capturing_.end() ? nullptr : &*at;
  }
  bool is_under_way(const OwnedBlock::CapturedUse& use) const {
    return std::any_of(capturing_.begin(), capturing_.end(), [&use](const Capturing& each) {
      return each.capture == use.capture && each.stream.id.value() == use.user;
    });
  }
  static bool is_among(const std::vector<std::uint64_t>& streams, std::uint64_t stream) {
    return std::find(streams.begin(), streams.end(), stream) != streams.end();
  }

  std::vector<Capturing> capturing_;
  std::uint64_t captures_made_ = 0;
  bool any_lost_ = false;
  std::vector<std::uint64_t> lost_;  ///< identities
  std::vector<std::uint64_t> unmarked_;
  std::vector<std::uint64_t> thread_bound_;
  std::vector<std::uint64_t> retired_;
};

}  // namespace ashlar::spec
