// A model's graph from end to end over backends, against a reference in doubles.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <ashlar/sched/graph_scheduler.h>

#include "props/graph/model_graphs.h"
#include "props/graph/reference_values.h"
#include "src/cpu_backend/host_buffers.h"

namespace ashlar::props {

/// The tolerance of a logit, relative to the largest: floats and a cache of halves, whose rounding a float may tip:
/// three units in the last place of a half.
inline constexpr double kEndToEnd = 3.0 / 1024;

/// The whole graph in doubles. An element is named by its byte in its root, so views need nothing; halves
/// are rounded when they are stored, as memory rounds them.
class ReferenceRun {
 public:
  /// The values of leafs are those at `leafs`, by tensor.
  ReferenceRun(const graph::Graph& graph, const std::vector<Address>& leafs);
  double at_place(graph::TensorId id, const Place& at) { return slot(id, at); }

 private:
  double& slot(graph::TensorId id, const Place& at);
  void load(std::uint32_t t, Address from);

  const graph::Graph& graph_;
  std::vector<std::map<std::uint64_t, double>> elements_;  // by root, by byte
};

/// A model over backends: the inputs' and the first layer's weights are on the first backend, the others on the last.
class ModelRun {
 public:
  /// The backends outlive this.
  ModelRun(const ModelGraph& model, std::vector<sched::Backend*> backends);
  ~ModelRun();
  ModelRun(const ModelRun&) = delete;
  ModelRun& operator=(const ModelRun&) = delete;

  /// Runs it once. The largest difference of the first output from the reference, over its largest element; infinite
  /// if one is not finite.
  double difference();
  std::size_t splits() const { return splits_; }

 private:
  struct Weight {
    sched::Backend* home;
    Address at;
  };

  const ModelGraph& model_;
  const std::vector<sched::Backend*> backends_;
  cpu::HostBuffers host_;
  std::vector<Address> leafs_;     // by tensor: the values on the host; null: no leaf
  std::vector<Address> external_;  // by tensor: in the backend's memory
  std::vector<Weight> weights_;
  std::size_t splits_ = 0;
};

}  // namespace ashlar::props
