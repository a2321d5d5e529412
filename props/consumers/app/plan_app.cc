// A program that plans, and needs the planner alone: two buffers that are never live together get one place.
#include <ashlar/plan.h>

static_assert(ASHLAR_ASSERTIONS == EXPECTED_ASSERTIONS, "the headers must agree with the library");

int main() {
  ashlar::plan::Problem problem;
  problem.buffers.resize(2);
  problem.buffers[0] = {.life = {0, 10}, .size = ashlar::Bytes{4096}};
  problem.buffers[1] = {.life = {10, 20}, .size = ashlar::Bytes{4096}};
  if (!ashlar::plan::check_problem(problem).status.is_ok()) return 1;
  const ashlar::plan::Plan plan = ashlar::plan::make_plan(problem, {});
  return plan.spaces[0].peak == ashlar::Bytes{4096} ? 0 : 2;
}
