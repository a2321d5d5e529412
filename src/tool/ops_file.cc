#include "src/tool/ops_file.h"

#include <fmt/format.h>

#include "spec/ops/text.h"
#include "src/tool/commands.h"
#include "src/tool/failure.h"
#include "src/tool/files.h"
#include "src/tool/known_file.h"

namespace ashlar::tool {

std::optional<spec::OpFile> read_ops(const std::string& path) {
  std::string error;
  const auto text = read_file(path, &error);
  spec::OpFile file;
  spec::TextError bad;
  if (text && spec::parse_ops(*text, &file, &bad)) return file;
  if (text) {
    error = refusal_of(path, *text, KnownFile::kOps,
                       fmt::format("{}:{}: {}", path, bad.line, bad.reason));
  }
  fail(kExitUnreadable, error);
  return std::nullopt;
}

}  // namespace ashlar::tool
