// ProcessAnswers: the part of CacheModel that judges a call for events that are done (PIN-6, C27).
//
// Thread safety: none.
#pragma once

#include "spec/model/cache_model.h"

namespace ashlar::spec {

class ProcessAnswers {
 public:
  /// `model` must outlive this.
  explicit ProcessAnswers(CacheModel& model) : model_(model) {}

  // After CacheModel::begin and the subject's call.
  void judge_process(Status got);

 private:
  CacheModel& model_;
};

}  // namespace ashlar::spec
