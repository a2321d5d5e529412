// The replay's lockstep: each call goes to a replay and to its model, and everything is compared
// after it.
//
// At every call: the answer, where it came from, what upstream was asked, every counter; and of the
// addresses themselves, without the model:
//   R1  a new allocation shares no byte with a live one, nor with planned memory that another
//       stream may still use;
//   R2  what is served lies within the segment, at its planned offset from an aligned base;
//   R3  what is not served went upstream, once, as asked, and has its answer; nothing else was
//       asked;
//   R4  each counter is the model's;
//   R5  (finish) all freed and the replay gone, upstream has nothing live that it did not have
//       before.
// R6, that a run equal to the recording is served, is what the suites ask of the counters.
// Thread safety: none.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ashlar/base/upstream.h>
#include <ashlar/plan/plan.h>

#include "spec/model/divergence.h"
#include "spec/replay/replay_model.h"
#include "spec/replay/upstreams.h"

namespace ashlar::spec {

/// What is driven. Its end is the replay's.
class ReplaySubject {
 public:
  virtual ~ReplaySubject() = default;
  virtual Upstream& calls() = 0;
  virtual Status rewind() = 0;
  virtual replay::ReplayCounts counts() const = 0;
  virtual Address base() const = 0;
};

class ReplayLockstep {
 public:
  struct Setting {
    Stream stream;
    replay::Recording recording;
    plan::Plan plan;  ///< valid for the recording's problem
    Bytes alignment{512};
  };
  /// Makes the replay; null is a divergence.
  using Factory = std::function<std::unique_ptr<ReplaySubject>(Upstream&, const Setting&)>;

  /// `upstream` outlives this.
  ReplayLockstep(Upstream& upstream, Setting setting, const Factory& factory);

  Result<Address> allocate(Bytes size, const Stream& stream);
  Status free(Address address);
  Status record_use(Address address, const Stream& stream);
  void rewind();
  /// Frees what is live, ends the replay, and looks at what is left.
  void finish();

  /// The segment, null while there is none.
  Address segment() const { return segment_; }
  Bytes segment_size() const { return segment_size_; }
  const replay::ReplayCounts& counts() const { return model_.counts(); }
  const Verdict& verdict() const { return verdict_; }

 private:
  using Call = LedgerUpstream::Call;

  bool is_own(const Stream& stream) const { return is_same_stream(stream, setting_.stream); }
  bool is_inside(Address address) const;
  std::optional<Bytes> offset_of(Address address) const;
  void expect_segment(const std::vector<Call>& calls);
  void expect_call(Call::Kind kind, Address address, Code code);
  void expect_no_call();
  void check_new(Address address, Bytes size);
  void check_counts();

  const Setting setting_;
  const Bytes segment_size_;
  LedgerUpstream ledger_;
  ReplayModel model_;
  std::unique_ptr<ReplaySubject> subject_;
  Address segment_;  // upstream's, whether it serves or not
  Address base_;
  std::map<Address, Bytes> live_;
  std::map<Address, Bytes> held_;
  std::map<Address, bool> is_used_;  // of what is live and planned, by another stream
  Verdict verdict_;
};

}  // namespace ashlar::spec
