#include <ashlar/exchange/label_contexts.h>

#include <ashlar/base/exceptions.h>

namespace ashlar::inline v0::exchange {

cache::ContextId LabelContexts::gather() noexcept {
  return cache::ContextId{LabelScope::number_in(LabelScope::innermost(), *this)};
}

std::vector<Frame> LabelContexts::frames_of(cache::ContextId context) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Frame> frames;
  for (std::uint64_t n = context.value(); n != 0 && n <= labels_.size();
       n = labels_[static_cast<std::size_t>(n - 1)].outer)
    frames.push_back({labels_[static_cast<std::size_t>(n - 1)].text, {}, 0});
  return frames;
}

std::uint64_t LabelContexts::number_of(std::uint64_t outer, std::string_view text) noexcept {
  std::uint64_t number = 0;
  static_cast<void>(with_host_memory([&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = numbers_.try_emplace({outer, std::string(text)}, 0).first;
    if (at->second == 0) {
      labels_.push_back({outer, std::string(text)});
      at->second = labels_.size();
    }
    number = at->second;
  }));
  return number;
}

const LabelScope*& LabelScope::innermost() noexcept {
  thread_local const LabelScope* scope = nullptr;
  return scope;
}

std::uint64_t LabelScope::number_in(const LabelScope* scope, const LabelContexts& labels) noexcept {
  while (scope != nullptr && &scope->labels_ != &labels) scope = scope->outer_;
  return scope == nullptr ? 0 : scope->number_;
}

LabelScope::LabelScope(LabelContexts& labels, std::string_view text) noexcept
    : labels_(labels), outer_(innermost()) {
  const std::uint64_t around = number_in(outer_, labels);
  number_ = labels.number_of(around, text);
  if (number_ == 0) number_ = around;
  innermost() = this;
}

LabelScope::~LabelScope() { innermost() = outer_; }

}  // namespace ashlar::inline v0::exchange
