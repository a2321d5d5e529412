// PinAnswers: the part of CacheModel that judges calls about memory that stays, and what observers of mappings
// are told.
//
// Thread safety: none.
#pragma once

#include "spec/model/cache_model.h"

namespace ashlar::spec {

class PinAnswers {
 public:
  /// `model` must outlive this.
  explicit PinAnswers(CacheModel& model) : model_(model) {}

  // After CacheModel::begin and the subject's call.
  void judge_pin(std::uint64_t address, const Result<cache::PinnedRange>& got);
  void judge_unpin(const cache::PinnedRange& range, Status got);
  void judge_generation(std::uint64_t address, const Result<std::uint64_t>& got);

  /// What went away and what is there, on every device, now: C21, DEV-24.
  void judge_memory();

  /// An observer of mappings was told that, perhaps inside a call.
  void judge_event(const cache::MappingEvent& event);

 private:
  /// The live block that was asked about; nullptr if the answer is judged: a refusal, or none.
  const OwnedBlock* find_asked(std::uint64_t address, Status got, JudgedDevice** device);
  /// Judges the number of the memory under the range against those named before.
  void judge_named(JudgedDevice& device, std::uint64_t address, std::uint64_t size,
                   std::uint64_t generation);

  CacheModel& model_;
};

}  // namespace ashlar::spec
