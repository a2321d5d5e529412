// A shared library that is loaded, with a file in its place that the test writes.
//
// Purpose: the names of a module's functions are read from its file when the first of its addresses is asked for; what that file
// holds by then is the test's, byte by byte, while the addresses are of memory that is really there.
// Thread safety: one thread at a time.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ashlar::props {

/// One symbol of a file.
struct ElfSymbol {
  std::string name;
  std::uint64_t value = 0;  ///< where it begins in the module
  std::uint64_t size = 0;
  unsigned char type = STT_FUNC;
};

/// An ELF file with tables of symbols, to be changed before its bytes are made.
struct ElfFile {
  ElfW(Ehdr) header{};
  std::vector<ElfW(Shdr)> sections;  ///< the first is none; their offsets are those in bytes()
  std::string contents;              ///< of the sections, one behind the other

  ElfFile();
  /// Adds a table of that type, and behind it the texts that it refers to.
  void add_table(std::uint32_t type, const std::vector<ElfSymbol>& symbols);
  /// The header, the headers of the sections, and their contents.
  std::string bytes() const;
};

/// A copy of the library of loaded_module.cc, loaded under a path of its own.
class LoadedModule {
 public:
  /// `change(bytes)` may change the copy before it is loaded.
  template <class Change>
  LoadedModule(const std::string& name, Change&& change) {
    std::string bytes = library();
    std::forward<Change>(change)(&bytes);
    load(name, bytes);
  }
  explicit LoadedModule(const std::string& name) { load(name, library()); }
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  const std::string& path() const { return path_; }
  /// What the loader added to the library's addresses.
  std::uintptr_t bias() const { return bias_; }
  /// Where the room of 4096 bytes begins in the module.
  std::uint64_t room() const { return room_; }
  /// Puts another file at the path; the memory stays what it is.
  void replace(const std::string& bytes) const;

 private:
  static std::string library();
  void load(const std::string& name, const std::string& bytes);

  void* handle_ = nullptr;
  std::string path_;
  std::uintptr_t bias_ = 0;
  std::uint64_t room_ = 0;
};

}  // namespace ashlar::props
