// The deep exhaustive search (props/sequences/exhaustive.h). ci/deep runs it.
//
//   ashlar_exhaustive words DEPTH [PART PARTS]   every word of DEPTH letters; prints `words`
//   ashlar_exhaustive states DEPTH               every state; prints `states transitions`
//
// A divergence ends it: the word is printed; exit 1. Exit 2: usage.
// Thread safety: one thread; parts run in processes of their own.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "props/sequences/exhaustive.h"

namespace ashlar::props {
namespace {

int usage() {
  std::fprintf(stderr, "usage: ashlar_exhaustive words DEPTH [PART PARTS] | states DEPTH\n");
  return 2;
}

void tell(unsigned depth, const SearchCounts& counts) {
  std::fprintf(stderr, "depth %u: %llu states, %llu transitions\n", depth,
               static_cast<unsigned long long>(counts.states),
               static_cast<unsigned long long>(counts.transitions));
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool has_part = what == "words" && argc == 5;
  if (!has_part && (argc != 3 || (what != "words" && what != "states"))) return usage();
  const auto number = [argv](int i) { return static_cast<unsigned>(std::atoi(argv[i])); };
  const unsigned depth = number(2);
  WordsPart part;
  if (has_part) part = {number(3), number(4)};
  if (depth == 0 || part.part >= part.parts) return usage();
  const bool is_words = what == "words";
  const SearchCounts counts =
      is_words ? all_words({}, depth, part) : all_states({.has_kernels = false}, depth, tell);
  if (!counts.failure.empty()) {
    std::fprintf(stderr, "%s", counts.failure.c_str());
    return 1;
  }
  if (is_words) std::printf("%llu\n", static_cast<unsigned long long>(counts.words));
  else
    std::printf("%llu %llu\n", static_cast<unsigned long long>(counts.states),
                static_cast<unsigned long long>(counts.transitions));
  return 0;
}

}  // namespace
}  // namespace ashlar::props

int main(int argc, char** argv) { return ashlar::props::run(argc, argv); }
