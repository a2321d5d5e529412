#include <ashlar/exchange/trace_writer.h>

#include <algorithm>

#include <ashlar/base/checked.h>
#include <ashlar/base/exceptions.h>
#include <ashlar/exchange/json_sink.h>
#include <ashlar/exchange/rewind.h>
#include <ashlar/exchange/window.h>

namespace ashlar::inline v0::exchange {
namespace {

/// The largest allocation that readers take.
constexpr Bytes kAllocationMax{std::uint64_t{1} << 60};

/// A sink that fails where `sink` throws.
ByteSink without_exceptions(ByteSink sink) {
  return [sink = std::move(sink)](std::string_view bytes) {
    bool is_taken = false;
    static_cast<void>(exception_of([&] { is_taken = sink != nullptr && sink(bytes); }));
    return is_taken;
  };
}

}  // namespace

TraceWriter::TraceWriter(ByteSink sink, std::string_view name)
    : out_(std::make_unique<OutputBuffer>(without_exceptions(std::move(sink)))) {
  out_->append(R"({"format":"alloc-trace","version":1,"name":)");
  append_json_text(out_.get(), name.substr(0, kTraceTextMax));
  out_->append(",\"unit\":\"bytes\"}\n");
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::open(const std::string& path,
                                                       std::string_view name) {
  auto sink = file_sink(path);
  if (!sink.is_ok()) return sink.status();
  return std::make_unique<TraceWriter>(std::move(sink).value(), name);
}

TraceWriter::~TraceWriter() { static_cast<void>(finish()); }

bool TraceWriter::is_readable(Bytes size, std::uint64_t stream) const noexcept {
  if (size > kAllocationMax || !checked_add(live_bytes_, size)) return false;
  return streams_.size() < kTraceStreamsMax || streams_.count(stream) != 0;
}

void TraceWriter::on_allocate(Address address, Bytes size, std::uint64_t stream) noexcept {
  if (address.is_null()) return;
  const std::lock_guard lock(mutex_);
  if (const auto known = live_.find(address); known != live_.end()) {
    end_allocation(known->second);
    live_.erase(known);
    ++counts_.untold_frees;
  }
  const std::uint64_t id = counts_.allocations;
  const bool can_write = is_readable(size, stream) && !out_->has_failed();
  const bool is_known = can_write && with_host_memory([&] {
                          streams_.insert(stream);
                          live_.emplace(address, Live{id, size});
                        });
  is_host_exhausted_ = is_host_exhausted_ || (can_write && !is_known);
  if (!is_known) {
    ++counts_.lost;
    return;
  }
  live_bytes_ += size;
  ++counts_.allocations;
  out_->append("a ");
  out_->append_number(id);
  out_->append(' ');
  out_->append_number(size.count());
  if (stream != 0) {
    out_->append(' ');
    out_->append_number(stream);
  }
  out_->append('\n');
}

void TraceWriter::on_free(Address address) noexcept {
  if (address.is_null()) return;
  const std::lock_guard lock(mutex_);
  const auto known = live_.find(address);
  if (known == live_.end()) {
    ++counts_.unknown_frees;
    return;
  }
  end_allocation(known->second);
  live_.erase(known);
}

void TraceWriter::end_allocation(const Live& ended) noexcept {
  live_bytes_ -= ended.size;
  if (out_->has_failed()) {
    ++counts_.lost;
    return;
  }
  ++counts_.frees;
  out_->append("f ");
  out_->append_number(ended.id);
  out_->append('\n');
}

void TraceWriter::mark(std::string_view text) noexcept {
  if (text.empty()) return;
  const std::lock_guard lock(mutex_);
  if (out_->has_failed()) {
    ++counts_.lost;
    return;
  }
  ++counts_.marks;
  out_->append("m ");
  for (const char c : text.substr(0, kTraceTextMax))
    out_->append(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  out_->append('\n');
}

Status TraceWriter::finish() noexcept {
  const std::lock_guard lock(mutex_);
  if (const Status flushed = out_->flush(); !flushed.is_ok()) return flushed;
  ASHLAR_REQUIRE(!is_host_exhausted_, Code::kHostOutOfMemory,
                 "an allocation is missing: the host had no memory to note it");
  return Status::ok();
}

TraceWriterCounts TraceWriter::counts() const noexcept {
  const std::lock_guard lock(mutex_);
  return counts_;
}

Status write_trace_text(const cache::HistorySnapshot& record, std::string_view name,
                        const ByteSink& sink) {
  using cache::HistoryAction;
  Rewind state;
  if (const Status back = rewind_all(record, &state); !back.is_ok()) return back;
  const auto& events = record.history.events;
  const bool fit = std::all_of(events.begin(), events.end(), [](const auto& event) {
    return event.action != HistoryAction::kAllocate || event.size <= kAllocationMax;
  });
  const auto& blocks = state.blocks();
  const bool older_fit = std::all_of(blocks.begin(), blocks.end(), [](const auto& block) {
    return block.second.requested <= kAllocationMax;
  });
  ASHLAR_REQUIRE(fit && older_fit, Code::kInvalidArgument, "an allocation is larger than 1 EiB");
  TraceWriter writer(sink, name);
  for (const auto& [address, block] : blocks) {
    if (!block.is_pending) writer.on_allocate(address, block.requested, block.stream.value());
  }
  for (const cache::HistoryEvent& event : events) {
    if (event.action == HistoryAction::kAllocate) {
      writer.on_allocate(event.address, event.size, event.stream.value());
    } else if (event.action == HistoryAction::kFreeRequested) {
      writer.on_free(event.address);
    } else if (event.action == HistoryAction::kUserDefined) {
      writer.mark(text_of(record.history, event));
    }
  }
  return writer.finish();
}

}  // namespace ashlar::inline v0::exchange
