// RuleOps: turns each op of a rule case into calls of a Device and a RuleMachine, and keeps what
// the case's names are bound to.
//
// Thread safety: one thread.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "spec/gpu/rule_machine.h"
#include "spec/ops/op.h"

namespace ashlar::spec {

class RuleOps {
 public:
  explicit RuleOps(RuleMachine& machine) : machine_(machine) {}

  /// The op's answer; nullopt if a name is not bound or the op has no meaning in a rule case.
  std::optional<Status> operator()(const Op& op);

 private:
  using Answer = std::optional<Status>;

  /// A segment, pinned range or reservation that the case named.
  struct Named {
    Address at;
    Bytes size;
    std::uint32_t device = 0;
  };
  struct NamedEvent {
    EventHandle handle;
    std::uint32_t device = 0;
  };
  struct NamedPage {
    PageHandle handle;
    std::uint32_t device = 0;
  };

  template <class T>
  T* find(std::map<std::uint64_t, T>& names, std::uint64_t name) {
    const auto it = names.find(name);
    if (it == names.end()) skipped_ = true;
    return it == names.end() ? nullptr : &it->second;
  }
  template <class T>
  Status bind(std::map<std::uint64_t, T>& names, std::uint64_t name, const Result<T>& made) {
    if (made.is_ok()) names[name] = made.value();
    return made.status();
  }
  device::Device* device(std::uint64_t name);
  device::Device& device_of(const Stream& stream) { return machine_.device(index_of(stream)); }
  static std::uint32_t index_of(const Stream& stream) {
    return static_cast<std::uint32_t>(stream.device.value());
  }
  GraphId graph(std::uint64_t number) const {
    return number > 0 && number <= graphs_.size() ? graphs_[number - 1] : GraphId{};
  }

  // Each answers the ops of its group; nullopt for all others.
  Answer stream_op(const Op& op);
  Answer work_op(const Op& op);
  Answer event_op(const Op& op);
  Answer memory_op(const Op& op);
  Answer page_op(const Op& op);
  Answer capture_op(const Op& op);
  Answer begin_body(const Stream& stream, std::uint64_t parent);
  Answer machine_op(const Op& op);
  Answer launch(const Stream& stream, const Op& op);

  RuleMachine& machine_;
  std::map<std::uint64_t, Stream> streams_;
  std::map<std::uint64_t, NamedEvent> events_;
  std::map<std::uint64_t, Named> segments_;
  std::map<std::uint64_t, Named> ranges_;
  std::map<std::uint64_t, NamedPage> pages_;
  std::vector<GraphId> graphs_;
  std::vector<StreamId> bodies_;  ///< streams that capture bodies of conditionals
  bool skipped_ = false;
  bool lag_ = false;
};

}  // namespace ashlar::spec
