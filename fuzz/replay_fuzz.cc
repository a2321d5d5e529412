// Fuzz target: record, validate and replay, each in lockstep with its model
// (props/plan/replay_case.h says what the bytes are). Every input is a case.
//
// Imitates: steps that deviate from the recorded run in every way, over a failing upstream.
// Does not prove: anything about threads.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "props/adapters/replay_subject.h"
#include "props/plan/replay_case.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ashlar;
  const props::ReplayOutcome outcome =
      run_replay_case(props::replay_case_of({data, size}), props::replay_factory());
  if (!outcome.divergence) return 0;
  std::fprintf(stderr, "%s: %s\n", outcome.divergence.clause.c_str(),
               outcome.divergence.text.c_str());
  std::abort();
}
