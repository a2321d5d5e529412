// A source of buffers that have addresses and no memory: for plans that nobody runs.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/base/checked.h>
#include <ashlar/graph/memory_request.h>

namespace ashlar::spec {

/// A buffer that tensors lie in.
struct JudgedBuffer {
  std::size_t type = 0;
  Address base;
  Bytes size;
};

/// Gives out addresses that were never given out before, each a multiple of 64 KiB. Refuses a call, or
/// sizes above a limit, if told to.
class ImaginaryBuffers final : public graph::BufferSource {
 public:
  Result<Address> make_buffer(std::size_t type, Bytes size) noexcept override {
    calls_ += 1;
    if (calls_ == refused_call_ || size > size_max_)
      return {Code::kOutOfMemory, "refused for a test"};
    const Address base = next_;
    next_ = next_ + round_up(size, 64_KiB);
    live_.push_back({type, base, size});
    return base;
  }
  void release_buffer(std::size_t type, Address base, Bytes size) noexcept override {
    const auto is_it = [&](const JudgedBuffer& buffer) {
      return buffer.type == type && buffer.base == base && buffer.size == size;
    };
    unknown_releases_ += std::erase_if(live_, is_it) == 1 ? 0 : 1;
  }

  /// The call of make_buffer(), counted from 1, that fails; 0: none.
  void refuse_call(std::uint64_t call) { refused_call_ = call; }
  /// Calls for more bytes fail.
  void refuse_above(Bytes size) { size_max_ = size; }
  /// The buffers that are made and not released.
  const std::vector<JudgedBuffer>& live() const { return live_; }
  std::uint64_t calls() const { return calls_; }
  /// Releases of what was not made, or released before.
  std::uint64_t unknown_releases() const { return unknown_releases_; }

 private:
  Address next_{64u << 10};
  std::vector<JudgedBuffer> live_;
  std::uint64_t calls_ = 0;
  std::uint64_t refused_call_ = 0;
  Bytes size_max_ = Bytes::max();
  std::uint64_t unknown_releases_ = 0;
};

}  // namespace ashlar::spec
