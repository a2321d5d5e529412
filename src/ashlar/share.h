// Ashlar's sharing: allocations for other processes, and for other devices of the machine.
//
// Purpose: the one header of a user who shares memory between processes or copies between devices. Names stay in their room's
// namespace: ashlar::share::MemoryExporter.
// Thread safety: stated for each function and class.
#pragma once

#include <ashlar/base/version.h>
#include <ashlar/share/descriptor_passing.h>
#include <ashlar/share/exported_memory.h>
#include <ashlar/share/opened_memory.h>
#include <ashlar/share/peer_access.h>
#include <ashlar/share/share_header.h>
#include <ashlar/share/shareable_device.h>
#include <ashlar/share/single_handle_device.h>
