#include "spec/model/process_answers.h"

#include "spec/model/cache_clauses.h"

namespace ashlar::spec {

void ProcessAnswers::judge_process(Status got) {
  JudgedDevice& device = model_.current();
  const CacheState& state = model_.state_;
  device.books.begin_call();
  if (state.streams.is_capturing())
    return model_.judge_refused(device, got, Code::kBusy, Code::kBusy, "a question in a capture");
  const bool is_gone = is_gone_answer(model_.state_, device, got.code());
  if (!is_gone && !got.is_ok())
    model_.report("C16", "a call that only asks answered ", code_name(got.code()));
  if (device.ledger.gained_bytes() + device.ledger.lost_bytes() != 0)
    model_.report("PIN-6", "a call that only asks took or gave back memory");
  if (sum_over_devices(state, [](const CallLedger& each) {
        return each.calls(device::CallKind::kEventSynchronize);
      }) != 0)
    model_.report("PIN-6", "a call that only asks waited for an event");
  model_.end(device, {});
  if (is_gone || !is_all_knowable(state)) return;
  if (!device.map.is_fresh) model_.walk(device);
  for (const cache::SnapshotBlock& block : device.map.view.blocks) {
    if (block.state == BlockState::kPending)
      model_.report("C27", "all work is done and was asked about, but the block at ",
                    block.address.value(), " still waits");
  }
}

}  // namespace ashlar::spec
