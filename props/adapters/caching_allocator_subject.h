// The caching allocator behind the specification's interface.
//
// Thread safety: the allocator's.
#pragma once

#include <memory>

#include <ashlar/cache/caching_allocator.h>

#include "spec/model/cache_subject.h"

namespace ashlar::props {

/// Makes the real allocator: parses the configuration string, creates it.
spec::CacheFactory caching_allocator_factory();

/// The allocator behind a subject that the factory made.
cache::CachingAllocator& allocator_of(spec::CacheSubject& subject);

/// A CacheSubject over an allocator made elsewhere, which must outlive it.
std::shared_ptr<spec::CacheSubject> adapt(cache::CachingAllocator& allocator);

}  // namespace ashlar::props
