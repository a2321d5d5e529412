#include "spec/gpu/rule_machine.h"

#include <vector>

namespace ashlar::spec {
namespace {

DeviceId id_of(std::uint32_t device) { return DeviceId{static_cast<std::int32_t>(device)}; }
Address word_at(std::uint32_t word) { return Address{std::uint64_t{word} * 8 + 8}; }

class SimulatedMachine final : public RuleMachine {
 public:
  explicit SimulatedMachine(const SimGpuOptions& options) : sim_(options) {}

  std::uint32_t device_count() const override { return sim_.device_count(); }
  device::Device& device(std::uint32_t index) override { return sim_.device(id_of(index)); }
  Status act_as_thread(std::uint32_t n) override {
    sim_.act_as_thread(n);
    return Status::ok();
  }

  Result<Stream> create_stream(std::uint32_t device, StreamKind kind) override {
    return sim_.create_stream(id_of(device), kind);
  }
  Result<Stream> default_stream(std::uint32_t device, StreamHandle which) override {
    return sim_.default_stream(id_of(device), which);
  }
  Status destroy_stream(const Stream& stream) override { return sim_.destroy_stream(stream); }
  Status launch(const Stream& stream, std::span<const Touch> touches) override {
    return sim_.launch(stream, touches);
  }
  Status launch_faulty(const Stream& stream) override { return sim_.launch_faulty(stream); }
  Status host_function(const Stream& stream, HostFlag flag) override {
    while (flags_.size() <= flag) flags_.push_back(flags_.empty() ? 0 : sim_.new_flag());
    return sim_.host_function(stream, flags_[flag]);
  }
  Status host_function_calling(const Stream& stream, std::uint32_t device) override {
    return sim_.host_function(stream, 0, [this, device] {
      outcome_ = sim_.device(id_of(device)).segment_alloc(512_B).status();
    });
  }
  Status body_outcome() override { return outcome_; }
  Status raise(HostFlag flag) override {
    while (flags_.size() <= flag) flags_.push_back(flags_.empty() ? 0 : sim_.new_flag());
    sim_.raise(flags_[flag]);
    return Status::ok();
  }
  Status write_value(const Stream& stream, std::uint32_t word, std::uint64_t value) override {
    return sim_.write_value(stream, word_at(word), value);
  }
  Status wait_value(const Stream& stream, std::uint32_t word, std::uint64_t value) override {
    return sim_.wait_value(stream, word_at(word), value);
  }
  Status host_write_value(std::uint32_t word, std::uint64_t value) override {
    sim_.host_write_value(word_at(word), value);
    return Status::ok();
  }
  Status collective(const Stream& stream, std::uint32_t group, std::uint32_t members) override {
    return sim_.collective(stream, group, members);
  }
  Status begin_capture(const Stream& stream, device::CaptureMode mode) override {
    return sim_.begin_capture(stream, mode);
  }
  Result<GraphId> end_capture(const Stream& stream) override { return sim_.end_capture(stream); }
  Status begin_body(const Stream& stream, const Stream& parent) override {
    return sim_.begin_body(stream, parent);
  }
  Status end_body(const Stream& stream) override { return sim_.end_body(stream); }
  Status launch_graph(const Stream& stream, GraphId graph, BodyRuns runs) override {
    return sim_.launch_graph(stream, graph, runs);
  }
  Status destroy_graph(GraphId graph) override { return sim_.destroy_graph(graph); }

  Status step(const Stream& stream, std::uint64_t n) override {
    ASHLAR_REQUIRE(sim_.step(stream, n) == n, Code::kNotReady, "fewer could finish");
    return Status::ok();
  }
  Status drain(std::uint32_t device) override { return sim_.drain(id_of(device)); }
  Status drain_all() override { return sim_.drain_all(); }
  Result<std::uint64_t> pending(const Stream& stream) override { return sim_.pending(stream); }
  Status set_lag(std::uint64_t ticks) override {
    sim_.set_lag(ticks);
    return Status::ok();
  }
  void tick() override { sim_.tick(); }
  Status set_capacity(std::uint32_t device, Bytes capacity) override {
    sim_.set_capacity(id_of(device), capacity);
    return Status::ok();
  }
  Status fail(device::CallKind kind, std::uint64_t n, FailMode mode) override {
    sim_.fail(kind, n, mode);
    return Status::ok();
  }
  Status heal() override {
    sim_.heal();
    return Status::ok();
  }
  Status lose(std::uint32_t device) override {
    sim_.lose(id_of(device));
    return Status::ok();
  }
  Status tear_down() override {
    sim_.tear_down();
    return Status::ok();
  }
  bool reports_faults() const override { return true; }
  std::string take_faults() override {
    std::string names;
    for (const Fault& fault : sim_.take_faults())
      names += std::string(fault_name(fault.kind)) + " ";
    return names;
  }

 private:
  SimGpu sim_;
  std::vector<HostFlag> flags_;  // by the case's number; [0] is always raised
  Status outcome_;
};

}  // namespace

std::unique_ptr<RuleMachine> make_simulated_machine(const SimGpuOptions& options) {
  return std::make_unique<SimulatedMachine>(options);
}

}  // namespace ashlar::spec
