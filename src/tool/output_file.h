// A result's file: opened before the work, so that a bad path costs no work, and written whole at
// its end.
//
// Where it goes: `-` is standard output. A device or a FIFO is written through. A regular
// file is replaced by a rename: another program sees the old bytes or the new ones, and a failure
// leaves the old. Links are followed, mode and owner are kept. Where a rename would lose something
// (a file with several names, a folder without write permission, an owner that cannot be given), the
// file itself is rewritten.
// Thread safety: one thread.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "src/tool/known_file.h"
#include "src/tool/signals.h"

namespace ashlar::tool {

class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile() { close(); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Opens `path` and changes nothing there yet. An existing file that is not empty and not of this
  /// kind, plain or gzip, is refused: an option without its value would take a user's trace for it.
  /// False: `*error` is `path: reason`. Blocks on a FIFO until it has a reader.
  bool open(const std::string& path, KnownFile kind, std::string* error);
  /// Was it opened?
  bool is_open() const { return fd_ >= 0; }
  /// Is it `-`?
  bool is_stdout() const { return is_stdout_; }
  /// Are both one regular file, or both standard output?
  bool is_same_as(const OutputFile& other) const;
  /// Writes the file whole, and closes it; nothing if it was not opened. False: `*error` is
  /// `path: reason`.
  bool write(std::string_view bytes, std::string* error);

 private:
  bool open_existing(std::string* error);
  bool open_beside();
  bool open_in_place();
  bool fail(std::string* error);
  void close();

  std::string path_;
  std::string target_;  ///< a regular file's own path, without links; empty: of another sort
  TemporaryName temporary_;
  int fd_ = -1;
  bool is_stdout_ = false;
};

/// One output of a command: its option's name, the path that the option gave (empty: none), and the
/// file.
struct OutputRequest {
  const char* option;
  const std::string& path;
  KnownFile kind;
  OutputFile* file;
};

/// Opens every output that has a path. kExitDone, or the exit code after a line on stderr: two
/// outputs to one place are a usage error, one that cannot be opened is kExitUnreadable.
int open_outputs(std::initializer_list<OutputRequest> outputs);

}  // namespace ashlar::tool
