#include "spec/gpu/rule_ops.h"

#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

std::optional<Status> RuleOps::operator()(const Op& op) {
  skipped_ = false;
  if (lag_) machine_.tick();
  for (const auto group :
       {&RuleOps::stream_op, &RuleOps::work_op, &RuleOps::event_op, &RuleOps::memory_op,
        &RuleOps::page_op, &RuleOps::capture_op, &RuleOps::machine_op}) {
    const std::optional<Status> answer = (this->*group)(op);
    if (skipped_) return std::nullopt;
    if (answer) return answer;
  }
  return std::nullopt;
}

device::Device* RuleOps::device(std::uint64_t name) {
  if (name < machine_.device_count()) return &machine_.device(static_cast<std::uint32_t>(name));
  skipped_ = true;
  return nullptr;
}

std::optional<Status> RuleOps::stream_op(const Op& op) {
  const std::uint64_t s = op.arg[0];
  const auto on = static_cast<std::uint32_t>(op.arg[1]);
  switch (op.slot) {
    case slot::kStreamCreate:
    case slot::kBlockingStream: {
      if (device(on) == nullptr) return std::nullopt;
      const bool blocking = op.slot == slot::kBlockingStream;
      return bind(
          streams_, s,
          machine_.create_stream(on, blocking ? StreamKind::kBlocking : StreamKind::kNonBlocking));
    }
    case slot::kLegacyStream:
    case slot::kThreadStream:
      if (device(on) == nullptr) return std::nullopt;
      return bind(streams_, s,
                  machine_.default_stream(
                      on, op.slot == slot::kLegacyStream ? kLegacyStream : kPerThreadStream));
    default: break;
  }
  if (op.slot != slot::kStreamDestroy && op.slot != slot::kDevIdentify &&
      op.slot != slot::kSameStream && op.slot != slot::kSameHandle) {
    return std::nullopt;
  }
  const Stream* stream = find(streams_, s);
  if (stream == nullptr) return std::nullopt;
  if (op.slot == slot::kStreamDestroy) return machine_.destroy_stream(*stream);
  if (op.slot == slot::kDevIdentify) return device_of(*stream).identify(stream->handle).status();
  const Stream* other = find(streams_, op.arg[1]);
  if (other == nullptr) return std::nullopt;
  const bool same =
      op.slot == slot::kSameStream ? stream->id == other->id : stream->handle == other->handle;
  return same ? Status::ok() : Status{Code::kNotFound, "they differ"};
}

std::optional<Status> RuleOps::launch(const Stream& stream, const Op& op) {
  switch (op.slot) {
    case slot::kDevLaunchEmpty: return machine_.launch(stream, {});
    case slot::kDevLaunch: {
      const Named* segment = find(segments_, op.arg[1]);
      if (segment == nullptr) return std::nullopt;
      const Touch touch{segment->at, segment->size, static_cast<Access>(op.arg[2] % 3 + 1)};
      return machine_.launch(stream, std::span<const Touch>(&touch, 1));
    }
    default: {
      const Named* range = find(ranges_, op.arg[1]);
      if (range == nullptr) return std::nullopt;
      const Touch touch{range->at + Bytes{op.arg[2]}, Bytes{op.arg[3]}};
      return machine_.launch(stream, std::span<const Touch>(&touch, 1));
    }
  }
}

std::optional<Status> RuleOps::work_op(const Op& op) {
  const auto small = [&](unsigned i) { return static_cast<std::uint32_t>(op.arg[i]); };
  if (op.slot == slot::kBodyOutcome) return machine_.body_outcome();
  if (op.slot == slot::kRaise) return machine_.raise(small(0));
  if (op.slot == slot::kMemHost) return machine_.host_write_value(small(0), op.arg[1]);
  const bool mine = (op.slot >= slot::kDevLaunch && op.slot <= slot::kHostFnCall) ||
                    (op.slot >= slot::kMemWrite && op.slot <= slot::kMemWait) ||
                    op.slot == slot::kCollective || op.slot == slot::kStep ||
                    op.slot == slot::kExpectPending;
  if (!mine) return std::nullopt;
  const Stream* stream = find(streams_, op.arg[0]);
  if (stream == nullptr) return std::nullopt;
  switch (op.slot) {
    case slot::kDevLaunch:
    case slot::kDevLaunchAt:
    case slot::kDevLaunchEmpty: return launch(*stream, op);
    case slot::kDevLaunchFaulty: return machine_.launch_faulty(*stream);
    case slot::kHostFn: return machine_.host_function(*stream, small(1));
    case slot::kHostFnCall: return machine_.host_function_calling(*stream, small(1));
    case slot::kMemWrite: return machine_.write_value(*stream, small(1), op.arg[2]);
    case slot::kMemWait: return machine_.wait_value(*stream, small(1), op.arg[2]);
    case slot::kCollective: return machine_.collective(*stream, small(1), small(2));
    case slot::kStep: return machine_.step(*stream, op.arg[1]);
    case slot::kExpectPending: {
      const Result<std::uint64_t> pending = machine_.pending(*stream);
      if (!pending.is_ok() || pending.value() == op.arg[1]) return pending.status();
      return Status{Code::kNotFound, "another number of entries is pending"};
    }
    default: return std::nullopt;
  }
}

std::optional<Status> RuleOps::event_op(const Op& op) {
  switch (op.slot) {
    case slot::kDevEvent: {
      device::Device* on = device(op.arg[1]);
      if (on == nullptr) return std::nullopt;
      const Result<EventHandle> made = on->event_create();
      if (made.is_ok())
        events_[op.arg[0]] = NamedEvent{made.value(), static_cast<std::uint32_t>(op.arg[1])};
      return made.status();
    }
    case slot::kRecord: {
      const Stream* stream = find(streams_, op.arg[1]);
      if (stream == nullptr) return std::nullopt;
      if (events_.count(op.arg[0]) == 0) {
        const Result<EventHandle> made = device_of(*stream).event_create();
        if (!made.is_ok()) return made.status();
        events_[op.arg[0]] = NamedEvent{made.value(), index_of(*stream)};
      }
      return device_of(*stream).event_record(events_[op.arg[0]].handle, stream->handle);
    }
    case slot::kWait: {
      const Stream* stream = find(streams_, op.arg[0]);
      const NamedEvent* event = find(events_, op.arg[1]);
      if (stream == nullptr || event == nullptr) return std::nullopt;
      return device_of(*stream).stream_wait(stream->handle, event->handle);
    }
    case slot::kDevEventDestroy:
    case slot::kDevQuery:
    case slot::kSync:
    case slot::kDevSyncFor: break;
    default: return std::nullopt;
  }
  const NamedEvent* event = find(events_, op.arg[0]);
  if (event == nullptr) return std::nullopt;
  device::Device& on = machine_.device(event->device);
  if (op.slot == slot::kDevEventDestroy) return on.event_destroy(event->handle);
  if (op.slot == slot::kDevQuery) return on.event_query(event->handle);
  return on.event_synchronize(event->handle, op.slot == slot::kSync
                                                 ? device::kWaitForever
                                                 : static_cast<std::uint32_t>(op.arg[1]));
}

std::optional<Status> RuleOps::memory_op(const Op& op) {
  switch (op.slot) {
    case slot::kDevMalloc:
    case slot::kDevPinned: {
      device::Device* on = device(op.arg[1]);
      if (on == nullptr) return std::nullopt;
      const Bytes size{op.arg[2]};
      const Result<Address> made =
          op.slot == slot::kDevMalloc ? on->segment_alloc(size) : on->pinned_alloc(size);
      if (made.is_ok())
        segments_[op.arg[0]] = Named{made.value(), size, static_cast<std::uint32_t>(op.arg[1])};
      return made.status();
    }
    case slot::kExpectFree: {
      device::Device* on = device(op.arg[0]);
      if (on == nullptr) return std::nullopt;
      const Result<device::MemoryInfo> info = on->memory_info();
      if (!info.is_ok() || info.value().free == Bytes{op.arg[1]}) return info.status();
      return Status{Code::kNotFound, "another number of bytes is free"};
    }
    case slot::kDevFree:
    case slot::kDevFreeInterior:
    case slot::kDevFreeOn:
    case slot::kDevPinnedFree: break;
    default: return std::nullopt;
  }
  const Named* segment = find(segments_, op.arg[0]);
  if (segment == nullptr) return std::nullopt;
  device::Device* on = device(op.slot == slot::kDevFreeOn ? op.arg[1] : segment->device);
  if (on == nullptr) return std::nullopt;
  if (op.slot == slot::kDevPinnedFree) return on->pinned_free(segment->at);
  return on->segment_free(op.slot == slot::kDevFreeInterior ? segment->at + Bytes{op.arg[1]}
                                                            : segment->at);
}

std::optional<Status> RuleOps::page_op(const Op& op) {
  switch (op.slot) {
    case slot::kDevReserve: {
      device::Device* on = device(op.arg[1]);
      if (on == nullptr) return std::nullopt;
      const Result<Address> made = on->address_reserve(Bytes{op.arg[2]}, Bytes{0});
      if (made.is_ok()) {
        ranges_[op.arg[0]] =
            Named{made.value(), Bytes{op.arg[2]}, static_cast<std::uint32_t>(op.arg[1])};
      }
      return made.status();
    }
    case slot::kDevCreate: {
      device::Device* on = device(op.arg[1]);
      if (on == nullptr) return std::nullopt;
      const Result<PageHandle> made = on->page_create(Bytes{op.arg[2]});
      if (made.is_ok())
        pages_[op.arg[0]] = NamedPage{made.value(), static_cast<std::uint32_t>(op.arg[1])};
      return made.status();
    }
    case slot::kDevPageRelease: {
      const NamedPage* page = find(pages_, op.arg[0]);
      if (page == nullptr) return std::nullopt;
      return machine_.device(page->device).page_release(page->handle);
    }
    case slot::kDevRelease:
    case slot::kDevMap:
    case slot::kDevAccess:
    case slot::kDevUnmap: break;
    default: return std::nullopt;
  }
  const Named* range = find(ranges_, op.arg[0]);
  if (range == nullptr) return std::nullopt;
  device::Device& on = machine_.device(range->device);
  if (op.slot == slot::kDevRelease) return on.address_release(range->at, Bytes{op.arg[1]});
  const Address at = range->at + Bytes{op.arg[1]};
  const Bytes size{op.arg[2]};
  if (op.slot == slot::kDevAccess) return on.page_access(at, size);
  if (op.slot == slot::kDevUnmap) return on.page_unmap(at, size);
  const NamedPage* page = find(pages_, op.arg[3]);
  if (page == nullptr) return std::nullopt;
  return on.page_map(at, size, page->handle);
}

std::optional<Status> RuleOps::begin_body(const Stream& stream, std::uint64_t parent) {
  const Stream* const outer = find(streams_, parent);
  if (outer == nullptr) return std::nullopt;
  const Status begun = machine_.begin_body(stream, *outer);
  if (begun.is_ok()) bodies_.push_back(stream.id);
  return begun;
}

std::optional<Status> RuleOps::capture_op(const Op& op) {
  if (op.slot == slot::kCaptureThread) {
    return machine_.device(0)
        .exchange_capture_mode(static_cast<device::CaptureMode>(op.arg[0] % 3))
        .status();
  }
  if (op.slot == slot::kGraphDestroy) return machine_.destroy_graph(graph(op.arg[0]));
  if (op.slot != slot::kCaptureBegin && op.slot != slot::kCaptureEnd &&
      op.slot != slot::kCaptureState && op.slot != slot::kGraphLaunch &&
      op.slot != slot::kGraphLaunchRuns && op.slot != slot::kCaptureBody) {
    return std::nullopt;
  }
  const Stream* stream = find(streams_, op.arg[0]);
  if (stream == nullptr) return std::nullopt;
  if (op.slot == slot::kCaptureBody) return begin_body(*stream, op.arg[1]);
  if (op.slot == slot::kCaptureBegin) {
    return machine_.begin_capture(*stream, static_cast<device::CaptureMode>(op.arg[1] % 3));
  }
  if (op.slot == slot::kGraphLaunch)
    return machine_.launch_graph(*stream, graph(op.arg[1]), BodyRuns::once());
  if (op.slot == slot::kGraphLaunchRuns)
    return machine_.launch_graph(*stream, graph(op.arg[1]), BodyRuns(op.arg[2]));
  if (op.slot == slot::kCaptureEnd && std::erase(bodies_, stream->id) != 0)
    return machine_.end_body(*stream);
  if (op.slot == slot::kCaptureEnd) {
    const Result<GraphId> ended = machine_.end_capture(*stream);
    if (ended.is_ok()) graphs_.push_back(ended.value());
    return ended.status();
  }
  const Result<device::CaptureStatus> state = device_of(*stream).capture_status(stream->handle);
  if (!state.is_ok() || state.value() == device::CaptureStatus::kNone) return state.status();
  if (state.value() == device::CaptureStatus::kActive)
    return Status{Code::kBusy, "the stream captures"};
  return Status{Code::kCaptureInvalidated, "the capture was invalidated"};
}

std::optional<Status> RuleOps::machine_op(const Op& op) {
  const auto on = static_cast<std::uint32_t>(op.arg[0]);
  switch (op.slot) {
    case slot::kThread: return machine_.act_as_thread(on);
    case slot::kDrainAll: return machine_.drain_all();
    case slot::kLag: lag_ = true; return machine_.set_lag(op.arg[0]);
    case slot::kFail:
      return machine_.fail(static_cast<device::CallKind>(op.arg[0] % device::kCallKinds), op.arg[1],
                           op.arg[2] == 0 ? FailMode::kOnce : FailMode::kOn);
    case slot::kHeal: return machine_.heal();
    case slot::kTeardown: return machine_.tear_down();
    case slot::kDrain:
    case slot::kDevSynchronize:
    case slot::kCapacity:
    case slot::kLose: break;
    default: return std::nullopt;
  }
  device::Device* named = device(op.arg[0]);
  if (named == nullptr) return std::nullopt;
  if (op.slot == slot::kDrain) return machine_.drain(on);
  if (op.slot == slot::kDevSynchronize) return named->synchronize();
  return op.slot == slot::kLose ? machine_.lose(on) : machine_.set_capacity(on, Bytes{op.arg[1]});
}

}  // namespace ashlar::spec
