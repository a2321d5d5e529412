#include "spec/model/pin_answers.h"

#include <algorithm>
#include <iterator>

#include "spec/model/cache_clauses.h"
#include "spec/model/settings.h"

namespace ashlar::spec {

namespace {

/// The memory that a pin of the range keeps: whole pages, or the segment.
AddressRange memory_under(const DeviceWitness& witness, const AddressRange& range) {
  const std::vector<DeviceWitness::Held>& held = witness.segments();
  const auto after = std::upper_bound(
      held.begin(), held.end(), range.begin,
      [](std::uint64_t address, const DeviceWitness::Held& each) { return address < each.base; });
  if (after == held.begin()) return range;
  const DeviceWitness::Held& segment = *std::prev(after);
  if (!segment.is_paged) return {segment.base, segment.base + segment.size};
  const std::uint64_t first = (range.begin - segment.base) / kPageBytes;
  const std::uint64_t last = (range.end - 1 - segment.base) / kPageBytes;
  return {segment.base + first * kPageBytes, segment.base + (last + 1) * kPageBytes};
}

}  // namespace

const OwnedBlock* PinAnswers::find_asked(std::uint64_t address, Status got, JudgedDevice** device) {
  *device = &model_.current();
  OwnedBlock* const block = model_.find_owned(address, device);
  JudgedDevice& of = **device;
  of.books.begin_call();
  if (block == nullptr || block->is_pending) {
    // As of a free: what is pending may be complete by now.
    const bool may_be_unknown = block == nullptr || !of.map.is_fresh;
    model_.judge_refused(of, got, Code::kDoubleFree,
                         may_be_unknown ? Code::kUnknownPointer : Code::kDoubleFree,
                         "a question for the memory under no live block");
    return nullptr;
  }
  JudgedCall call;
  call.is_query = true;
  call.device_calls_max = 0;
  call.fails = !got.is_ok();
  if (!got.is_ok() && !is_gone_answer(model_.state_, of, got.code()) &&
      !is_host_refusal(model_.state_, got.code()))
    model_.report("C16", "a question for the memory under a live block answered ",
                  code_name(got.code()));
  model_.end(of, call);
  return got.is_ok() ? block : nullptr;
}

void PinAnswers::judge_pin(std::uint64_t address, const Result<cache::PinnedRange>& got) {
  JudgedDevice* device = nullptr;
  const OwnedBlock* const block = find_asked(address, got.status(), &device);
  if (block == nullptr) return;
  const cache::PinnedRange& range = got.value();
  if (range.base.value() != address || range.size.count() != block->size)
    model_.report("C21", "a pin of ", hex(address), " + ", block->size, " is one of ",
                  hex(range.base.value()), " + ", range.size.count());
  judge_named(*device, address, block->size, range.generation);
  device->pins.add(range, memory_under(device->ledger.witness(), {address, address + block->size}));
}

void PinAnswers::judge_unpin(const cache::PinnedRange& range, Status got) {
  JudgedDevice& device = model_.current();
  if (got.is_ok()) {
    if (!device.pins.remove(range)) model_.report("C16", "an end of no pin answered ok");
    JudgedCall call;
    call.is_query = true;
    call.device_calls_max = 0;
    device.books.begin_call();
    return model_.end(device, call);
  }
  const Code refusal = device.pins.is_pinned(range) ? Code::kOk : Code::kNotFound;
  model_.judge_refused(device, got, refusal, refusal, "an end of a pin");
}

void PinAnswers::judge_generation(std::uint64_t address, const Result<std::uint64_t>& got) {
  JudgedDevice* device = nullptr;
  const OwnedBlock* const block = find_asked(address, got.status(), &device);
  if (block != nullptr) judge_named(*device, address, block->size, got.value());
}

void PinAnswers::judge_named(JudgedDevice& device, std::uint64_t address, std::uint64_t size,
                             std::uint64_t generation) {
  const std::uint64_t newest = device.ledger.witness().backing().newest({address, address + size});
  PinBook::Named& last = device.pins.named(address);
  if (last.size == size && (last.newest == newest) != (last.generation == generation))
    model_.report("DEV-24", "the backing generation of ", hex(address), " + ", size, " was ",
                  last.generation, " and is ", generation, ", though ",
                  last.newest == newest ? "the same" : "other", " memory is there");
  last = {size, generation, newest};
}

void PinAnswers::judge_memory() { judge_backing(model_.state_); }

void PinAnswers::judge_event(const cache::MappingEvent& event) {
  JudgedDevice& device = model_.state_.at(event.device);
  const AddressRange range{event.address.value(), event.address.value() + event.size.count()};
  const bool is_coming = event.change == cache::MappingChange::kMapped;
  if (!device.ledger.witness().backing().usable().covers(range))
    model_.report("DEV-24", "an observer is told of memory at ", hex(range.begin),
                  is_coming ? " that is not there" : " when it has gone");
  if (is_coming ? device.pins.told().touches(range) : !device.pins.told().covers(range))
    model_.report("DEV-24", "an observer is told twice that memory ", is_coming ? "came" : "goes",
                  " at ", hex(range.begin));
  const RangeSet& told = device.pins.told();
  if (is_coming && device.ledger.witness().pages().any_alias_in(range, told))
    model_.report("DEV-24", "an observer is told of memory at ", hex(range.begin),
                  " that it knows of at another address");
  if (is_coming) device.pins.told().add(range);
  else device.pins.told().cut(range);
}

}  // namespace ashlar::spec
