#include "spec/model/history_answers.h"

#include <string>

namespace ashlar::spec {
namespace {

constexpr const char* kClause = "DEV-18";

}  // namespace

HistoryBook& HistoryAnswers::book() {
  return model_.state_.histories[static_cast<std::size_t>(device_.value())];
}

void HistoryAnswers::judge_start(Status got, const cache::HistoryOptions& options) {
  if (got.code() == Code::kHostOutOfMemory) return;
  const Code expected = options.events_max == 0 ? Code::kInvalidArgument
                        : book().is_on()        ? Code::kBusy
                                                : Code::kOk;
  if (got.code() != expected)
    return model_.report(kClause, "a start of the history answered ", code_name(got.code()));
  if (!got.is_ok()) return;
  cache::Snapshot now;
  if (model_.state_.subject.snapshot(device_, &now).is_ok()) book().begin(now, 0);
}

void HistoryAnswers::judge_stop(Status got) {
  const Code expected = book().is_on() ? Code::kOk : Code::kNotFound;
  if (got.code() != expected)
    model_.report(kClause, "an end of the history answered ", code_name(got.code()));
  book().end();
}

void HistoryAnswers::judge_annotate(Status got) {
  if (got.code() == Code::kHostOutOfMemory) return;
  const Code expected = book().is_on() ? Code::kOk : Code::kNotFound;
  if (got.code() != expected)
    model_.report(kClause, "an annotation answered ", code_name(got.code()));
}

void HistoryAnswers::judge_snapshot(Status got, const cache::HistorySnapshot& taken) {
  if (got.code() == Code::kHostOutOfMemory) return;
  if (!got.is_ok())
    return model_.report(kClause, "a snapshot with history answered ", code_name(got.code()));
  const std::vector<cache::HistoryEvent>& events = taken.history.events;
  if (!book().is_on()) {
    if (!events.empty()) model_.report(kClause, "a snapshot has events of no history");
    return;
  }
  follow(true);
  if (!model_.verdict().is_good()) return;
  if (events.empty() || events.back().action != cache::HistoryAction::kSnapshot ||
      events.back().sequence + 1 != book().next())
    return model_.report(kClause, "the snapshot is not the last event of its history");
  if (events.front().sequence != taken.history.lost)
    model_.report(kClause, "the events lost are not those before the first");
  if (const std::string other = book().difference(taken.snapshot); !other.empty())
    model_.report(kClause, "the snapshot of a history differs: ", other);
}

void HistoryAnswers::follow(bool compares) {
  if (!book().is_on()) return;
  cache::History read;
  const Status got = model_.state_.subject.read_history(device_, book().next(), &read);
  if (got.code() == Code::kHostOutOfMemory) return;
  if (!got.is_ok())
    return model_.report(kClause, "a read of the history answered ", code_name(got.code()));
  cache::Snapshot now;
  const bool has_snapshot =
      (compares || read.lost > 0) && model_.state_.subject.snapshot(device_, &now).is_ok();
  if (read.lost > 0) {  // a short history: the book goes on from what is there
    const std::uint64_t next = book().next() + read.lost + read.events.size();
    if (has_snapshot) book().begin(now, next);
    else book().end();
    return;
  }
  for (const cache::HistoryEvent& event : read.events) {
    if (const std::string wrong = book().follow(event); !wrong.empty())
      return model_.report(kClause, wrong);
  }
  if (!has_snapshot) return;
  if (const std::string other = book().difference(now); !other.empty())
    model_.report(kClause, other);
}

}  // namespace ashlar::spec
