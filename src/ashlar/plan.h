// Ashlar's planner: problems, plans and their files; recordings of a run; replays of a plan.
//
// Purpose: the one header that a user of the planner includes. Names stay in their rooms'
// namespaces: ashlar::plan::make_plan, ashlar::replay::Replay.
// Thread safety: stated for each function and class.
#pragma once

#include <ashlar/base/language.h>
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
