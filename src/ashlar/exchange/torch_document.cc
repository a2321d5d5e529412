#include <ashlar/exchange/torch_document.h>

#include <algorithm>

namespace ashlar::inline v0::exchange {
namespace {

using cache::HistoryAction;
using cache::HistoryEvent;

const char* action_name(HistoryAction action) noexcept {
  switch (action) {
    case HistoryAction::kAllocate: return "alloc";
    case HistoryAction::kFreeRequested: return "free_requested";
    case HistoryAction::kFreeCompleted: return "free_completed";
    case HistoryAction::kSegmentAllocate: return "segment_alloc";
    case HistoryAction::kSegmentFree: return "segment_free";
    case HistoryAction::kSegmentMap: return "segment_map";
    case HistoryAction::kSegmentUnmap: return "segment_unmap";
    case HistoryAction::kSnapshot: return "snapshot";
    case HistoryAction::kOutOfMemory: return "oom";
    case HistoryAction::kUserDefined: break;
  }
  return "annotate";
}

/// Says which events are not in the file; "" if all are.
std::string note_of(const TorchDevice& device) {
  const std::size_t all = device.history->events.size();
  const std::size_t written = device.events.last - device.events.first;
  if (device.history->lost == 0 && written == all) return {};
  std::string note = "device " + std::to_string(device.device.value()) + ": " +
                     std::to_string(written) + " of " + std::to_string(all + device.history->lost) +
                     " events";
  const auto add = [&note](std::uint64_t count, const char* why) {
    if (count != 0) note += ", " + std::to_string(count) + why;
  };
  add(device.history->lost, " older ones lost by the ring");
  add(device.events.first - device.events.over_max, " before the window");
  add(device.events.over_max, " older ones over the limit of the file");
  add(all - device.events.last, " after the window");
  return note;
}

}  // namespace

/// A block, or what is free between two.
struct TorchDocument::Tile {
  Address address;
  RewoundBlock block;
  bool is_free = false;
};

void TorchDocument::write(const std::vector<TorchDevice>& devices) {
  sink_.begin_dict();
  sink_.text("segments");
  sink_.begin_list();
  for (const TorchDevice& device : devices) write_segments(device);
  sink_.end_list();
  sink_.text("device_traces");
  write_traces(devices);
  sink_.text("allocator_settings");
  write_settings(devices);
  sink_.text("external_annotations");
  write_annotations();
  sink_.end_dict();
}

void TorchDocument::write_segments(const TorchDevice& device) {
  std::vector<Tile> tiles;
  auto block = device.at_end.blocks().begin();
  for (const auto& [base, segment] : device.at_end.segments()) {
    const Address end = base + segment.size;
    tiles.clear();
    Address reached = base;
    const auto fill = [&tiles, &reached](Address to) {
      if (reached == to) return;
      RewoundBlock free;
      free.size = to - reached;
      tiles.push_back({reached, free, true});
    };
    for (; block != device.at_end.blocks().end() && block->first < end; ++block) {
      fill(block->first);
      tiles.push_back({block->first, block->second});
      reached = block->first + block->second.size;
    }
    fill(end);
    write_segment(device.device, base, segment, tiles);
  }
}

void TorchDocument::write_segment(DeviceId device, Address base, const RewoundSegment& segment,
                                  const std::vector<Tile>& tiles) {
  Bytes allocated;
  Bytes active;
  Bytes requested;
  for (const Tile& tile : tiles) {
    if (tile.is_free) continue;
    if (!tile.block.is_pending) allocated += tile.block.size;
    active += tile.block.size;
    requested += tile.block.requested;
  }
  sink_.begin_dict();
  sink_.integer("device", static_cast<std::uint64_t>(device.value()));
  sink_.integer("address", base.value());
  sink_.integer("total_size", segment.size.count());
  sink_.integer("allocated_size", allocated.count());
  sink_.integer("active_size", active.count());
  sink_.integer("requested_size", requested.count());
  sink_.integer("stream", segment.stream.value());
  sink_.text("segment_type", segment.pool == PoolId::kSmall ? "small" : "large");
  sink_.text("segment_pool_id");
  sink_.pair(segment.memory_pool.first, segment.memory_pool.second);
  sink_.text("is_expandable");
  sink_.boolean(segment.is_paged);
  sink_.text("frames");
  write_frames({});
  sink_.text("blocks");
  sink_.begin_list();
  for (const Tile& tile : tiles) write_block(tile);
  sink_.end_list();
  sink_.end_dict();
}

void TorchDocument::write_block(const Tile& tile) {
  const char* const used = tile.block.is_pending ? "active_pending_free" : "active_allocated";
  sink_.begin_dict();
  sink_.integer("address", tile.address.value());
  sink_.integer("size", tile.block.size.count());
  sink_.integer("requested_size", tile.block.requested.count());
  sink_.text("state", tile.is_free ? "inactive" : used);
  sink_.text("frames");
  write_frames(tile.block.context);
  sink_.end_dict();
}

// A list for each device up to the highest one: the viewer finds them by number.
void TorchDocument::write_traces(const std::vector<TorchDevice>& devices) {
  sink_.begin_list();
  std::int32_t next = 0;
  for (const TorchDevice& device : devices) {
    for (; next < device.device.value(); ++next) {
      sink_.begin_list();
      sink_.end_list();
    }
    ++next;
    sink_.begin_list();
    for (std::size_t i = device.events.first; i < device.events.last; ++i)
      write_event(*device.history, device.history->events[i]);
    sink_.end_list();
  }
  sink_.end_list();
}

void TorchDocument::write_event(const cache::History& history, const HistoryEvent& event) {
  const bool is_text = event.action == HistoryAction::kUserDefined;
  sink_.begin_dict();
  sink_.text("action", action_name(event.action));
  if (event.action == HistoryAction::kOutOfMemory) {
    sink_.integer("device_free", event.device_free.count());
  } else {
    sink_.integer("addr", event.address.value());
  }
  sink_.integer("size", event.size.count());
  sink_.integer("stream", event.stream.value());
  sink_.integer("time_us", event.time_us);
  sink_.text("frames");
  write_frames(is_text ? cache::ContextId{} : event.context);
  sink_.text("compile_context", "N/A");
  sink_.text("user_metadata", is_text ? text_of(history, event) : std::string_view());
  sink_.text("pool_id");
  sink_.pair(event.memory_pool.first, event.memory_pool.second);
  sink_.end_dict();
}

void TorchDocument::write_frames(cache::ContextId context) {
  const std::vector<Frame>& frames = frames_.of(context);
  if (!sink_.begin_shared(frames.empty() ? 0 : context.value())) return;
  sink_.begin_list();
  for (const Frame& frame : frames) {
    sink_.begin_dict();
    sink_.text("name", frame.name);
    sink_.text("filename", frame.filename);
    sink_.integer("line", frame.line);
    sink_.end_dict();
  }
  sink_.end_list();
  sink_.end_shared(frames.empty() ? 0 : context.value());
}

void TorchDocument::write_settings(const std::vector<TorchDevice>& devices) {
  std::string note;
  bool is_cut = false;
  for (const TorchDevice& device : devices) {
    const std::string part = note_of(device);
    if (!part.empty()) note += (note.empty() ? "" : "; ") + part;
    is_cut = is_cut || device.history->lost != 0 || device.events.over_max != 0;
  }
  sink_.begin_dict();
  for (const KeyValue& setting : options_.settings) {
    sink_.text(setting.key);
    write_value(setting.value);
  }
  sink_.text("trace_alloc_overflowed");
  sink_.boolean(is_cut);
  if (!note.empty()) sink_.text("note", note);
  sink_.end_dict();
}

void TorchDocument::write_annotations() {
  sink_.begin_list();
  for (const ExternalAnnotation& annotation : options_.annotations) {
    const bool is_inside =
        annotation.time_us >= options_.window.from_us && annotation.time_us < options_.window.to_us;
    if (!is_inside) continue;
    sink_.begin_dict();
    for (const KeyValue& value : annotation.values) {
      sink_.text(value.key);
      write_value(value.value);
    }
    sink_.integer("device", static_cast<std::uint64_t>(annotation.device.value()));
    sink_.integer("time_us", annotation.time_us);
    sink_.end_dict();
  }
  sink_.end_list();
}

void TorchDocument::write_value(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    sink_.text(*text);
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    sink_.boolean(*truth);
  } else if (const auto* real = std::get_if<double>(&value)) {
    sink_.real(*real);
  } else if (const std::int64_t number = std::get<std::int64_t>(value); number < 0) {
    sink_.negative(number);
  } else {
    sink_.integer(static_cast<std::uint64_t>(number));
  }
}

}  // namespace ashlar::inline v0::exchange
