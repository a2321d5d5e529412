#include "props/on_gpu/planted_device.h"

#include <algorithm>

namespace ashlar::props {

Status PlantedDevice::page_map(Address at, Bytes size, PageHandle page) noexcept {
  constexpr std::uint32_t kOneIn = 3;
  PageHandle mapped = page;
  if (planted_ == Planted::kEarlyRemap && ++maps_ % kOneIn == 0) {
    const auto other = std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapping& each) {
      return each.size == size && each.page != page;
    });
    if (other != mappings_.end()) mapped = other->page;
  }
  const Status done = ForwardingDevice::page_map(at, size, mapped);
  if (!done.is_ok()) return done;
  mappings_.push_back({at, size, mapped});
  moves_ += known_.insert(page.value()).second ? 0 : 1;
  return done;
}

Status PlantedDevice::page_unmap(Address at, Bytes size) noexcept {
  const Status done = ForwardingDevice::page_unmap(at, size);
  if (done.is_ok()) {
    std::erase_if(mappings_,
                  [&](const Mapping& each) { return at <= each.at && each.at < at + size; });
  }
  return done;
}

Status PlantedDevice::page_release(PageHandle page) noexcept {
  const Status done = ForwardingDevice::page_release(page);
  if (!done.is_ok()) return done;
  std::erase_if(mappings_, [page](const Mapping& each) { return each.page == page; });
  known_.erase(page.value());
  return done;
}

}  // namespace ashlar::props
