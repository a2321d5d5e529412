// What a file is, by its first bytes: to say so where it is given in place of another, and to keep
// outputs from replacing files of another kind.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ashlar::tool {

enum class KnownFile : std::uint8_t {
  kOther,      ///< not recognised
  kMarked,     ///< text that begins with a byte order mark
  kGzip,       ///< gzip data of any kind
  kZip,        ///< a zip archive, as torch.save() writes
  kOldPickle,  ///< a pickle of protocol 0 or 1
  kPickle,     ///< a pickle of a later protocol
  kPacked,     ///< compressed otherwise: zstd, bzip2, xz
  kProgram,    ///< an ELF file
  kTrace,      ///< an allocation trace
  kRmmLog,     ///< a log of RMM
  kGraph,      ///< a model's graph
  kOps,        ///< operations for `check`
  kPlan,       ///< a plan file
  kProblem,    ///< CSV whose header names columns of a planning problem
  kSnapshot,   ///< a memory snapshot of PyTorch as JSON
  kPerfetto,   ///< a trace for Chrome or Perfetto
  kJson,       ///< other JSON
  kPage,       ///< HTML
};

/// What a file of that kind is, and what takes it; empty for kOther.
const char* text_of(KnownFile kind);

/// Looks at the beginning alone. Cost: linear in the first line, and of JSON in the first 4 KiB.
KnownFile known_file(std::string_view bytes);

/// Why `bytes`, refused as a file of kind `wanted`, are no such file, as one line `path: reason`;
/// `refusal`, the reader's own line, where nothing better is known.
std::string refusal_of(const std::string& path, std::string_view bytes, KnownFile wanted,
                       const std::string& refusal);

}  // namespace ashlar::tool
