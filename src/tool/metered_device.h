// MeteredDevice: counts the calls to another device and adds up what they would cost by a cost model.
//
// Thread safety: one thread.
#pragma once

#include <ashlar/device/forwarding_device.h>

#include "spec/gpu/cost_model.h"

namespace ashlar::tool {

class MeteredDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  const spec::CallAccount& account() const { return account_; }

 private:
  void on_answer(device::CallKind kind, Bytes size, Code) noexcept override {
    account_.charge(kind, model_.of(kind, size));
  }

  const spec::CostModel model_;
  spec::CallAccount account_;
};

}  // namespace ashlar::tool
