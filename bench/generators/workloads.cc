#include "bench/generators/workloads.h"

namespace ashlar::bench {

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = {
      {"fsdp", "fully sharded training: prefetched gathers and reduced gradients on side streams",
       12, generate_fsdp},
      {"host_to_device", "training on batches copied one step ahead on a side stream", 60,
       generate_host_to_device},
      {"workers", "inference by 16 workers with a stream each, results handed on", 2000,
       generate_workers},
      {"serving", "language-model serving with growing KV caches, a copy stream beside", 200,
       generate_serving},
  };
  return all;
}

const Workload* find_workload(std::string_view name) {
  for (const Workload& workload : workloads()) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

}  // namespace ashlar::bench
