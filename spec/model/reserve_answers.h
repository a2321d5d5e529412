// ReserveAnswers: the part of CacheModel that judges what limits the memory that is reserved (DEV-12,
// DEV-23).
//
// Thread safety: none.
#pragma once

#include "spec/model/cache_model.h"

namespace ashlar::spec {

class ReserveAnswers {
 public:
  /// `model` must outlive this.
  explicit ReserveAnswers(CacheModel& model) : model_(model) {}

  // After CacheModel::begin and the subject's call.
  void judge_set_limit(std::uint64_t limit, Status got);
  void judge_make_room(std::uint64_t free, Status got);

 private:
  /// May a call for room that is not gone answer so? `is_short`: there is too little room after it.
  bool may_refuse_room(const JudgedDevice& device, Code code, bool is_short, bool must_ask);
  /// It answered that too much is in use, whatever it had to wait for: nothing idle is left.
  void judge_used(const JudgedDevice& device);

  CacheModel& model_;
};

}  // namespace ashlar::spec
