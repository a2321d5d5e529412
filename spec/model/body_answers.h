// BodyAnswers: the part of CacheModel that judges calls about bodies of conditionals (row DEV-8).
//
// Thread safety: none.
#pragma once

#include "spec/model/cache_model.h"

namespace ashlar::spec {

class BodyAnswers {
 public:
  /// `model` must outlive this.
  explicit BodyAnswers(CacheModel& model) : model_(model) {}

  /// The stream begins to capture the body of a conditional of the parent's capture.
  void judge_begin(const Stream& stream, const Stream& parent, Status got);
  /// The body that the stream captures is over: what it alone kept is free, and what else it used its parent
  /// uses.
  void end(const Stream& stream);

 private:
  /// C8: what is live in the memory that the body shares with its parents is theirs until the body's end.
  void hold_for_parents(JudgedDevice* device, const Stream& body, const Stream& parent);

  CacheModel& model_;
};

}  // namespace ashlar::spec
