// A sequence in lockstep on a host that refuses one allocation of the library's records.
//
// Thread safety: none, as refusing_host.h, whose refusing_host.cc is linked with it.
#pragma once

#include <cstdint>

#include "props/adapters/caching_allocator_subject.h"
#include "props/host_memory/refusing_host.h"
#include "spec/lockstep/cache_lockstep.h"

namespace ashlar::props {

/// Runs the sequence; the n-th allocation after the allocator was made is refused, 0 for none.
/// `host.refused` and `host.allocations` stay as the run left them.
inline spec::LockstepResult run_refusing(const spec::OpFile& file, std::uint64_t n) {
  host = {};
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  options.host_refusals = [] { return host.refused; };
  spec::CacheLockstep lockstep(options);
  for (const spec::Op& op : file.ops) {
    const bool was_made = lockstep.subject() != nullptr;
    if (!lockstep.step(op)) break;
    if (was_made || lockstep.subject() == nullptr) continue;
    host = {};  // what the first op asked for is not refused
    host.fail_at = n;
  }
  const spec::LockstepResult result = lockstep.finish();
  host.fail_at = 0;
  return result;
}

}  // namespace ashlar::props
