// Ashlar's planner: problems, plans, their files; recording a run, and serving later runs by a
// plan.
//
// Purpose: all that the planner's user includes. Names keep their rooms: ashlar::plan::make_plan,
// ashlar::replay::Replay.
// Thread safety: each function and class says.
#pragma once

#include <ashlar/base/version.h>
#include <ashlar/plan/plan_file.h>
#include <ashlar/plan/planner.h>
#include <ashlar/plan/problem_csv.h>
#include <ashlar/plan/replan.h>
#include <ashlar/replay/recorder.h>
#include <ashlar/replay/recording.h>
#include <ashlar/replay/replay.h>
#include <ashlar/replay/router.h>
#include <ashlar/replay/validation.h>
