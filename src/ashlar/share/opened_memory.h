// MemoryOpener: allocations of other processes, in this one.
//
// Purpose: a header that an exporter wrote becomes memory at an address here. What is open already is not opened twice: the
// opener remembers it as long as anybody has it, and no longer (row DEV-21).
// Thread safety: any thread. One lock, under which the driver is called, so that two threads do not open one thing twice; no
// allocator takes it.
//
// How pages come here. An exporter's segment gets a *mirror*: as many addresses, with each page that was opened at the offset that it
// has there. So allocations that share a page share its mapping, and a page is known by the exporter, the segment, the
// offset and its generation. Where a place has another generation than the mirror has there, the exporter moved the page while this process
// kept the older one: the newer one gets another mirror, and the pages beside it that its allocation needs are mapped there too.
//
// Invariants:
//   (1) a mirror's page is mapped as long as an OpenedMemory has it, and its count says how many have;
//   (2) a mirror's addresses are reserved as long as it has a page.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <ashlar/base/export.h>
#include <ashlar/device/device.h>
#include <ashlar/device/sharing.h>

namespace ashlar::inline v0::share {

class OpenedRanges;

/// Another process's allocation, as long as this lives.
class ASHLAR_API OpenedMemory {
 public:
  /// Nothing.
  OpenedMemory() noexcept;
  /// Takes what `from` has, which has nothing afterwards.
  OpenedMemory(OpenedMemory&& from) noexcept;
  /// Closes what it had, and takes what `from` has.
  OpenedMemory& operator=(OpenedMemory&& from) noexcept;
  /// Closes it. REQUIRES: the work of this process that uses it is done (D4).
  ~OpenedMemory();

  /// Where it is here; null if it is nothing.
  Address address() const noexcept { return address_; }
  /// Of the allocation; 0 if it is nothing.
  Bytes size() const noexcept { return size_; }
  /// The device whose memory it is, one of the opener's.
  DeviceId device() const noexcept { return device_; }

 private:
  friend class MemoryOpener;
  struct Use;
  /// One use less. What `use_` has is of no use afterwards.
  void close() noexcept;

  std::unique_ptr<Use> use_;
  Address address_;
  Bytes size_;
  DeviceId device_;
};

/// Opens what MemoryExporters of other processes export.
class ASHLAR_API MemoryOpener {
 public:
  /// The devices must outlive this and whatever it opens. Makes no device call. Throws std::bad_alloc.
  explicit MemoryOpener(std::span<device::Device* const> devices);
  ~MemoryOpener();
  MemoryOpener(const MemoryOpener&) = delete;
  MemoryOpener& operator=(const MemoryOpener&) = delete;

  /// Opens the memory that the header describes. `descriptors`: those that came with it, in its order, which stay the
  /// caller's; empty: they are fetched from the exporter's process (ExportedMemory::header() says when that works).
  /// Errors, and nothing is open: kMalformed for bytes that are no header; kInvalidArgument if there are more or fewer
  /// descriptors than the header says, or parts that are no pages of the device; kNotFound if no device here is the exporter's GPU;
  /// kUnsupported if the descriptors cannot be fetched (Yama's ptrace_scope forbids to attach to the exporter, or a container's
  /// seccomp profile refuses pidfd_getfd), or the device opens nothing; kOutOfAddresses; kHostOutOfMemory;
  /// another error of the driver.
  /// Cost: four device calls for each page that is not open here, one for a new mirror, and none for the others; one for a whole
  /// segment, since the driver counts its openings. Descriptors that were not sent are fetched each time.
  Result<OpenedMemory> open(std::span<const std::byte> header,
                            std::span<const int> descriptors = {}) noexcept;

 private:
  std::shared_ptr<OpenedRanges> ranges_;
};

}  // namespace ashlar::inline v0::share
