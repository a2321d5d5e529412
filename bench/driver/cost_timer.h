// CostTimer: times one driver call in batches, between a preparation and its undoing.
//
// Thread safety: none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/driver/call_costs.h"

namespace ashlar::bench {

/// A call to be timed. An empty function does nothing.
struct CostCase {
  std::string call;
  std::string of;
  std::size_t batch = 0;
  std::function<bool()> prepare;             ///< for `batch` calls; false: it cannot
  std::function<CUresult(std::size_t)> run;  ///< call number i of the batch
  std::function<void()> undo;
  std::function<void()> begin_busy;  ///< when the kernel runs; makes the case busy only
};

class CostTimer {
 public:
  CostTimer(const DriverSession& session, const CostOptions& options, DriverReport* report)
      : session_(session), options_(options), report_(report) {}

  void measure(const CostCase& what);

 private:
  CallTimes time_calls(const CostCase& what, bool is_busy);
  /// Whether a call returned only when a kernel beside it had ended.
  bool waits_once(const CostCase& what);

  const DriverSession& session_;
  const CostOptions& options_;
  DriverReport* report_;
};

}  // namespace ashlar::bench
