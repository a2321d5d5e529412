#include "spec/gpu/sim_sharing.h"

#include <cstring>

#include "spec/gpu/gated_call.h"

namespace ashlar::spec {
namespace {

using device::CallKind;
using device::ShareHandle;
using device::ShareKind;

bool is_of_pages(ShareKind kind) {
  return kind == ShareKind::kDescriptor || kind == ShareKind::kFabric;
}

constexpr Status kNoSuchKind{Code::kUnsupported,
                             "the device has no handles of that kind for pages"};
constexpr Status kNoPeers{Code::kUnsupported, "the devices cannot use each other's memory"};

}  // namespace

Result<device::DeviceUuid> SimSharing::uuid() const noexcept {
  device::DeviceUuid uuid{};
  std::memcpy(uuid.data(), &index_, sizeof index_);
  return uuid;
}

Result<PageHandle> SimSharing::page_create(Bytes size, ShareKind kind) noexcept {
  return gated_call<Result<PageHandle>>(
      *machine_, index_, CallKind::kPageCreate, size, [&]() -> Result<PageHandle> {
        if (!is_of_pages(kind) ||
            (machine_->state().options.share_kinds >> static_cast<unsigned>(kind) & 1) == 0)
          return kNoSuchKind;
        return machine_->memory().page_create(index_, size, kind);
      });
}

Result<ShareKind> SimSharing::page_kind(PageHandle page) noexcept {
  return gated_call<Result<ShareKind>>(*machine_, index_, CallKind::kPageExport, Bytes{}, [&] {
    return machine_->state().sharing.page_kind(index_, page);
  });
}

Result<ShareHandle> SimSharing::page_export(PageHandle page) noexcept {
  return gated_call<Result<ShareHandle>>(*machine_, index_, CallKind::kPageExport, Bytes{}, [&] {
    return machine_->state().sharing.export_page(index_, page);
  });
}

Result<PageHandle> SimSharing::page_import(const ShareHandle& handle, Bytes size) noexcept {
  return gated_call<Result<PageHandle>>(
      *machine_, index_, CallKind::kPageImport, size, [&]() -> Result<PageHandle> {
        if (!is_of_pages(handle.kind)) return kNoSuchKind;
        return machine_->state().sharing.import_page(index_, handle, size);
      });
}

Result<ShareHandle> SimSharing::segment_export(Address base) noexcept {
  return gated_call<Result<ShareHandle>>(*machine_, index_, CallKind::kSegmentExport, Bytes{}, [&] {
    return machine_->state().sharing.export_segment(index_, base);
  });
}

Result<Address> SimSharing::segment_open(const ShareHandle& handle) noexcept {
  return gated_call<Result<Address>>(*machine_, index_, CallKind::kSegmentOpen, Bytes{}, [&] {
    return machine_->state().sharing.open_segment(index_, handle);
  });
}

Status SimSharing::segment_close(Address base) noexcept {
  return gated_call<Status>(*machine_, index_, CallKind::kSegmentClose, Bytes{},
                            [&] { return machine_->memory().segment_close(index_, base); });
}

Result<bool> SimSharing::can_reach(Sharing& owner) noexcept {
  return gated_call<Result<bool>>(*machine_, index_, CallKind::kReach, Bytes{}, [&] {
    return Result<bool>(spec::can_reach(machine_->state().options, index_, owner.ordinal()));
  });
}

Status SimSharing::reach(Sharing& owner) noexcept {
  return gated_call<Status>(*machine_, index_, CallKind::kReach, Bytes{}, [&] {
    if (owner.ordinal() == index_) return Status::ok();
    if (!spec::can_reach(machine_->state().options, index_, owner.ordinal())) return kNoPeers;
    machine_->state().memory.reach_segments(index_, owner.ordinal());
    return Status::ok();
  });
}

Status SimSharing::copy(Address to, Address from, Bytes size, StreamHandle stream) noexcept {
  return copy_between(to, *this, from, *this, size, stream);
}

Status SimSharing::copy_between(Address to, Sharing& to_owner, Address from, Sharing& from_owner,
                                Bytes size, StreamHandle stream) noexcept {
  return gated_call<Status>(*machine_, index_, CallKind::kCopy, size, [&] {
    Touch read{from, size, Access::kRead};
    read.by_device = static_cast<std::int32_t>(from_owner.ordinal());
    Touch written{to, size, Access::kWrite};
    written.by_device = static_cast<std::int32_t>(to_owner.ordinal());
    const Touch touches[] = {read, written};
    const Stream on{stream, StreamId{}, DeviceId{static_cast<std::int32_t>(index_)}};
    return machine_->work().enqueue(on, Entry{EntryKind::kKernel}, touches);
  });
}

}  // namespace ashlar::spec
