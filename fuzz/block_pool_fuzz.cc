// Fuzz target: the block pool in lockstep with its model, on the byte form of ops. Every input is a
// legal sequence.
//
// A first byte of 0xc0 or more is not an op: it chooses the granule, 16 bytes to 64 KiB. Otherwise
// the granule is 512 bytes. A new segment may be as large as 2^57 bytes, so every size class and
// every address bit is reached. The mutator works on whole ops. A divergence prints both maps side
// by side and aborts. Does not prove: anything about the caller's use of the pool.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "fuzz/op_mutator.h"
#include "props/adapters/block_pool_subject.h"
#include "spec/lockstep/pool_lockstep.h"
#include "spec/ops/bytes.h"

namespace {

using namespace ashlar;

constexpr std::size_t kOpsMax = 2000;
constexpr unsigned kHeavyEvery = 16;
constexpr std::uint8_t kGranuleByteMin = 0xc0;

[[noreturn]] void diverge(const std::string& report) {
  std::fputs(report.c_str(), stderr);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const bool chooses = size > 0 && data[0] >= kGranuleByteMin;
  const Bytes granule{chooses ? std::uint64_t{16} << data[0] % 13 : 512};
  static spec::OpFile file;
  spec::decode_ops(spec::Subject::kPool, std::span(data, size).subspan(chooses ? 1 : 0), &file,
                   kOpsMax);
  props::BlockPoolSubject subject(granule);
  spec::PoolLockstep lockstep(subject, granule, kHeavyEvery);
  for (const spec::Op& op : file.ops) {
    if (!lockstep.step(op)) diverge(lockstep.report());
  }
  if (!lockstep.finish()) diverge(lockstep.report());
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t size_max, unsigned seed) {
  return fuzz::mutate(spec::Subject::kPool, data, size, size_max, seed);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size,
                                                 const std::uint8_t* b, std::size_t b_size,
                                                 std::uint8_t* out, std::size_t size_max,
                                                 unsigned seed) {
  return fuzz::cross_over({a, a_size}, {b, b_size}, out, size_max, seed);
}
