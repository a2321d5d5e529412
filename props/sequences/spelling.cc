// See spelling.h.
#include "props/sequences/spelling.h"

#include "props/sequences/cache_state_words.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"

namespace ashlar::props {
namespace {

namespace slot = spec::slot;

constexpr std::uint64_t kSizes[] = {512, 3u << 19, 12u << 20};
constexpr std::uint64_t kCapacity = 32u << 20;
constexpr std::uint64_t kLimit = 20u << 20;

bool is_once_in_a_word(std::uint8_t op) {
  return op == slot::kCaptureBegin || op == slot::kCaptureEnd || op == slot::kFail ||
         op == slot::kLimit;
}

}  // namespace

Speller::Speller(const Alphabet& alphabet) : alphabet_(alphabet), lockstep_(options(alphabet)) {
  put_conf("backing:segments");  // a state does not say where pages are mapped
  put(slot::kDevice, {0, kCapacity});
  put(slot::kStreamCreate, {1, 0});
}

spec::CacheLockstep::Options Speller::options(const Alphabet& alphabet) {
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  options.machine.adversarial = false;  // equal states have equal addresses
  options.touch = alphabet.has_kernels;
  return options;
}

void Speller::put_conf(const char* text) {
  spec::Op op;
  op.slot = slot::kConf;
  op.text = text;
  lockstep_.step(op);
}

bool Speller::put(std::uint8_t op_slot, std::array<std::uint64_t, spec::kArgsMax> arg) {
  spec::Op op;
  op.slot = op_slot;
  op.arg = arg;
  return lockstep_.step(op);
}

bool Speller::spell(const Letter& letter) {
  if (is_once_in_a_word(letter.slot)) once_ |= std::uint64_t{1} << letter.slot;
  switch (letter.slot) {
    case slot::kAlloc: return allocate(letter);
    case slot::kFree: {
      const Live block = live_[letter.place];
      live_.erase(live_.begin() + letter.place);
      return put(letter.slot, {block.name});
    }
    case slot::kUse: {
      const Live& block = live_[letter.place];
      const std::uint64_t other = 1u - block.stream;
      if (alphabet_.has_kernels && !put(slot::kKernel, {other, block.name, 2})) return false;
      return put(letter.slot, {block.name, other});
    }
    case slot::kStep: return put(letter.slot, {letter.stream, 1});
    case slot::kFail:
      return put(letter.slot, {static_cast<std::uint64_t>(device::CallKind::kSegmentAlloc), 1, 0});
    case slot::kLimit: return put(letter.slot, {0, kLimit});
    default: return put(letter.slot, {0});
  }
}

bool Speller::allocate(const Letter& letter) {
  if (!put(letter.slot, {next_, kSizes[letter.size], letter.stream})) return false;
  if (lockstep_.outcome() == Code::kOk) enter({newest_address(), next_, letter.stream});
  ++next_;
  return true;
}

void Speller::letters(Word* letters) const {
  letters->clear();
  for (std::uint8_t size = 0; size < std::size(kSizes); ++size) {
    for (std::uint8_t s = 0; s < (next_ == 0 ? 1 : 2); ++s)
      letters->push_back({slot::kAlloc, 0, size, s});
  }
  for (std::uint8_t i = 0; i < live_.size(); ++i) letters->push_back({slot::kFree, i, 0, 0});
  for (std::uint8_t i = 0; i < live_.size(); ++i) letters->push_back({slot::kUse, i, 0, 0});
  for (std::uint8_t s = 0; s < 2; ++s) letters->push_back({slot::kStep, 0, 0, s});
  letters->push_back({slot::kTrim, 0, 0, 0});
  // On the first stream, and so only once an allocation has told the streams apart.
  if (!alphabet_.has_events || next_ == 0) return;
  if (!was_spelt(slot::kCaptureBegin)) letters->push_back({slot::kCaptureBegin, 0, 0, 0});
  else if (!was_spelt(slot::kCaptureEnd)) letters->push_back({slot::kCaptureEnd, 0, 0, 0});
  if (!was_spelt(slot::kFail)) letters->push_back({slot::kFail, 0, 0, 0});
  if (!was_spelt(slot::kLimit)) letters->push_back({slot::kLimit, 0, 0, 0});
}

StateHash Speller::state() {
  words_ = {once_, lockstep_.gpu()->has_planned_failures() ? 1u : 0u, next_ == 0 ? 1u : 0u};
  append_state(allocator_of(*lockstep_.subject()), DeviceId{0}, *lockstep_.gpu(), &words_);
  StateHash hash{1, 2};
  for (const std::uint64_t word : words_) {
    hash.first = spec::Random(hash.first ^ word).next();
    hash.second = spec::Random(hash.second + word).next();
  }
  return hash;
}

/// The address that the model knows and the list of live blocks does not.
std::uint64_t Speller::newest_address() {
  for (const auto& [address, block] : lockstep_.model()->device(DeviceId{0}).books.owned()) {
    bool is_known = block.is_pending;
    for (const Live& live : live_) is_known = is_known || live.address == address;
    if (!is_known) return address;
  }
  return 0;
}

void Speller::enter(const Live& block) {
  auto at = live_.begin();
  while (at != live_.end() && at->address < block.address) ++at;
  live_.insert(at, block);
}

std::string text_of(const Word& word, const spec::LockstepResult& result) {
  std::string text = result.divergence.clause + ": " + result.divergence.text + "\n";
  for (const Letter& letter : word) {
    text += std::string(spec::op_info(letter.slot).name) + " place " +
            std::to_string(letter.place) + " size " + std::to_string(kSizes[letter.size]) +
            " stream " + std::to_string(letter.stream) + "\n";
  }
  return text + result.maps;
}

}  // namespace ashlar::props
