// The facts that the simulated GPU rests on, asked of the driver. Each function leaves the device as it
// was, and makes no kernel touch memory that is not mapped: such a fault would end the process.
//
// Thread safety: one at a time; some start threads of their own.
#pragma once

#include <initializer_list>
#include <string>

#include "bench/driver/driver_report.h"
#include "bench/driver/driver_session.h"

namespace ashlar::bench {

/// Pages, mappings, ranges.
void find_mapping_facts(const DriverSession& session, DriverReport* report);
/// Free memory, sizes, addresses that come back.
void find_memory_facts(const DriverSession& session, DriverReport* report);
/// Events, streams, what waits.
void find_order_facts(const DriverSession& session, DriverReport* report);
/// What waits for the device's work or for another thread's call.
void find_waiting_facts(const DriverSession& session, DriverReport* report);
/// Captures: errors, events, dependencies.
void find_capture_facts(const DriverSession& session, DriverReport* report);
/// Which calls a capture permits.
void find_capture_permits(const DriverSession& session, DriverReport* report);
/// Graphs: replays over other pages, conditional nodes.
void find_graph_facts(const DriverSession& session, DriverReport* report);

/// The names of some answers, without their prefix, one after another.
inline std::string names_of(const DriverSession& session, std::initializer_list<CUresult> results) {
  std::string text;
  for (const CUresult result : results) {
    std::string name = name_of(session, result);
    for (const char* prefix : {"CUDA_ERROR_", "CUDA_"}) {
      if (name.rfind(prefix, 0) == 0) name.erase(0, std::string(prefix).size());
    }
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace ashlar::bench
