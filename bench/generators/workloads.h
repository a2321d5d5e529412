// Generators of what people run on several streams: public traces have one.
//
// Each is a function of (seed, steps): the same numbers give the same files on every machine and
// compiler.
// Thread safety: pure functions of their recorder.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "bench/generators/workload_recorder.h"

namespace ashlar::bench {

struct Workload {
  const char* name;
  const char* about;    ///< one line
  std::uint32_t steps;  ///< a run's usual length
  void (*generate)(WorkloadRecorder& recorder, std::uint32_t steps);
};

/// Fully sharded training: parameters are gathered one layer ahead on a side stream, gradients
/// reduced on another.
void generate_fsdp(WorkloadRecorder& recorder, std::uint32_t steps);
/// Training fed by copies on a side stream, batches one step ahead.
void generate_host_to_device(WorkloadRecorder& recorder, std::uint32_t steps);
/// Inference by many workers, a stream each, that hand results to each other.
void generate_workers(WorkloadRecorder& recorder, std::uint32_t steps);
/// Language-model serving: continuous batching, KV caches that grow, logits copied out on a side
/// stream.
void generate_serving(WorkloadRecorder& recorder, std::uint32_t steps);

const std::vector<Workload>& workloads();
/// nullptr when there is none of that name.
const Workload* find_workload(std::string_view name);

}  // namespace ashlar::bench
