#include "props/adapters/replay_subject.h"

#include <utility>

#include <ashlar/replay/replay.h>

namespace ashlar::props {
namespace {

class Subject final : public spec::ReplaySubject {
 public:
  explicit Subject(std::unique_ptr<replay::Replay> replay) : replay_(std::move(replay)) {}
  Upstream& calls() override { return *replay_; }
  Status rewind() override { return replay_->rewind(); }
  replay::ReplayCounts counts() const override { return replay_->counts(); }
  Address base() const override { return replay_->base(); }

 private:
  std::unique_ptr<replay::Replay> replay_;
};

}  // namespace

spec::ReplayLockstep::Factory replay_factory() {
  return [](Upstream& upstream,
            const spec::ReplayLockstep::Setting& setting) -> std::unique_ptr<spec::ReplaySubject> {
    auto replay = replay::Replay::create(upstream, setting.stream, setting.recording, setting.plan,
                                         setting.alignment);
    if (!replay.is_ok()) return nullptr;
    return std::make_unique<Subject>(std::move(replay).value());
  };
}

}  // namespace ashlar::props
