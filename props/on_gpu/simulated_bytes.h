// Memory of the host behind the addresses of a simulated machine, so that copies and kernels find bytes there.
//
// Thread safety: none.
#pragma once

#include <cstddef>

#include <ashlar/base/host_pages.h>
#include <ashlar/base/types.h>

#include "spec/gpu/sim_types.h"

namespace ashlar::props {

class SimulatedBytes {
 public:
  /// Of addresses, where the memory is some GiB: they have holes.
  static constexpr Bytes kUsual = 4_GiB;
  /// The same where ranges are reserved whole that pages are mapped into.
  static constexpr Bytes kForPages = 1024_GiB;

  /// Reserves so many addresses. What is touched is taken from the host. is_there(): whether the host had them.
  explicit SimulatedBytes(Bytes size = kUsual) : size_(size), begin_(reserve_pages(size.count())) {
    is_there_ = begin_ != nullptr && commit_pages(begin_, size_.count());
  }
  ~SimulatedBytes() {
    if (begin_ != nullptr) release_pages(begin_, size_.count());
  }
  SimulatedBytes(const SimulatedBytes&) = delete;
  SimulatedBytes& operator=(const SimulatedBytes&) = delete;

  bool is_there() const { return is_there_; }
  Address begin() const { return Address::of(begin_); }
  Bytes size() const { return size_; }
  /// A machine with one GPU whose addresses are these.
  spec::SimGpuOptions machine() const {
    spec::SimGpuOptions options;
    options.capacities = {1_GiB};
    options.first_address = begin().value();
    return options;
  }

 private:
  const Bytes size_;
  std::byte* const begin_;
  bool is_there_ = false;
};

}  // namespace ashlar::props
