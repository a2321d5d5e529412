// Fuzz target: the text form of ops. Every text parses, or is refused with a line and a reason. A
// parsed file survives a round trip through its own print, and one through the byte form as far as
// canonical_ops keeps it.
//
// Imitates: hand-edited and cut-off `.ops` files.
// Does not prove: that an op means what its name says.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "spec/ops/bytes.h"
#include "spec/ops/text.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ashlar::spec;
  OpFile file;
  TextError error;
  if (!parse_ops(std::string_view(reinterpret_cast<const char*>(data), size), &file, &error)) {
    require(error.line > 0 && !error.reason.empty() &&
            error.reason.find('\n') == std::string::npos);
    require(file.ops.empty());
    return 0;
  }
  OpFile again;
  require(parse_ops(print_ops(file), &again, &error));
  require(again.subject == file.subject && again.ops == file.ops);

  OpFile decoded;
  decode_ops(file.subject, encode_ops(file), &decoded);
  require(decoded.ops == canonical_ops(file).ops);
  return 0;
}
