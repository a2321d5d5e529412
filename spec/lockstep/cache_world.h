// CacheWorld: the caller of the allocator under test, with what its ops name: pointers, streams,
// events, callbacks.
//
// The caller is lawful, so every fault of the allocator's kind is the subject's:
//   - a kernel on the allocation's stream writes to it at once (`touches`), so that early reuse
//     shows;
//   - a use by a kernel on another stream is announced at the latest when the block is freed, that
//     stream retired, or a capture of it begun; one after a capture is announced anew;
//   - a stale address is freed again only if it has not been issued again;
//   - graphs are launched as WorldPools says;
//   - a stream that captured a body takes part in that graph by nothing but bodies of the same parent;
//   - during a capture the caller records, waits for and polls no event of its own.
// An op whose names are not bound, or that a lawful caller could not make now, is skipped (Op
// invariant 2).
// Thread safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "spec/gpu/sim_gpu.h"
#include "spec/lockstep/name_table.h"
#include "spec/lockstep/world_pins.h"
#include "spec/lockstep/world_pools.h"
#include "spec/model/cache_model.h"
#include "spec/model/cache_subject.h"
#include "spec/model/checkpoint_answers.h"

namespace ashlar::spec {

inline DeviceId device_id(std::uint64_t name) { return DeviceId{static_cast<std::int32_t>(name)}; }

/// Is all work of every device done?
bool is_quiet(const SimGpu& gpu);
/// May the acting thread enqueue work on the stream? Not on another thread's default stream: there the
/// handle names its own.
bool may_enqueue(SimGpu& gpu, const Stream& stream);

/// The index of no stream.
inline constexpr std::uint32_t kNoStream = 0xffffffffu;

/// Takes the elements of which `is_one` is true out of the list.
template <class T, class Predicate>
std::vector<T> take_if(std::vector<T>& from, const Predicate& is_one) {
  std::vector<T> taken;
  std::copy_if(from.begin(), from.end(), std::back_inserter(taken), is_one);
  std::erase_if(from, is_one);
  return taken;
}

/// A caller whose host had no memory tries again: the next call works, and the refused one left every
/// structure whole (C13).
template <class Call>
void until_host_has_memory(CacheModel& model, Call&& call) {
  if (call() != Code::kHostOutOfMemory) return;
  if (model.verdict().is_good()) model.judge_structure();
  if (model.verdict().is_good()) static_cast<void>(call());
}

class CacheWorld {
 public:
  struct Pointer {
    enum State : std::uint8_t { kUnbound, kLive, kFreed } state = kUnbound;
    std::uint32_t stream = 0;  ///< index of its stream
    std::uint64_t address = 0;
    std::uint64_t size = 0;  ///< usable
    AllocationTag tag = kNoTag;
    GraphGroup group = 0;  ///< of the memory pool that it came from
  };
  struct NamedEvent {
    EventHandle event;
    DeviceId device;
    bool is_bound = false;
  };

  /// Without streams. All three must outlive this.
  CacheWorld(SimGpu& gpu, CacheSubject& subject, CacheModel& model, bool touches);
  CacheWorld(const CacheWorld&) = delete;
  CacheWorld& operator=(const CacheWorld&) = delete;

  SimGpu& gpu() { return gpu_; }
  CacheSubject& subject() { return subject_; }
  CacheModel& model() { return model_; }
  /// The growth devices that memory pools may have, one for each device.
  std::vector<GrowthSource*>& sources() { return pools_.sources; }

  // The op that runs.
  void begin_op() { op_.was_skipped = false; }
  void skip() { op_.was_skipped = true; }
  bool was_skipped() const { return op_.was_skipped; }
  /// Notes the subject's answer as the op's outcome, and returns it.
  Status answered(Status status) {
    op_.outcome = status.code();
    return status;
  }
  /// The outcome of the last op that was not skipped.
  Code outcome() const { return op_.outcome; }
  std::uint64_t ooms() const { return op_.ooms; }

  // Names.
  Pointer& pointer(std::uint64_t name) { return pointers_[name]; }
  NamedEvent& event(std::uint64_t name) { return events_[name]; }
  /// The stream's index, or kNoStream.
  std::uint32_t stream(std::uint64_t name);
  const Stream& stream_at(std::uint32_t index) const { return streams_[index].stream; }
  bool is_capturing(std::uint32_t index) const { return streams_[index].is_capturing; }
  bool any_capture() const;
  /// The stream that the stream captures a body for, or a body inside one; itself if it captures none.
  std::uint32_t outermost(std::uint32_t index) const {
    while (streams_[index].parent != kNoStream) index = streams_[index].parent;
    return index;
  }
  bool has_device(std::uint64_t name) const { return name < gpu_.device_count(); }
  DeviceId device_of(const Pointer& pointer) const { return stream_at(pointer.stream).device; }

  // What ops do. Streams are given by index; names are bound as the functions need them.
  void allocate(std::uint64_t name, std::uint64_t size, std::uint32_t stream);
  /// Announces what is still to be announced. `stream`: free_on's, or kNoStream.
  void free(std::uint64_t name, std::uint32_t stream);
  /// Frees an address that is no live block's; skips where it has been issued again.
  void free_wrongly(std::uint64_t address, DeviceId device);
  void use(std::uint64_t name, std::uint32_t stream);
  /// A call that must be refused names the stream that `name` was bound to and that ended last:
  /// kind % 4 is an end of a capture, a use or a free of a foreign address, an allocation (an end of
  /// a capture where nobody else has the dead handle: then an allocation need not be refused). Skips
  /// where nothing ended under that name.
  void name_dead(std::uint64_t name, std::uint64_t kind);
  void launch(std::uint32_t stream, std::uint64_t name, Access access);
  /// A thread's default stream may have other names already.
  void bind_stream(std::uint64_t name, const Stream& stream);
  void end_stream(std::uint32_t stream, std::uint64_t name, bool is_announced);
  /// The event is made at its first record, on the device of the stream.
  void record_event(std::uint64_t name, std::uint32_t stream);
  void set_lag(std::uint64_t ticks);
  /// A tick of the machine, where set_lag asked for it.
  void tick();
  /// The next free-memory callback frees that pointer, or tries to allocate; once.
  void free_in_callback(std::uint64_t name);
  void allocate_in_callback();
  /// Ends every capture, and drops what is planned for later. Then all work is finished, or the
  /// subject is told of all uses that it does not know.
  void quiesce(bool finishes_work);

 private:
  friend class PoolCaller;        // its memory pools: pool_caller.h
  friend class CaptureCaller;     // captures: capture_caller.h
  friend class CheckpointCaller;  // checkpoints of those: checkpoint_caller.h
  friend class PinCaller;         // memory that stays, or is sent: pin_caller.h

  struct OpResult {
    Code outcome = Code::kOk;
    bool was_skipped = false;
    std::uint64_t ooms = 0;  ///< of all ops so far
  };
  /// How the caller works.
  struct Habits {
    const bool touches;
    bool is_lagging = false;
  };
  /// What a stream's name is bound to: index + 1; 0 = nothing.
  struct StreamName {
    std::uint32_t alive = 0;
    std::uint32_t ended = 0;  ///< the stream of that name that ended last
  };
  struct StreamSlot {
    Stream stream;
    bool is_capturing = false;
    std::uint32_t origin = 0;           ///< the index of the stream on which that capture began
    AllocationTag before_tag = kNoTag;  ///< of the allocations before that capture
    std::uint32_t parent = kNoStream;   ///< of a body: whose capture has it
    /// Inside whose capture it has captured bodies, until the end of that.
    std::uint32_t bodies_of = kNoStream;
    bool has_body = false;  ///< a body of what it captures is being captured
    std::vector<AllocationTag>
        made;  ///< in the body, of the memory that it shares with its parents
    std::vector<GraphGroup> captured;  ///< whose memory the capture has touched
    bool is_alive = true;
    bool has_allocated = false;  ///< so that the subject knows it
    /// It was named while a device was to fail, or while it captured: then nobody could say whom its
    /// handle names.
    bool may_be_unasked = false;

    /// The subject is about to be told of the stream.
    void note_named(const SimGpu& gpu) {
      may_be_unasked = may_be_unasked || gpu.has_planned_failures() || is_capturing;
    }
  };

  /// A use by a kernel that the subject has not been told of.
  struct Unannounced {
    std::uint64_t pointer;
    std::uint32_t stream;
  };
  /// Whose an allocation is: the pointer it is bound to, and the index of its stream.
  struct Issued {
    std::uint64_t name = 0;
    std::uint32_t stream = 0;
  };
  struct Checkpoint {
    cache::PoolCheckpoint subjects;
    SavedPool saved;
    std::vector<Issued> pointers;  ///< parallel to saved.blocks
  };
  struct Checkpoints {
    Checkpoint& operator[](std::uint64_t name) { return kept[name % kept.size()]; }
    NameTable<Issued> issued;  ///< by tag
    std::array<Checkpoint, 4> kept;
  };
  /// What the next free-memory callback does.
  struct Callback {
    std::vector<std::uint64_t> frees;
    bool allocates = false;
    bool is_installed = false;
  };

  void announce(const Pointer& pointer, std::uint32_t stream);
  void install_callback();
  void call_back();

  SimGpu& gpu_;
  CacheSubject& subject_;
  CacheModel& model_;
  Habits habits_;
  OpResult op_;
  AllocationTag next_tag_ = 1;
  NameTable<Pointer> pointers_;
  NameTable<StreamName> stream_names_;
  NameTable<NamedEvent> events_;
  std::vector<StreamSlot> streams_;
  std::vector<Unannounced> unannounced_;
  Callback callback_;
  WorldPools pools_;
  WorldPins pins_;
  Checkpoints checkpoints_;
};

/// The stream, or kNoStream where the caller may enqueue nothing on it.
inline std::uint32_t stream_for_work(CacheWorld& world, std::uint64_t name) {
  const std::uint32_t s = world.stream(name);
  return s == kNoStream || may_enqueue(world.gpu(), world.stream_at(s)) ? s : kNoStream;
}

}  // namespace ashlar::spec
