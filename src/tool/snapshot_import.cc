#include "src/tool/snapshot_import.h"

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "src/tool/addressed_events.h"
#include "src/tool/snapshot_stacks.h"

namespace ashlar::tool {
namespace {

constexpr std::size_t kNamedMax = 16;

/// "0, 2 and 3"; of many the first ones, "and more".
std::string joined(const std::set<std::uint64_t>& numbers) {
  std::string text;
  std::size_t left = numbers.size();
  for (const std::uint64_t number : numbers) {
    if (numbers.size() - left == kNamedMax) return text + "and more";
    text += std::to_string(number);
    if (--left > 0) text += left == 1 ? " and " : ", ";
  }
  return text;
}

std::string indexed(const char* name, std::size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

/// Reads one document. A function that returns false has said why in reason_; its callers say where.
class SnapshotImporter {
 public:
  SnapshotImporter(const Document& document, const TraceRequest& request, TraceSource* source)
      : arena_(document.arena),
        root_(document.root),
        request_(request),
        source_(source),
        stacks_(document.arena) {}

  bool run() {
    return take_root() && take_devices() && choose_device() && take_events() && take_live_blocks();
  }

  std::optional<Trace> finish(const std::string& name, std::string* error) {
    source_->live_at_start = events_.live_at_start();
    source_->allocated_late = events_.allocated_late();
    std::optional<Trace> trace = events_.finish(name, error);
    if (trace) trace->stacks = std::move(stacks_).take();
    return trace;
  }

  /// `place: reason`.
  std::string failure() const { return place_ + ": " + reason_; }

 private:
  bool fail(std::string why) {
    reason_ = std::move(why);
    return false;
  }
  /// Says where the failure was, the innermost place first.
  bool at(const std::string& place) {
    place_ = place + place_;
    return false;
  }

  bool take_root() {
    if (is_list(arena_[root_])) {  // torch.cuda.memory_snapshot() alone
      segments_ = arena_.items(root_);
      return true;
    }
    if (!check_object(root_)) return at("root");
    const auto segments = arena_.find(root_, "segments");
    const auto traces = arena_.find(root_, "device_traces");
    if (!segments && !traces) {
      fail("neither 'segments' nor 'device_traces' is there, so it is no memory snapshot");
      return at("root");
    }
    if (segments && !take_list(*segments, &segments_)) return at("segments");
    return !traces || take_list(*traces, &traces_) || at("device_traces");
  }

  bool take_list(ValueId id, std::vector<ValueId>* out) {
    if (!is_list(arena_[id])) return fail("is no list");
    *out = arena_.items(id);
    return true;
  }

  bool check_object(ValueId id) {
    if (arena_[id].kind != ValueKind::kDict) return fail("is no dict");
    if (arena_[id].length <= 2 * kSnapshotKeysMax) return true;
    return fail("has more than " + std::to_string(kSnapshotKeysMax) + " keys");
  }

  /// A whole number from 0. `*out` stays as it is where the key is missing.
  bool take_number(ValueId object, const char* key, std::optional<std::uint64_t>* out) {
    const auto id = arena_.find(object, key);
    if (!id) return true;
    const Value& value = arena_[*id];
    const bool is_whole = value.kind == ValueKind::kLarge ||
                          (value.kind == ValueKind::kInteger && value.bits >> 63 == 0);
    if (!is_whole) return fail(std::string("'") + key + "' is no whole number from 0");
    *out = value.bits;
    return true;
  }
  bool need_number(ValueId object, const char* key, std::uint64_t* out) {
    std::optional<std::uint64_t> number;
    if (!take_number(object, key, &number)) return false;
    if (!number) return fail(std::string("has no '") + key + "'");
    *out = *number;
    return true;
  }

  /// A stream's number: a handle, which Python may show as negative.
  bool take_stream(ValueId object, std::uint64_t* out) {
    const auto id = arena_.find(object, "stream");
    if (!id) return true;
    const ValueKind kind = arena_[*id].kind;
    if (kind != ValueKind::kInteger && kind != ValueKind::kLarge)
      return fail("'stream' is no number");
    *out = arena_[*id].bits;
    return true;
  }

  std::string_view text_of(ValueId object, const char* key) const {
    const auto id = arena_.find(object, key);
    return id && arena_[*id].kind == ValueKind::kText ? arena_.text(*id) : std::string_view();
  }

  /// Which devices have events, or, if none has, segments.
  bool take_devices() {
    if (traces_.size() > kSnapshotDeviceMax + 1) {
      fail("has more than " + std::to_string(kSnapshotDeviceMax + 1) + " lists");
      return at("device_traces");
    }
    for (std::size_t d = 0; d < traces_.size(); ++d) {
      if (!is_list(arena_[traces_[d]]))
        return fail("is no list") || at(indexed("device_traces", d));
      if (arena_[traces_[d]].length > 0) devices_.insert(d);
    }
    has_events_ = !devices_.empty();
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      std::uint64_t device = 0;
      if (!check_object(segments_[s]) || !device_of(segments_[s], &device))
        return at(indexed("segments", s));
      if (!has_events_) devices_.insert(device);
    }
    return true;
  }

  bool device_of(ValueId segment, std::uint64_t* device) {
    std::optional<std::uint64_t> number;
    if (!take_number(segment, "device", &number)) return false;
    *device = number.value_or(0);
    return *device <= kSnapshotDeviceMax || fail("'device' is over the largest device's number");
  }

  bool choose_device() {
    if (!request_.device) {
      if (devices_.size() > 1) {
        fail(devices_text() + ": choose one with --trace-device");
        return at("device_traces");
      }
      source_->device = devices_.empty() ? 0 : static_cast<std::uint32_t>(*devices_.begin());
      return true;
    }
    source_->device = *request_.device;
    if (source_->device < traces_.size() || devices_.count(source_->device) > 0) return true;
    fail(devices_text());
    return at("device " + std::to_string(source_->device) + " is not there");
  }

  std::string devices_text() const {
    if (devices_.empty()) return "the snapshot is empty";
    return std::string(has_events_ ? "events are of " : "memory is of ") +
           (devices_.size() == 1 ? "device " : "the devices ") + joined(devices_);
  }

  bool take_events() {
    if (source_->device >= traces_.size()) return true;
    const std::vector<ValueId> entries = arena_.items(traces_[source_->device]);
    source_->events = entries.size();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      events_.at(i);
      if (check_object(entries[i]) && take_event(entries[i])) continue;
      return at(indexed("device_traces", source_->device) + indexed("", i));
    }
    return true;
  }

  bool take_event(ValueId entry) {
    const std::string_view action = text_of(entry, "action");
    if (action.empty()) return fail("has no 'action'");
    if (action == "user_defined" || action == "annotate") return take_mark(entry);
    const bool is_allocation = action == "alloc";
    const bool is_completion = action == "free_completed";
    if (!is_allocation && !is_completion && action != "free_requested" && action != "free") {
      ++source_->skipped;
      return true;
    }
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    AddressedBlock block;
    if (!need_number(entry, "addr", &address) || !need_number(entry, "size", &size) ||
        !take_stream(entry, &block.stream))
      return false;
    block.address = Address{address};
    block.size = Bytes{size};
    block.stack = stacks_.stack_of(entry);
    auto contradiction = is_allocation ? events_.allocate(block)
                                       : events_.free(block, is_completion ? FreeStep::kCompleted
                                                                           : FreeStep::kRequested);
    return !contradiction || fail(std::move(*contradiction));
  }

  bool take_mark(ValueId entry) {
    const std::string_view text = text_of(entry, "user_metadata").substr(0, kMarkTextMax);
    mark_bytes_ += text.size();
    if (mark_bytes_ > kSnapshotMarkBytesMax) return fail("the texts of marks exceed 64 MiB");
    events_.mark(text);
    return true;
  }

  bool take_live_blocks() {
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      std::uint64_t device = 0;
      if (!device_of(segments_[s], &device)) return at(indexed("segments", s));
      if (device == source_->device && !take_segment(segments_[s]))
        return at(indexed("segments", s));
    }
    return true;
  }

  bool take_segment(ValueId segment) {
    std::uint64_t stream = 0;
    std::optional<std::uint64_t> base;
    if (!take_number(segment, "address", &base) || !take_stream(segment, &stream)) return false;
    const auto list = arena_.find(segment, "blocks");
    if (!list) return fail("has no 'blocks'");
    std::vector<ValueId> blocks;
    if (is_list(arena_[*list])) blocks_ += arena_[*list].length;
    if (blocks_ > arena_.size()) return fail("shares its blocks with other segments");
    if (!take_list(*list, &blocks)) return at(".blocks");
    std::uint64_t next = base.value_or(0);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (!check_object(blocks[b]) || !take_live_block(blocks[b], stream, &next))
        return at(indexed(".blocks", b));
    }
    return true;
  }

  /// Takes a block if it is live. `*next` is where it lies if it does not say so itself, and then where
  /// the next one does.
  bool take_live_block(ValueId block, std::uint64_t stream, std::uint64_t* next) {
    std::uint64_t size = 0;
    std::optional<std::uint64_t> requested;
    std::optional<std::uint64_t> address;
    if (!need_number(block, "size", &size) || !take_number(block, "requested_size", &requested) ||
        !take_number(block, "address", &address))
      return false;
    const std::uint64_t here = address.value_or(*next);
    *next = here + size;  // wraps where the snapshot is nonsense: it then tells of nonsense
    if (text_of(block, "state") != "active_allocated") return true;
    const bool tells = requested.value_or(0) != 0;
    events_.live_at_end(
        {Address{here}, Bytes{tells ? *requested : size}, stream, stacks_.stack_of(block)});
    return true;
  }

  const ValueArena& arena_;
  ValueId root_;
  TraceRequest request_;
  TraceSource* source_;
  std::vector<ValueId> segments_;
  std::vector<ValueId> traces_;      // by device
  std::set<std::uint64_t> devices_;  // those with events; if none has, those with segments
  bool has_events_ = false;
  AddressedEvents events_{"event"};
  SnapshotStacks stacks_;
  std::uint64_t blocks_ = 0;
  std::size_t mark_bytes_ = 0;
  std::string place_;
  std::string reason_;
};

}  // namespace

std::optional<Trace> import_snapshot(const Document& document, const std::string& file,
                                     const TraceRequest& request, TraceSource* source,
                                     std::string* error) {
  SnapshotImporter importer(document, request, source);
  if (!importer.run()) {
    *error = file + ": " + importer.failure();
    return std::nullopt;
  }
  std::string why;
  auto trace = importer.finish(trace_name(file), &why);
  if (!trace) *error = file + ": " + why;
  return trace;
}

}  // namespace ashlar::tool
