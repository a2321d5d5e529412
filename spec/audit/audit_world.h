// AuditWorld: runs cache ops on an allocator that somebody else wrote, over a simulated machine, and judges what the
// machine sees.
//
// Purpose: nothing is known of the allocator but its calls (audited_library.h), so each clause is judged by the machine and its
// happens-before detector. The caller is lawful:
//   - a kernel on the allocation's stream writes to all of it at once, so that early reuse shows;
//   - the first use on another stream waits for what the allocation's stream has done, once for each;
//   - what belongs to a thread's default stream is allocated, used and freed on that thread;
//   - a use on another stream is announced where the library can be told. Where it cannot, the allocation's stream waits for it
//     before the free;
//   - nothing is allocated, used or freed on a stream that captures; what the library does for others meanwhile is judged;
//   - all that a stream holds is freed before it is destroyed, and nothing is freed twice but by free-stale.
// An op whose names are not bound, or that does not concern such an allocator, is skipped.
// Ops: device, seed (before the others); alloc, free, use, kernel, stream, destroy, thread, thread-stream, step, drain,
// fail, heal, free-stale, capture-begin, capture-end.
// Thread safety: none. One world at a time in a process, because the CUDA functions act on one machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "spec/audit/audit_findings.h"
#include "spec/audit/audited_library.h"
#include "spec/gpu/sim_gpu.h"
#include "spec/ops/op.h"

namespace ashlar::spec {

class AuditWorld {
 public:
  /// Makes the CUDA functions that the library calls act on that machine.
  using AttachMachine = std::function<void(SimGpu*)>;
  AuditWorld(const AuditedLibrary& library, AttachMachine attach);
  ~AuditWorld();
  AuditWorld(const AuditWorld&) = delete;
  AuditWorld& operator=(const AuditWorld&) = delete;

  /// Told of each op first, and what is known by then, so that a crash has a place and loses nothing else.
  using BeforeOp = std::function<void(const AuditFindings&)>;
  /// Runs all ops, then frees and drains everything. What the library throws ends the world, as a crash.
  AuditFindings run(const OpFile& file, const BeforeOp& before_op);

 private:
  /// The last use of a block by another stream, with the caller's event behind it.
  struct Use {
    StreamId stream;
    EventHandle event;
  };
  struct Block {
    void* address = nullptr;
    std::uint64_t size = 0;
    Stream stream;
    AllocationTag tag = kNoTag;
    bool is_live = false;
    std::vector<StreamId> ordered;  ///< other streams that came after the allocation
    std::vector<Use> uses;          ///< that the allocation's stream has not waited for
  };
  struct BoundStream {
    Stream stream;
    bool is_alive = false;
    bool is_capturing = false;
  };

  void run_all(const OpFile& file, const BeforeOp& before_op);
  void build();
  bool set_up(const Op& op);
  /// False: skipped.
  bool run_op(const Op& op);
  bool allocate(const Op& op);
  /// A request was refused: may it be? `clause` says what is judged by it.
  void on_refusal(const Op& op, const Stream& stream, AuditClause clause);
  /// What a non-null answer is held to.
  void accept(std::uint64_t name, void* address, std::uint64_t size, const Stream& stream);
  bool is_capturing(const Stream& stream) const;
  bool may_free(const Block& block);
  /// REQUIRES: may_free().
  void free(Block& block);
  /// Calls the library.
  void give_back(const Block& block) const;
  bool free_again(std::uint64_t name);
  bool launch(std::uint64_t name, const Stream& stream, Access access);
  bool destroy_stream(std::uint64_t name);
  bool begin_capture(const Op& op);
  bool end_capture(BoundStream& bound);
  void finish();

  /// Notes that the stream has enqueued a use now. The caller's own calls, as below.
  void note_use(Block& block, const Stream& stream);
  /// The block's stream waits for all its uses.
  void wait_for_uses(Block& block);
  /// Work of `later` enqueued from now on comes after that of `before`.
  void order(const Stream& later, const Stream& before);
  BoundStream* find_stream(std::uint64_t name);
  bool may_work_on(const Stream& stream);
  void* ask(std::uint64_t size, const Stream& stream) const;
  std::uint64_t reserved_bytes() const;
  void note_reserved();
  void judge(AuditClause clause, bool holds, const std::string& text);
  void take_faults();

  const AuditedLibrary library_;
  const AttachMachine attach_;
  SimGpuOptions machine_;
  std::unique_ptr<SimGpu> gpu_;
  std::map<std::uint64_t, Block> blocks_;
  std::map<std::uint64_t, BoundStream> streams_;
  AllocationTag last_tag_ = kNoTag;
  std::uint64_t live_bytes_ = 0;
  bool has_misused_ = false;  ///< a block was freed twice
  AuditFindings findings_;
};

}  // namespace ashlar::spec
