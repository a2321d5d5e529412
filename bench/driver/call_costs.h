// What each driver call costs, on an idle device and beside a running kernel, and whether it waits for
// that kernel.
#pragma once

#include "bench/driver/driver_report.h"
#include "bench/driver/driver_session.h"

namespace ashlar::bench {

struct CostOptions {
  std::size_t calls = 1000;     ///< of each case and state
  double seconds_per_case = 3;  ///< after which a case ends with fewer calls
};

void measure_costs(const DriverSession& session, const CostOptions& options, DriverReport* report);

}  // namespace ashlar::bench
