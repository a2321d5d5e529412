// The protocol of judging, and what each kind of call may answer: see cache_model.h.
#include "spec/model/cache_model.h"

#include <algorithm>

namespace ashlar::spec {

namespace {

/// A request over this is refused (row DEV-20).
constexpr std::uint64_t kRequestMax = std::uint64_t{1} << 60;
/// What the device promises of every segment's base; a granule over this cannot be kept.
constexpr std::uint64_t kAlignmentMax = 512;

/// A number as a part of a report.
struct Hex {
  std::uint64_t n;
};
Hex hex(std::uint64_t n) { return {n}; }
void append(std::string* text, Hex part) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string digits;
  do digits.insert(digits.begin(), kDigits[part.n % 16]);
  while ((part.n /= 16) != 0);
  *text += "0x" + digits;
}

}  // namespace

CacheModel::CacheModel(CacheSubject& subject, std::vector<DeviceWitness*> witnesses,
                       Options options)
    : subject_(subject),
      rules_(subject.config()),
      devices_(witnesses.size()),
      walk_every_(std::max(options.walk_every, 1u)),
      validate_every_(std::max(options.validate_every, 1u)),
      stats_every_(std::max(options.stats_every, 1u)) {
  for (std::size_t i = 0; i < witnesses.size(); ++i) {
    devices_[i].id = DeviceId{static_cast<std::int32_t>(i)};
    devices_[i].witness = witnesses[i];
    devices_[i].is_fresh = true;  // nothing is held yet
  }
}

// The protocol.

void CacheModel::begin(DeviceId device) {
  if (callbacks_ != 0) return;  // inside another call, which is judged as a whole
  callback_ran_ = false;
  current_ = device;
  for (Device& d : devices_) {
    if (d.calls_in_all_before != d.witness->calls_in_all()) {  // most calls make none
      d.calls_in_all_before = d.witness->calls_in_all();
      d.calls_before = d.witness->calls();
    }
    if (d.failures_in_all_before != d.witness->failures_in_all()) {
      d.failures_in_all_before = d.witness->failures_in_all();
      d.failures_before = d.witness->failures();
    }
    d.timeouts_before = d.witness->timeouts();
    d.reserved_before = d.witness->segment_bytes();
    d.was_dead = end_of(d.id) != Code::kOk;
  }
}

std::uint64_t CacheModel::calls_made(const Device& device) const {
  return device.witness->calls_in_all() - device.calls_in_all_before;
}

bool CacheModel::any_failure(const Device& device) const {
  return device.witness->failures_in_all() != device.failures_in_all_before;
}

bool CacheModel::any_failure_but_growth() const {
  for (const Device& device : devices_) {
    if (!any_failure(device)) continue;
    for (unsigned kind = 0; kind < device::kCallKinds; ++kind) {
      if (kind != static_cast<unsigned>(device::CallKind::kSegmentAlloc) &&
          failed(device, static_cast<device::CallKind>(kind)) != 0)
        return true;
    }
  }
  return false;
}

bool CacheModel::is_dead_answer(Device& device, Code code) {
  const Code sticky = end_of(device.id);
  if (device.was_dead && code != sticky) {
    report("C26", "the device is gone, but the call answered ", code_name(code));
  }
  if (sticky != Code::kOk && code == sticky) return true;
  // A use on another device, gone by now, may be answered with that device's error.
  return std::any_of(devices_.begin(), devices_.end(), [code](const Device& d) {
    return d.witness->sticky() != Code::kOk && d.witness->sticky() == code;
  });
}

void CacheModel::end(Device& device, const Call& call) {
  if (callbacks_ != 0) return;
  ++calls_judged_;
  ++checks_;
  for (const Device& each : devices_) {
    if (each.was_dead && calls_made(each) != 0)
      report("C26", "a device call was made after the device was gone");
  }
  const bool is_shortage = call.allocates && call.fails;
  const bool had_view = device.is_fresh;
  device.is_fresh = false;
  note_added(device, call);
  if (walk_is_due() || is_shortage) walk(device);
  note_ladder(device, call, had_view);
  if (call.fails && !call.allocates && !call.is_broken_off) {
    if (calls_made(device) != 0) report("C13", "a call that was refused made device calls");
    if (had_view && device.is_fresh && device.completed != 0) {
      report("C13", "a call that was refused completed pending blocks");
    }
  }
  const std::uint64_t held = device.witness->segment_bytes();
  if (!device.has_limit && rules_.config().memory_fraction < 1 && device.witness->total() != 0) {
    device.has_limit = true;
    device.limit = static_cast<std::uint64_t>(rules_.config().memory_fraction *
                                              static_cast<double>(device.witness->total()));
  }
  if (delta(device, device::CallKind::kSegmentAlloc) >
          failed(device, device::CallKind::kSegmentAlloc) &&
      held > device.limit) {
    report("DEV-12", "reserved ", held, " bytes, over the limit ", device.limit);
  }
  if (stats_are_due()) judge_stats(device);
}

// Owned blocks.

bool CacheModel::find_owned(std::uint64_t address, Device** device, Blocks::iterator* block) {
  bool is_found = false;
  for (Device& d : devices_) {
    const auto found = d.owned.find(address);
    if (found == d.owned.end()) continue;
    *block = found;
    *device = &d;
    is_found = true;
    // A pending one may be complete and its segment another device's by now, which only that
    // device's next walk shows.
    if (!found->second.is_pending) break;
  }
  return is_found;
}

OwnedBlock& CacheModel::insert_owned(Device& device, std::uint64_t address) {
  device.touched.push_back(address);
  return device.owned.insert(address);
}

CacheModel::Blocks::iterator CacheModel::complete(Device& device, Blocks::iterator block) {
  for (std::uint64_t* const bytes : {&device.completed_bytes, &device.added.completed_bytes})
    *bytes += block->second.size;
  ++device.completed;
  ++device.added.completed;
  return device.owned.erase(block);
}

void CacheModel::start_pending(Device& device, OwnedBlock& block) {
  block.is_pending = true;
  for (const unsigned pool : {0u, stat_pool(block.pool)}) {
    device.live[pool] -= 1;
    device.live_bytes[pool] -= block.size;
  }
}

const OwnedBlock* CacheModel::find_live(DeviceId device, std::uint64_t address) const {
  const Blocks& owned = devices_[index(device)].owned;
  const auto found = owned.find(address);
  return found == owned.end() || found->second.is_pending ? nullptr : &found->second;
}

bool CacheModel::is_live_anywhere(std::uint64_t address) const {
  for (const Device& d : devices_) {
    if (find_live(d.id, address) != nullptr) return true;
  }
  return false;
}

Code CacheModel::end_of(DeviceId device) const {
  const Code own = devices_[index(device)].witness->sticky();
  if (own != Code::kOk) return own;
  const bool is_unloaded = std::any_of(devices_.begin(), devices_.end(), [](const Device& d) {
    return d.witness->sticky() == Code::kTornDown;
  });
  return is_unloaded ? Code::kTornDown : Code::kOk;
}

bool CacheModel::is_capturing() const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [](const Device& d) { return !d.capturing.empty(); });
}

std::uint64_t CacheModel::live_count() const {
  std::uint64_t count = 0;
  for (const Device& d : devices_) count += d.live[0];
  return count;
}

void CacheModel::live_addresses(DeviceId device, std::vector<std::uint64_t>* addresses) const {
  addresses->clear();
  for (const auto& [address, block] : devices_[index(device)].owned) {
    if (!block.is_pending) addresses->push_back(address);
  }
}

// Allocate.

/// info(), or, where the device went during the call and info() says so, the same from the
/// snapshot.
Result<CacheInfo> CacheModel::info_of(Device& device, std::uint64_t address) {
  const Result<CacheInfo> got = subject_.info(Address{address});
  if (got.is_ok() || device.was_dead || got.code() != end_of(device.id)) return got;
  if (!subject_.snapshot(device.id, &device.next).is_ok()) return got;
  for (const cache::SnapshotSegment& segment : device.next.segments) {
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const cache::SnapshotBlock& block = device.next.blocks[segment.block_first + i];
      if (block.address.value() != address || block.state != BlockState::kLive) continue;
      return CacheInfo{block.size, block.requested, segment.base, segment.size, block.stream};
    }
  }
  return got;
}

/// C1, C2, rows DEV-1 and DEV-4, C10: follows the subject to the address it chose.
void CacheModel::follow(Device& device, std::uint64_t tag, std::uint64_t size, const Stream& stream,
                        std::uint64_t address, Call* call) {
  const Result<CacheInfo> got = info_of(device, address);
  if (!got.is_ok())
    return report("C1", "info() does not know the address just given out: ", hex(address));
  const CacheInfo& info = got.value();
  const std::uint64_t usable = info.size.count();
  const std::uint64_t round = rules_.rounded(size);
  if (info.size.count() < size || info.requested.count() != size)
    report("C1", "the block is smaller than asked, or misremembers it");
  if (address % std::min(rules_.granule(), kAlignmentMax) != 0)
    report("C1", hex(address), " is not aligned");
  if (info.stream != stream.id) report("C1", "info() names another stream");
  const std::vector<DeviceWitness::Held>& held = device.witness->segments();
  auto segment =
      std::upper_bound(held.begin(), held.end(), address,
                       [](std::uint64_t a, const DeviceWitness::Held& h) { return a < h.base; });
  const bool is_inside = segment != held.begin() &&
                         (--segment, address - segment->base <= segment->size) &&
                         usable <= segment->size - (address - segment->base);
  if (!is_inside)
    return report("C1", hex(address), " is not wholly inside a segment held from the device");
  if (info.segment.value() != segment->base || info.segment_size.count() != segment->size) {
    report("C1", "info() misstates the segment of ", hex(address));
  }
  auto other = device.owned.lower_bound(address);
  if (other != device.owned.begin() && (--other, other->first + other->second.size <= address))
    ++other;
  while (other != device.owned.end() && other.address() < address + usable) {
    if (!other->second.is_pending)
      return report("C2", hex(address), " overlaps the live block at ", hex(other->first));
    device.touched.push_back(other->first);
    other = complete(device, other);  // it must have completed: whether rightly, the detector knows
  }
  for (const std::uint64_t part : {segment->ordinal, address - segment->base})
    address_hash_.add(part);
  const std::uint64_t spare = usable - std::min(round, usable);
  if (usable < round) report("DEV-1", "the block is smaller than the rounded request ", round);
  if (rules_.is_to_split(spare, round)) {
    report("DEV-4", "a block with ", spare, " bytes to spare was not split");
  }
  OwnedBlock& block = insert_owned(device, address);
  block.tag = tag;
  block.size = usable;
  block.requested = size;
  block.stream = stream.id.value();
  block.pool = rules_.pool_of(round);
  *call = {.allocates = true,
           .fails = false,
           .is_hit = call->is_hit,
           .takes_own_fit = call->takes_own_fit,
           .stream = stream.id.value(),
           .address = address,
           .pool = stat_pool(block.pool),
           .size = usable,
           .requested = size};
  for (const unsigned pool : {0u, call->pool}) {
    device.live[pool] += 1;
    device.live_bytes[pool] += usable;
    device.raised[number_of(Figure::kAllocations)][pool] += 1;
    device.raised[number_of(Figure::kActive)][pool] += 1;
    device.raised[number_of(Figure::kAllocatedBytes)][pool] += usable;
    device.raised[number_of(Figure::kActiveBytes)][pool] += usable;
    device.raised[number_of(Figure::kRequestedBytes)][pool] += size;
  }
}

void CacheModel::judge_allocate(std::uint64_t tag, std::uint64_t size, const Stream& stream,
                                const Result<Address>& got, const cache::OutOfMemory& account) {
  const Code code = got.code();
  if (callbacks_ != 0) {
    if (code != Code::kReentrant)
      report("C24", "an allocation in a callback answered ", code_name(code));
    return;
  }
  Device& device = at(stream.device);
  Call call;
  device.completed = device.completed_bytes = 0;
  if (size == 0 && got.is_ok()) {
    if (!got.value().is_null()) report("DEV-20", "zero bytes did not give the null address");
    return end(device, call);
  }
  call.fails = true;
  call.is_broken_off = any_failure(device);
  if (is_dead_answer(device, code)) return end(device, call);
  if (size > kRequestMax) {
    call.is_broken_off = false;
    if (code != Code::kSizeOverflow)
      report("C16", "a request over 1 EiB was not refused as kSizeOverflow");
    return end(device, call);
  }
  const std::uint64_t round = rules_.rounded(size);
  const cache::SnapshotBlock* best =
      device.is_fresh ? best_fit(device.view, stream.id.value(), round) : nullptr;
  const std::uint64_t best_address = best == nullptr ? 0 : best->address.value();
  call.is_hit = best != nullptr;
  call.takes_own_fit = best != nullptr && got.is_ok() && got.value().value() == best_address;
  if (got.is_ok()) {
    follow(device, tag, size, stream, got.value().value(), &call);
  } else if (code == Code::kOutOfMemory) {
    call.allocates = true;
    ++device.ooms;
    ++shortages_;
  } else if (code != Code::kDriverError || !any_failure(device)) {
    report("C16", "an allocation answered ", code_name(code), " for no reason");
  }
  end(device, call);
  if (!verdict_.is_good()) return;
  // A poll may merge the block that fitted into one too large to take (max_split_size): a miss,
  // then. Without the map after the call nobody knows whether one did.
  const bool may_outgrow =
      rules_.has_max_split_size() && (device.completed != 0 || !device.is_fresh);
  judge_calls(device, round, call.is_hit && !callback_ran_ && !may_outgrow);
  if (code == Code::kOutOfMemory) judge_shortage(device, size, stream, account);
  if (got.is_ok() && best_address != 0 && device.is_fresh && device.completed == 0 &&
      !callback_ran_ && got.value().value() != best_address) {
    report("DEV-3", hex(best_address), " was the best fit, ", hex(got.value().value()),
           " was given");
  }
}

}  // namespace ashlar::spec
