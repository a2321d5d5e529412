// PinCaller: the part of a world's caller that pins memory, asks for backing generations, and sends memory over
// the network.
//
// The caller is lawful: it sends only what is live.
// Thread safety: none.
#pragma once

#include "spec/lockstep/cache_world.h"
#include "spec/model/pin_answers.h"

namespace ashlar::spec {

class PinCaller {
 public:
  /// `world` must outlive this.
  explicit PinCaller(CacheWorld& world) : world_(world), answers_(world.model()) {}

  void pin(std::uint64_t pointer, std::uint64_t name);
  /// Of what is not pinned any more, too: a misuse.
  void unpin(std::uint64_t name);
  void unpin_all();
  void ask_generation(std::uint64_t pointer);
  /// A call that must be refused: asks for the memory under an address that was freed.
  void pin_stale(std::uint64_t pointer);
  void register_memory(std::uint64_t pointer);
  void send(std::uint64_t pointer);
  void deregister(std::uint64_t pointer);

  /// The subject's observer of mappings is told that.
  void on_mapping(const cache::MappingEvent& event);

 private:
  bool is_gone(const CacheWorld::Pointer& pointer) const {
    return world_.model().end_of(world_.device_of(pointer)) != Code::kOk;
  }

  /// Without an observer of mappings the library would send through stale registrations.
  bool may_register() const { return world_.model().told().observes_mappings; }

  CacheWorld& world_;
  PinAnswers answers_;
};

}  // namespace ashlar::spec
