#include "src/tool/addressed_events.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace ashlar::tool {
namespace {

std::string hex(Address address) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx",
                static_cast<unsigned long long>(address.value()));
  return text.data();
}

}  // namespace

std::string mark_text(std::string_view text) {
  std::string clean;
  for (const char c : text.substr(0, kMarkTextMax))
    clean += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c;
  return clean.empty() ? "-" : clean;
}

std::uint32_t AddressedEvents::add(const AddressedBlock& block) {
  allocations_.push_back(block);
  return static_cast<std::uint32_t>(allocations_.size() - 1);
}

std::string AddressedEvents::since(const AtAddress& at) const {
  return std::string(noun_) + " " + std::to_string(at.number);
}

std::uint32_t AddressedEvents::add_before(const AddressedBlock& block) {
  before_.push_back(add(block));
  return before_.back();
}

std::optional<std::string> AddressedEvents::allocate(const AddressedBlock& block) {
  const auto [it, is_new] = at_.try_emplace(block.address);
  AtAddress& at = it->second;
  if (!is_new && at.state == State::kLive) {
    return "allocates " + hex(block.address) + ", which is live since " + since(at);
  }
  at = {number_, add(block), State::kLive};
  events_.push_back({TraceEvent::Kind::kAllocate, at.allocation});
  return std::nullopt;
}

std::optional<std::string> AddressedEvents::free(const AddressedBlock& block, FreeStep step) {
  const auto [it, is_new] = at_.try_emplace(block.address);
  AtAddress& at = it->second;
  const bool is_completion = step == FreeStep::kCompleted && at.state == State::kRequested;
  if (!is_new && at.state != State::kLive && !is_completion) {
    return "frees " + hex(block.address) + ", which is free since " + since(at);
  }
  if (!is_completion) {
    if (is_new) at.allocation = add_before({block.address, block.size, block.stream});
    events_.push_back({TraceEvent::Kind::kFree, at.allocation, block.stack});
  }
  at.state = step == FreeStep::kCompleted ? State::kFree : State::kRequested;
  at.number = number_;
  return std::nullopt;
}

void AddressedEvents::mark(std::string_view text) {
  events_.push_back({TraceEvent::Kind::kMark, static_cast<std::uint32_t>(marks_.size())});
  marks_.push_back(mark_text(text));
}

void AddressedEvents::live_at_end(const AddressedBlock& block) {
  const auto [it, is_new] = at_.try_emplace(block.address);
  AtAddress& at = it->second;
  if (!is_new && at.state == State::kLive) return;
  if (is_new) {
    at.allocation = add_before(block);
  } else {
    at.allocation = add(block);
    events_.push_back({TraceEvent::Kind::kAllocate, at.allocation});
    ++late_;
  }
  at.state = State::kLive;
}

std::optional<Trace> AddressedEvents::finish(const std::string& name, std::string* error) {
  std::sort(before_.begin(), before_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return allocations_[a].address < allocations_[b].address;
  });
  TraceBuilder builder(name);
  std::vector<std::uint32_t> slot_of(allocations_.size());
  const auto allocate = [&](std::uint32_t index) {
    const AddressedBlock& block = allocations_[index];
    const auto slot = builder.allocate(block.size, block.stream, block.stack);
    if (slot) slot_of[index] = *slot;
    return slot.has_value();
  };
  bool fits = std::all_of(before_.begin(), before_.end(), allocate);
  for (const Event& event : events_) {
    if (!fits) break;
    switch (event.kind) {
      case TraceEvent::Kind::kAllocate: fits = allocate(event.index); break;
      case TraceEvent::Kind::kFree: fits = builder.free(slot_of[event.index], event.stack); break;
      case TraceEvent::Kind::kMark: builder.mark(marks_[event.index]); break;
    }
  }
  if (fits) return std::move(builder.trace());
  *error = "an allocation over 1 EiB, too many events or streams, or live bytes that overflow";
  return std::nullopt;
}

}  // namespace ashlar::tool
