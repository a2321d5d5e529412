#include "src/tool/known_file.h"

#include <algorithm>
#include <array>

namespace ashlar::tool {
namespace {

std::string_view first_line(std::string_view bytes) {
  return bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
}

/// Is one of the first line's fields a column that every problem has?
bool names_columns(std::string_view bytes) {
  std::string_view line = first_line(bytes);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  constexpr std::array<std::string_view, 4> kRequired{"id", "lower", "upper", "size"};
  while (true) {
    const std::size_t comma = line.find(',');
    const std::string_view field = line.substr(0, comma);
    if (std::find(kRequired.begin(), kRequired.end(), field) != kRequired.end()) return true;
    if (comma == std::string_view::npos) return false;
    line.remove_prefix(comma + 1);
  }
}

/// Which JSON it is, by a key at its beginning.
KnownFile json_kind(std::string_view bytes) {
  const auto has = [](std::string_view text, std::string_view key) {
    return text.find(key) != std::string_view::npos;
  };
  const std::string_view beginning = bytes.substr(0, 4096);
  if (has(first_line(bytes), "\"alloc-trace\"")) return KnownFile::kTrace;
  if (has(beginning, "\"traceEvents\"")) return KnownFile::kPerfetto;
  if (has(beginning, "\"segments\"") || has(beginning, "\"device_traces\""))
    return KnownFile::kSnapshot;
  return KnownFile::kJson;
}

}  // namespace

const char* text_of(KnownFile kind) {
  switch (kind) {
    case KnownFile::kOther: break;
    case KnownFile::kMarked: return "text with a byte order mark; save it as UTF-8 without one";
    case KnownFile::kGzip: return "gzip data, which is not unpacked here; unpack it first";
    case KnownFile::kZip:
      return "a zip archive, as torch.save() writes; a snapshot is written with pickle.dump()";
    case KnownFile::kOldPickle: return "a pickle of protocol 0 or 1; only 2 to 5 are read";
    case KnownFile::kPickle:
      return "a pickle; `ashlar replay` and `ashlar plan --from-trace` take a memory snapshot";
    case KnownFile::kPacked: return "compressed otherwise than with gzip";
    case KnownFile::kProgram: return "a program";
    case KnownFile::kTrace:
      return "an allocation trace; `ashlar replay` runs it, `ashlar plan --from-trace` plans it";
    case KnownFile::kRmmLog:
      return "a log of RMM; `ashlar replay` runs it, `ashlar plan --from-trace` plans it";
    case KnownFile::kGraph: return "a model's graph; `ashlar graph` and `ashlar schedule` take it";
    case KnownFile::kOps: return "an .ops file; `ashlar check` runs it";
    case KnownFile::kPlan: return "a plan; `ashlar plan` takes it with --verify or --warm-start";
    case KnownFile::kProblem: return "a planning problem; `ashlar plan` plans it";
    case KnownFile::kSnapshot:
      return "a memory snapshot; `ashlar replay` runs it, `ashlar plan --from-trace` plans it";
    case KnownFile::kPerfetto: return "a trace for Chrome or Perfetto, which cannot be read back";
    case KnownFile::kJson: return "JSON of another kind";
    case KnownFile::kPage: return "an HTML page";
  }
  return "";
}

KnownFile known_file(std::string_view bytes) {
  constexpr struct {
    std::string_view begins;
    KnownFile kind;
  } kBeginnings[] = {{"\xef\xbb\xbf", KnownFile::kMarked},
                     {"\xff\xfe", KnownFile::kMarked},
                     {"\xfe\xff", KnownFile::kMarked},
                     {"\x1f\x8b", KnownFile::kGzip},
                     {"\x80", KnownFile::kPickle},
                     {"Thread,", KnownFile::kRmmLog},
                     {"{\"rec\":", KnownFile::kGraph},
                     {"ashlar-ops ", KnownFile::kOps},
                     {"\x89"
                      "APLAN",
                      KnownFile::kPlan},
                     {"PK\x03\x04", KnownFile::kZip},
                     {"(d", KnownFile::kOldPickle},
                     {"}q", KnownFile::kOldPickle},
                     {"\x28\xb5\x2f\xfd", KnownFile::kPacked},
                     {"BZh", KnownFile::kPacked},
                     {"\xfd"
                      "7zXZ",
                      KnownFile::kPacked},
                     {"\x7f"
                      "ELF",
                      KnownFile::kProgram},
                     {"<", KnownFile::kPage},
                     {"{", KnownFile::kJson},
                     {"[", KnownFile::kJson}};
  for (const auto& beginning : kBeginnings) {
    if (!bytes.starts_with(beginning.begins)) continue;
    return beginning.kind == KnownFile::kJson ? json_kind(bytes) : beginning.kind;
  }
  return names_columns(bytes) ? KnownFile::kProblem : KnownFile::kOther;
}

std::string refusal_of(const std::string& path, std::string_view bytes, KnownFile wanted,
                       const std::string& refusal) {
  const KnownFile kind = known_file(bytes);
  const bool is_json_wanted = wanted == KnownFile::kTrace || wanted == KnownFile::kGraph;
  if (kind == wanted || kind == KnownFile::kOther) return refusal;
  if (kind == KnownFile::kJson && is_json_wanted) return refusal;  // the reader says what is wrong
  return path + ": is " + text_of(kind);
}

}  // namespace ashlar::tool
