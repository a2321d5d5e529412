// Op-wise mutations: see mutate.h.
#include "spec/ops/mutate.h"

#include <algorithm>

#include "spec/ops/bytes.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"

namespace ashlar::spec {

namespace {

using Data = std::vector<std::uint8_t>;

struct Range {
  std::size_t begin;
  std::size_t end;
};

std::ptrdiff_t offset(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }

/// The bytes of one to `ops_max` consecutive ops, chosen at random.
Range pick_run(const Data& data, const std::vector<std::size_t>& starts, std::size_t ops_max,
               Random* random) {
  const std::size_t first = random->below(starts.size());
  const std::size_t last = std::min(starts.size(), first + 1 + random->below(ops_max));
  return {starts[first], last == starts.size() ? data.size() : starts[last]};
}

/// One op with random arguments. Half of these ops are allocations and frees, which every sequence
/// needs most.
Data random_op(Subject subject, Random* random) {
  std::uint8_t s = slot::kNop;
  if (random->one_in(2)) {
    const bool frees = random->one_in(2);
    if (subject == Subject::kCache) s = frees ? slot::kFree : slot::kAlloc;
    if (subject == Subject::kPool) s = frees ? slot::kPoolFree : slot::kPoolAlloc;
  }
  while (!slot_drives(subject, s)) s = static_cast<std::uint8_t>(random->below(256));
  Data op(encoded_size(s));
  for (std::uint8_t& byte : op) byte = static_cast<std::uint8_t>(random->next());
  op[0] = s;
  return op;
}

void insert(Data* data, std::size_t at, const Data& run, std::size_t size_max) {
  if (data->size() + run.size() > size_max) return;
  data->insert(data->begin() + offset(at), run.begin(), run.end());
}

void mutate_once(Subject subject, Data* data, std::size_t size_max, Random* random) {
  std::vector<std::size_t> starts;
  op_starts(*data, &starts);
  if (starts.empty()) return insert(data, 0, random_op(subject, random), size_max);
  const Range run = pick_run(*data, starts, 8, random);
  const Data copy(data->begin() + offset(run.begin), data->begin() + offset(run.end));
  const std::size_t at = starts[random->below(starts.size())];
  switch (random->below(8)) {
    case 0:
    case 1: return insert(data, at, random_op(subject, random), size_max);
    case 2: data->erase(data->begin() + offset(run.begin), data->begin() + offset(run.end)); return;
    case 3: return insert(data, run.end, copy, size_max);  // repeat
    case 4: return insert(data, at, copy, size_max);       // copy elsewhere
    case 5: {                                              // move
      data->erase(data->begin() + offset(run.begin), data->begin() + offset(run.end));
      op_starts(*data, &starts);
      return insert(data, starts.empty() ? 0 : starts[random->below(starts.size())], copy,
                    size_max);
    }
    case 6: {  // swap with the op that follows
      const std::size_t first = random->below(starts.size());
      if (first + 1 >= starts.size()) return;
      const std::size_t end = first + 2 < starts.size() ? starts[first + 2] : data->size();
      std::rotate(data->begin() + offset(starts[first]), data->begin() + offset(starts[first + 1]),
                  data->begin() + offset(end));
      return;
    }
    default: {  // change one byte of an op, rarely its slot
      if (run.end - run.begin < 2) return;
      const std::size_t byte =
          run.begin + (random->one_in(16) ? 0 : 1 + random->below(run.end - run.begin - 1));
      (*data)[byte] = random->one_in(2)
                          ? static_cast<std::uint8_t>(random->next())
                          : static_cast<std::uint8_t>((*data)[byte] + random->below(5) - 2);
      return;
    }
  }
}

}  // namespace

void op_starts(std::span<const std::uint8_t> bytes, std::vector<std::size_t>* starts) {
  starts->clear();
  for (std::size_t at = 0; at < bytes.size(); at += encoded_size(bytes[at])) starts->push_back(at);
}

void mutate_ops(Subject subject, std::vector<std::uint8_t>* data, std::size_t size_max,
                std::uint64_t seed) {
  Random random(seed);
  const std::uint64_t times = 1 + random.below(4);
  for (std::uint64_t i = 0; i < times; ++i) mutate_once(subject, data, size_max, &random);
  if (data->size() > size_max) data->resize(size_max);
}

std::vector<std::uint8_t> splice_ops(std::span<const std::uint8_t> a,
                                     std::span<const std::uint8_t> b, std::size_t size_max,
                                     std::uint64_t seed) {
  Random random(seed);
  std::vector<std::size_t> starts;
  Data child(a.begin(), a.end());
  op_starts(b, &starts);
  if (starts.empty()) return child;
  const Data other(b.begin(), b.end());
  const Range run = pick_run(other, starts, starts.size(), &random);
  op_starts(child, &starts);
  const std::size_t cut = starts.empty() ? 0 : starts[random.below(starts.size())];
  if (random.one_in(2)) child.resize(cut);
  const Data taken(other.begin() + offset(run.begin), other.begin() + offset(run.end));
  child.insert(child.begin() + offset(std::min(cut, child.size())), taken.begin(), taken.end());
  if (child.size() > size_max) child.resize(size_max);
  return child;
}

}  // namespace ashlar::spec
