#include "spec/replay/replay_lockstep.h"

#include <iterator>
#include <utility>

namespace ashlar::spec {
namespace {

bool meets(const std::map<Address, Bytes>& ranges, Address address, Bytes size) {
  auto next = ranges.lower_bound(address);
  if (next != ranges.end() && next->first < address + size) return true;
  return next != ranges.begin() && std::prev(next)->first + std::prev(next)->second > address;
}

}  // namespace

ReplayLockstep::ReplayLockstep(Upstream& upstream, Setting setting, const Factory& factory)
    : setting_(std::move(setting)),
      segment_size_(setting_.plan.spaces[0].peak == 0_B
                        ? 0_B
                        : setting_.plan.spaces[0].peak + setting_.alignment),
      ledger_(upstream),
      model_(setting_.recording, setting_.plan.offsets),
      subject_(factory(ledger_, setting_)) {
  if (subject_ == nullptr) {
    verdict_.report("R3", "no replay was made of a sound recording and a valid plan");
    return;
  }
  if (segment_size_ == 0_B) {
    expect_no_call();
  } else {
    expect_segment(ledger_.take_calls());
  }
  check_counts();
}

/// Checks the calls by which the replay gives back the old segment and asks for a new one, and the
/// base that results.
void ReplayLockstep::expect_segment(const std::vector<Call>& calls) {
  std::size_t next = 0;
  if (!segment_.is_null()) {
    if (calls.empty() || calls[0].kind != Call::Kind::kFree || calls[0].address != segment_) {
      return verdict_.report("R5", "the old segment was not given back");
    }
    held_.clear();
    if (calls[0].code != Code::kOk) {
      model_.set_segment(false);
      base_ = {};
      if (calls.size() != 1 || !subject_->base().is_null())
        verdict_.report("R3", "it goes on although its segment was not given back");
      return;
    }
    segment_ = {};
    next = 1;
  }
  const bool is_asked = calls.size() == next + 1 && calls[next].kind == Call::Kind::kAllocate &&
                        calls[next].size == segment_size_ && calls[next].stream == setting_.stream;
  if (!is_asked) return verdict_.report("R3", "upstream was not asked once for the segment");
  segment_ = calls[next].address;
  base_ = subject_->base();
  model_.set_segment(!segment_.is_null());
  if (segment_.is_null()) {
    if (!base_.is_null()) verdict_.report("R2", "a base without a segment");
    return;
  }
  const bool is_within =
      base_ > segment_ && base_ + setting_.plan.spaces[0].peak <= segment_ + segment_size_;
  if (!is_within)
    verdict_.report("R2", "the plan does not lie inside the segment, after its first byte");
  if (base_.value() % setting_.alignment.count() != 0)
    verdict_.report("R2", "the base is not aligned");
}

bool ReplayLockstep::is_inside(Address address) const {
  return !segment_.is_null() && address >= segment_ && address < segment_ + segment_size_;
}

std::optional<Bytes> ReplayLockstep::offset_of(Address address) const {
  if (base_.is_null() || address < base_) return std::nullopt;
  return address - base_;
}

Result<Address> ReplayLockstep::allocate(Bytes size, const Stream& stream) {
  const Result<Address> answer = subject_->calls().allocate(size, stream);
  const Address address = answer.value_or(Address{});
  if (size == 0_B) {
    if (!answer.is_ok() || !address.is_null())
      verdict_.report("R3", "an allocation of zero bytes is not the null address");
    expect_no_call();
    check_counts();
    return answer;
  }
  const std::optional<Bytes> offset = model_.allocate(size, is_own(stream));
  if (offset) {
    expect_no_call();
    if (address.is_null() || address != base_ + *offset)
      verdict_.report("R2", "not served at its planned offset ", offset->count());
  } else {
    const std::vector<Call> calls = ledger_.take_calls();
    const bool is_as_asked = calls.size() == 1 && calls[0].kind == Call::Kind::kAllocate &&
                             calls[0].size == size && calls[0].stream == stream &&
                             calls[0].code == answer.code() && calls[0].address == address;
    if (!is_as_asked)
      verdict_.report("R3", "not served, and not passed upstream as asked: ", size.count(),
                      " bytes");
  }
  if (!address.is_null()) check_new(address, size);
  check_counts();
  return answer;
}

void ReplayLockstep::check_new(Address address, Bytes size) {
  if (meets(live_, address, size))
    verdict_.report("R1", "shares bytes with a live allocation: ", address.value());
  if (meets(held_, address, size))
    verdict_.report("R1", "shares bytes that another stream may still use: ", address.value());
  live_.insert_or_assign(address, size);
}

Status ReplayLockstep::free(Address address) {
  const Status status = subject_->calls().free(address);
  if (address.is_null()) {
    if (!status.is_ok()) verdict_.report("R3", "freeing null is not a no-op");
    expect_no_call();
  } else if (!is_inside(address)) {
    model_.passed_on();
    expect_call(Call::Kind::kFree, address, status.code());
  } else {
    const Code expected = model_.free(offset_of(address));
    if (status.code() != expected)
      verdict_.report("R3", "a free in the segment: ", code_name(status.code()), ", expected ",
                      code_name(expected));
    expect_no_call();
  }
  if (const auto found = live_.find(address); status.is_ok() && found != live_.end()) {
    if (is_used_.erase(address) != 0) held_.insert(*found);
    live_.erase(found);
  }
  check_counts();
  return status;
}

Status ReplayLockstep::record_use(Address address, const Stream& stream) {
  const Status status = subject_->calls().record_use(address, stream);
  if (!is_inside(address)) {
    model_.passed_on();
    expect_call(Call::Kind::kUse, address, status.code());
  } else {
    const std::optional<Bytes> offset = offset_of(address);
    const ReplayModel::Use use = model_.use(offset, is_own(stream));
    if (use.asks_upstream) {
      expect_call(Call::Kind::kUse, segment_, status.code());
      if (status.is_ok()) {
        model_.used(*offset);
        is_used_[address] = true;
      }
    } else {
      if (status.code() != use.code)
        verdict_.report("R3", "a use in the segment: ", code_name(status.code()));
      expect_no_call();
    }
  }
  check_counts();
  return status;
}

void ReplayLockstep::rewind() {
  const Status status = subject_->rewind();
  if (model_.rewind()) {
    expect_segment(ledger_.take_calls());
    if (status.is_ok() != !base_.is_null())
      verdict_.report("R3", "the answer of a rewind does not say whether there is a segment");
  } else {
    expect_no_call();
    if (!status.is_ok()) verdict_.report("R3", "a rewind fails without a reason: ", status.why());
  }
  check_counts();
}

void ReplayLockstep::finish() {
  if (subject_ == nullptr) return;
  while (!live_.empty() && verdict_.is_good()) {
    const auto first = *live_.begin();
    // A free that upstream refuses is tried again: a planned failure hits one call.
    if (!free(first.first).is_ok() && !free(first.first).is_ok())
      verdict_.report("R5", "a live allocation cannot be freed: ", first.first.value());
  }
  if (!verdict_.is_good()) return;
  subject_.reset();
  const std::vector<Call> calls = ledger_.take_calls();
  if (segment_.is_null()) {
    if (!calls.empty())
      verdict_.report("R5", "the end of a replay without a segment calls upstream");
    return;
  }
  const bool is_given_back =
      calls.size() == 1 && calls[0].kind == Call::Kind::kFree && calls[0].address == segment_;
  if (!is_given_back) return verdict_.report("R5", "the segment was not given back");
  if (calls[0].code == Code::kOk && !ledger_.live().empty())
    verdict_.report("R5", "something is left upstream");
}

void ReplayLockstep::expect_call(Call::Kind kind, Address address, Code code) {
  const std::vector<Call> calls = ledger_.take_calls();
  const bool is_it = calls.size() == 1 && calls[0].kind == kind && calls[0].address == address &&
                     calls[0].code == code;
  if (!is_it) verdict_.report("R3", "not passed upstream as asked: ", address.value());
}

void ReplayLockstep::expect_no_call() {
  if (!ledger_.take_calls().empty()) verdict_.report("R3", "upstream was called without need");
}

void ReplayLockstep::check_counts() {
  const replay::ReplayCounts found = subject_->counts();
  const replay::ReplayCounts& expected = model_.counts();
  if (found == expected) return;
  for (const replay::ReplayCounter& counter : replay::kReplayCounters) {
    if (found.*counter.count == expected.*counter.count) continue;
    verdict_.report("R4", counter.name, " is ", found.*counter.count, ", expected ",
                    expected.*counter.count);
  }
}

}  // namespace ashlar::spec
