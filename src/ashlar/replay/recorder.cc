#include <ashlar/replay/recorder.h>

#include <utility>

#include <ashlar/base/exceptions.h>

namespace ashlar::inline v0::replay {

Result<Address> Recorder::allocate(Bytes size, const Stream& stream) noexcept {
  const Result<Address> address = upstream_.allocate(size, stream);
  if (address.is_ok() && !address.value().is_null() && is_same_stream(stream, stream_))
    note(address.value(), size);
  return address;
}

void Recorder::note(Address address, Bytes size) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_spoilt_ || recording_.allocations.size() == plan::kBuffersMax) {
    is_spoilt_ = true;
    return;
  }
  const bool is_noted = with_host_memory([&] {
    recording_.allocations.push_back({size, recording_.events, kNeverFreed, false});
    live_.insert_or_assign(address, static_cast<std::uint32_t>(recording_.allocations.size() - 1));
    ++recording_.events;
  });
  if (!is_noted) is_spoilt_ = true;
}

Status Recorder::free(Address address) noexcept {
  std::uint64_t run = 0;
  // Taken out first: once upstream has freed the address, it may be another allocation's, not recorded here.
  Live::node_type noted;
  {
    const std::lock_guard lock(mutex_);
    run = run_;
    noted = live_.extract(address);
  }
  const Status status = upstream_.free(address);
  if (noted.empty()) return status;
  const std::lock_guard lock(mutex_);
  if (run != run_) return status;  // the run was taken in the meantime
  if (status.is_ok()) {
    recording_.allocations[noted.mapped()].freed = recording_.events++;
  } else if (!with_host_memory([&] { live_.insert(std::move(noted)); })) {
    is_spoilt_ = true;
  }
  return status;
}

Status Recorder::record_use(Address address, const Stream& stream) noexcept {
  const Status status = upstream_.record_use(address, stream);
  if (!status.is_ok() || is_same_stream(stream, stream_)) return status;
  const std::lock_guard lock(mutex_);
  if (const auto found = live_.find(address); found != live_.end()) {
    recording_.allocations[found->second].is_used_elsewhere = true;
  }
  return status;
}

bool Recorder::owns(Address address) const noexcept {
  const std::lock_guard lock(mutex_);
  return live_.find(address) != live_.end();
}

Result<Recording> Recorder::take() noexcept {
  const std::lock_guard lock(mutex_);
  Recording taken = std::exchange(recording_, {});
  live_.clear();
  ++run_;
  if (std::exchange(is_spoilt_, false))
    return {Code::kHostOutOfMemory, "no memory to record an allocation"};
  Status checked{Code::kHostOutOfMemory, "no memory to check the recording"};
  if (!with_host_memory([&] { checked = check_recording(taken); }) || !checked.is_ok())
    return checked;
  return taken;
}

}  // namespace ashlar::inline v0::replay
