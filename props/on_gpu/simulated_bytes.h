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
  /// Reserves the addresses. What is touched is taken from the host. is_there(): whether the host had them.
  SimulatedBytes() : begin_(reserve_pages(kSize.count())) {
    is_there_ = begin_ != nullptr && commit_pages(begin_, kSize.count());
  }
  ~SimulatedBytes() {
    if (begin_ != nullptr) release_pages(begin_, kSize.count());
  }
  SimulatedBytes(const SimulatedBytes&) = delete;
  SimulatedBytes& operator=(const SimulatedBytes&) = delete;

  bool is_there() const { return is_there_; }
  Address begin() const { return Address::of(begin_); }
  Bytes size() const { return kSize; }
  /// A machine with one GPU whose addresses are these.
  spec::SimGpuOptions machine() const {
    spec::SimGpuOptions options;
    options.capacities = {1_GiB};
    options.first_address = begin().value();
    return options;
  }

 private:
  // Far more than the memory: addresses have holes, and ranges that pages are mapped into are reserved whole.
  static constexpr Bytes kSize = 1024_GiB;

  std::byte* const begin_;
  bool is_there_ = false;
};

}  // namespace ashlar::props
