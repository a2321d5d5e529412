// Ashlar's scheduler: graphs over several backends.
//
// Purpose: the one header that a user of the scheduler includes. Names stay in their room's namespace:
// ashlar::sched::GraphScheduler. The processor's backend is a library of its own (src/cpu_backend).
// Thread safety: stated for each function and class.
#pragma once

#include <ashlar/base/language.h>
#include <ashlar/base/version.h>
#include <ashlar/sched/backend.h>
#include <ashlar/sched/graph_scheduler.h>
#include <ashlar/sched/schedule.h>
