// HistoryAnswers: the part of CacheModel that judges a device's history (row DEV-18).
//
// Thread safety: none.
#pragma once

#include <cstdint>

#include "spec/model/cache_model.h"

namespace ashlar::spec {

class HistoryAnswers {
 public:
  /// `model` must outlive this.
  HistoryAnswers(CacheModel& model, DeviceId device) : model_(model), device_(device) {}

  // After the subject's call.
  void judge_start(Status got, const cache::HistoryOptions& options);
  void judge_stop(Status got);
  void judge_annotate(Status got);
  /// A history with its snapshot, both of this moment.
  void judge_snapshot(Status got, const cache::HistorySnapshot& taken);

  /// Reads the events since the last time and follows them. `compares`: and compares what they say is there
  /// with a snapshot.
  void follow(bool compares);

 private:
  HistoryBook& book();
  CacheModel& model_;
  const DeviceId device_;
};

}  // namespace ashlar::spec
