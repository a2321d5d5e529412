// ReplayLockstep: each call goes to a replay and to its model, and everything is compared after it.
//
// Compared at every call: the answer, whether it came from the segment or from upstream, the calls
// to upstream, every counter. The rules:
//   R1  a new allocation shares no byte with a live one, nor with planned memory that another
//       stream may still use;
//   R2  a served allocation lies within the segment, at its planned offset from an aligned base;
//   R3  a request that is not served goes upstream once, as asked, and returns upstream's answer;
//       no other call goes upstream;
//   R4  each counter equals the model's;
//   R5  (finish) after everything is freed and the replay is destroyed, upstream has nothing live
//       that it did not have before.
// R1 and R2 are judged by the addresses themselves, without the model. R6, that a run equal to the
// recording is served, is checked by the suites, which read the counters.
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

/// The replay that is driven. Its destructor ends the replay.
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
  /// Frees everything live, ends the replay, and checks what is left upstream (R5).
  void finish();

  /// The segment; null while there is none.
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
  Address segment_;  // allocated from upstream, whether it serves or not
  Address base_;
  std::map<Address, Bytes> live_;
  std::map<Address, Bytes> held_;
  std::map<Address, bool> is_used_;  // live planned allocations that another stream uses
  Verdict verdict_;
};

}  // namespace ashlar::spec
