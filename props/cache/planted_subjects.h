// The broken subjects, and the one run, that several files of the checkers' tests share.
//
// Purpose: a bug that several clauses have to report is written once. A subject that one file needs
// stands there, beside its test.
// Thread safety: none.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "props/cache/planted_run.h"

namespace ashlar::props {

/// Breaks nothing.
struct Sound : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
};

/// Says that it works by the default configuration in segments, whatever its own is.
struct ClaimsDefaults : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  cache::Config config() const override { return config_in_segments(); }
};

/// Changes the account of each out-of-memory, for the caller and for observers alike.
template <void (*kChange)(cache::OutOfMemory*)>
struct ChangesTheAccount : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  void add_out_of_memory_observer(
      std::function<void(const cache::OutOfMemory&)> observer) override {
    inner_->add_out_of_memory_observer([observer](const cache::OutOfMemory& account) {
      cache::OutOfMemory changed = account;
      kChange(&changed);
      observer(changed);
    });
  }
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    if (got.code() == Code::kOutOfMemory) kChange(account);
    return got;
  }
};

/// A base for subjects that run out of memory without a reason: the observers are told and the
/// statistics count it, so that nothing but the reason is missing.
class RunsOutOfMemory : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  void add_out_of_memory_observer(
      std::function<void(const cache::OutOfMemory&)> observer) override {
    observers_.push_back(observer);
    inner_->add_out_of_memory_observer(std::move(observer));
  }
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->ooms += ooms_;
    out->alloc_retries += ooms_;
    return got;
  }

 protected:
  Status run_out(const cache::OutOfMemory& account) {
    ++ooms_;
    for (const auto& observer : observers_) observer(account);
    return {Code::kOutOfMemory, "planted"};
  }

 private:
  std::uint64_t ooms_ = 0;
  std::vector<std::function<void(const cache::OutOfMemory&)>> observers_;
};

/// Answers every question about an event with "not done".
class DeafDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  bool is_deaf = true;
  Status event_query(EventHandle event) noexcept override {
    const Status answer = ForwardingDevice::event_query(event);
    return is_deaf ? Status{Code::kNotReady, "planted"} : answer;
  }
};

inline constexpr char kDefaultSettings[] = "";
inline constexpr char kMayNotWait[] = "wait_ms:0";

/// The real allocator in segments, configured by `kConf`, over deaf devices. It never knows that memory may go
/// back, or to another stream: to the judge, an allocator that never asks.
template <const char* kConf>
class NeverKnowsDone : public ForwardingSubject {
 public:
  NeverKnowsDone(std::shared_ptr<spec::CacheSubject> inner,
                 std::span<device::Device* const> devices)
      : ForwardingSubject(std::move(inner), devices) {
    std::vector<device::Device*> deaf;
    for (device::Device* device : devices) {
      deaf_.push_back(std::make_unique<DeafDevice>(*device));
      deaf.push_back(deaf_.back().get());
    }
    inner_ = caching_allocator_factory()(deaf, in_segments(kConf)).value();
  }
  ~NeverKnowsDone() override { inner_.reset(); }  // before the devices that it calls

 protected:
  std::vector<std::unique_ptr<DeafDevice>> deaf_;
};

/// A base for subjects that make device calls of their own; the statistics count them.
class TalksToTheDevice : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;

 protected:
  /// Makes `calls` calls of one kind: a question about the event of make_event(), a wait of at most
  /// 1 ms, or a question about the device's memory.
  void talk(device::CallKind kind, unsigned calls) {
    for (unsigned i = 0; i < calls; ++i) {
      switch (kind) {
        case device::CallKind::kEventQuery:
          static_cast<void>(device_for(kind).event_query(event_));
          break;
        case device::CallKind::kSynchronize:
          static_cast<void>(device_for(kind).synchronize_for(1));
          break;
        case device::CallKind::kMemoryInfo:
          static_cast<void>(device_for(kind).memory_info());
          break;
        default: ADD_FAILURE() << "no planted subject makes such calls";
      }
    }
  }
  void make_event() { event_ = device_for(device::CallKind::kEventCreate).event_create().value(); }

 private:
  EventHandle event_;
};

/// Makes `kCalls` device calls of a kind in each allocation but the first.
template <device::CallKind kKind, unsigned kCalls>
class TalksOnEveryAllocation : public TalksToTheDevice {
 public:
  using TalksToTheDevice::TalksToTheDevice;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    if (has_begun_) talk(kKind, kCalls);
    else if (kKind == device::CallKind::kEventQuery) make_event();
    has_begun_ = true;
    return inner_->allocate(size, stream, account);
  }

 private:
  bool has_begun_ = false;
};

/// The clause that breaks where a call may wait for 3 ms and the memory that it needs is busy for
/// 20 ms: the device does one kernel a millisecond. Without the bug the same ops must pass.
template <class Broken>
std::string clause_of_a_long_wait() {
  std::string ops = "conf wait_ms:3\ndevice d0 64MiB\nstream s1 d0\nalloc p1 40MiB s0\n";
  for (int i = 0; i < 20; ++i) ops += "kernel s1 p1 rw\n";
  ops += "free-on p1 s1\nalloc p2 50MiB s0\n";
  spec::CacheLockstep::Options slow = broken<Broken>();
  slow.machine.entries_per_ms = 1;
  const std::string found = failing_clause(slow, ops);
  slow.factory = caching_allocator_factory();
  EXPECT_EQ(failing_clause(slow, ops), "") << "the real allocator fails:\n" << ops;
  return found;
}

}  // namespace ashlar::props
