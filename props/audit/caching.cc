// A small caching allocator: blocks of powers of two, kept with the event of their free. Each macro plants a bug that some
// allocator once had; without one no clause is broken but as said below.
//
//   PLANT_EARLY_REUSE   any stream gets a block at once
//   PLANT_H1            a list that takes another stream's blocks keeps its own old event for them
//   PLANT_H5            streams are told apart by their handles, so the default streams of two threads are one
//   PLANT_H33           a block that is freed twice is kept twice
//
// Thread safety: none.
#include <algorithm>
#include <map>
#include <vector>

#include "props/audit/cuda_calls.h"

namespace {

struct Kept {
  void* block = nullptr;
  std::size_t size = 0;
  int device = 0;
  void* stream = nullptr;
  void* event = nullptr;  ///< of the last free
};

std::vector<Kept> kept;
std::map<void*, Kept> live;

std::size_t rounded(std::size_t size) {
  std::size_t power = 512;
  while (power < size) power *= 2;
  return power;
}

bool may_take(const Kept& one, int device, [[maybe_unused]] void* stream) {
  if (one.device != device) return false;
#if defined(PLANT_EARLY_REUSE)
  return true;
#elif defined(PLANT_H5)
  return one.stream == stream || cudaEventQuery(one.event) == 0;
#else
  return cudaEventQuery(one.event) == 0;
#endif
}

#if defined(PLANT_H1)
/// The stream's list takes all blocks of another one, behind that one's event. Its own event stays what it was.
void merge_lists(int device, void* stream) {
  const auto own = std::find_if(kept.begin(), kept.end(), [&](const Kept& one) {
    return one.device == device && one.stream == stream;
  });
  if (own == kept.end()) return;
  for (Kept& one : kept) {
    if (one.device != device || one.stream == stream) continue;
    cudaStreamWaitEvent(stream, one.event, 0);
    cudaEventDestroy(one.event);
    cudaEventCreateWithFlags(&one.event, ashlar::audited::kNoTiming);  // complete: own's old work
    one.stream = stream;
  }
}
#endif

}  // namespace

extern "C" void* audit_alloc(std::size_t size, int device, void* stream) {
  const ashlar::audited::CaptureRelaxer relaxed;
  cudaSetDevice(device);
  const std::size_t wanted = rounded(size);
  const auto take = [&]() -> void* {
    const auto found = std::find_if(kept.begin(), kept.end(), [&](const Kept& one) {
      return one.size == wanted && may_take(one, device, stream);
    });
    if (found == kept.end()) return nullptr;
    void* const block = found->block;
    live[block] = *found;
    live[block].stream = stream;
    kept.erase(found);
    return block;
  };
  if (void* const block = take()) return block;
#if defined(PLANT_H1)
  merge_lists(device, stream);
  if (void* const block = take()) return block;
#endif
  Kept made{nullptr, wanted, device, stream, nullptr};
  if (cudaEventCreateWithFlags(&made.event, ashlar::audited::kNoTiming) != 0) return nullptr;
  while (cudaMalloc(&made.block, wanted) != 0) {
    const auto idle = std::find_if(kept.begin(), kept.end(), [&](const Kept& one) {
      return one.device == device && cudaEventQuery(one.event) == 0;
    });
    if (idle == kept.end()) {
      cudaEventDestroy(made.event);
      return nullptr;
    }
    if (cudaFree(idle->block) == 0) {
      cudaEventDestroy(idle->event);
      kept.erase(idle);
    }
  }
  live[made.block] = made;
  return made.block;
}

extern "C" void audit_free(void* block, std::size_t, int device, void* stream) {
  const ashlar::audited::CaptureRelaxer relaxed;
  const auto found = live.find(block);
  if (found == live.end()) return;
  cudaSetDevice(device);
  if (cudaEventRecord(found->second.event, stream) != 0) cudaStreamSynchronize(stream);
  kept.push_back(found->second);
#if !defined(PLANT_H33)
  live.erase(found);
#endif
}

extern "C" void audit_empty_cache() {
  const ashlar::audited::CaptureRelaxer relaxed;
  for (const Kept& one : kept) {
    cudaSetDevice(one.device);
    if (cudaEventQuery(one.event) != 0) continue;
    cudaFree(one.block);
    cudaEventDestroy(one.event);
  }
  kept.clear();
}
