// A shared library for LD_PRELOAD that keeps a SleepingThread in a benchmark program of an older
// checkout, which does not start one itself (bench/against).
#include "bench/sleeping_thread.h"

namespace {
const ashlar::bench::SleepingThread sleeping_thread;
}
