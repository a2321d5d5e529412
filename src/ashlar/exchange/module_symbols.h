// What an address of this process's code is called: by the symbols of the program and the shared libraries.
//
// Purpose: names of functions where no debugger is at hand. A module's `.symtab` has those of its own files' static
// functions too; where it is stripped, `.dynsym` has what the module exports.
// Thread safety: one thread at a time.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ashlar/exchange/device_history.h>

namespace ashlar::inline v0::exchange {

/// The symbols of the modules that addresses of this process lie in, each module read once.
class ModuleSymbols {
 public:
  /// The function that has the address, demangled, `??` if no symbol says so; and the module with the address's
  /// offset in it. Throws std::bad_alloc. Cost: of a module's first address, it reads the module's symbols.
  Frame frame_at(std::uintptr_t address);

 private:
  struct Function {
    std::uint64_t begin;  ///< in the module
    std::uint64_t size;
    std::uint32_t name;  ///< where it begins in `names`
    auto operator<=>(const Function&) const = default;
  };
  struct Module {
    std::string path;                 ///< as messages show it
    std::vector<Function> functions;  ///< by `begin`; of those with one, the longest is the last
    std::string names;                ///< each ends with a null byte
  };

  /// The functions of the ELF file; none if it cannot be read.
  static void read_functions(const char* path, Module* module);
  /// The name of the module's function at that offset; empty if none is there.
  static std::string name_at(const Module& module, std::uint64_t offset);

  std::map<std::string, Module>
      modules_;  ///< by the dynamic loader's name: empty is the program itself
};

}  // namespace ashlar::inline v0::exchange
