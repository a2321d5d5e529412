// ashlar_generate_problem KIND BUFFERS [SEED]
//
// Prints a generated planning problem (problems.h) as CSV. Exit 2 for a wrong command line.
#include <cstdio>
#include <string_view>

#include <ashlar/plan/problem_csv.h>

#include "bench/generators/arguments.h"
#include "bench/generators/problems.h"

int main(int argc, char** argv) {
  using namespace ashlar;
  std::uint32_t buffers = 0;
  std::uint64_t seed = 1;
  const bool is_read = (argc == 3 || argc == 4) && bench::parse_number(argv[2], &buffers) &&
                       buffers > 0 && buffers <= plan::kBuffersMax &&
                       (argc == 3 || bench::parse_number(argv[3], &seed));
  for (const bench::ProblemKind& kind : bench::problem_kinds()) {
    if (!is_read || std::string_view(argv[1]) != kind.name) continue;
    const Result<std::string> text = plan::format_problem_csv(kind.generate(seed, buffers), {});
    std::fwrite(text.value().data(), 1, text.value().size(), stdout);
    return 0;
  }
  std::fprintf(stderr, "usage: ashlar_generate_problem KIND BUFFERS [SEED]\n");
  for (const bench::ProblemKind& kind : bench::problem_kinds())
    std::fprintf(stderr, "  %-10s %s\n", kind.name, kind.about);
  return 2;
}
