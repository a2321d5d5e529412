// Clang's thread-safety attributes, by short names: which lock guards a field, which lock a function
// needs. -Wthread-safety is an error in the clang builds; other compilers ignore them.
//
// Source: the Clang documentation's page "Thread Safety Analysis".
// Thread safety: none needed; attributes produce no code.
#pragma once

#if defined(__clang__)
#define ASHLAR_ATTRIBUTE(x) __attribute__((x))
#else
#define ASHLAR_ATTRIBUTE(x)
#endif

/// On a class whose objects are locks (or roles, such as "reclaiming").
#define ASHLAR_CAPABILITY(name) ASHLAR_ATTRIBUTE(capability(name))
/// On a class whose objects hold a lock from constructor to destructor.
#define ASHLAR_SCOPED_CAPABILITY ASHLAR_ATTRIBUTE(scoped_lockable)
/// On a field: read and written only while the lock is held.
#define ASHLAR_GUARDED_BY(lock) ASHLAR_ATTRIBUTE(guarded_by(lock))
/// On a field beside a lock that does not guard it: the field locks by itself, or never changes while
/// it is shared. A comment, or the field's class, says which. Read by props/house/locks_test.sh only.
#define ASHLAR_UNGUARDED
/// On a function: the caller holds the locks, and still holds them when it returns.
#define ASHLAR_REQUIRES(...) ASHLAR_ATTRIBUTE(requires_capability(__VA_ARGS__))
/// On a function: the caller does not hold the locks, because the function takes them.
#define ASHLAR_EXCLUDES(...) ASHLAR_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ASHLAR_ACQUIRE(...) ASHLAR_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define ASHLAR_RELEASE(...) ASHLAR_ATTRIBUTE(release_capability(__VA_ARGS__))
#define ASHLAR_TRY_ACQUIRE(...) ASHLAR_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
/// On a function whose locking the analysis cannot follow; a comment beside it says why.
#define ASHLAR_NO_THREAD_SAFETY_ANALYSIS ASHLAR_ATTRIBUTE(no_thread_safety_analysis)
