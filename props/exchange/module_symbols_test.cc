// Which function of a module an address is in: symbols as files have them, in a file that the test writes.
//
// Imitates: stripped modules, functions of C and of C++, what else a table of symbols holds, and file systems that give a few bytes
// at once. Does not prove: that a compiler's symbols are found (stack_contexts_test.cc).
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <ashlar/exchange/module_symbols.h>

#include "props/exchange/loaded_module.h"

namespace ashlar::props {
namespace {

/// How many bytes a file gives at once; 0: as many as are asked for.
std::size_t bytes_at_once = 0;

}  // namespace
}  // namespace ashlar::props

extern "C" ::ssize_t pread(int file, void* into, std::size_t size, ::off_t at) {
  const std::size_t most = ashlar::props::bytes_at_once;
  return ::syscall(SYS_pread64, file, into, most == 0 ? size : std::min(size, most), at);
}

namespace ashlar::props {
namespace {

/// The name of what is at that place of the room.
std::string name_at(const LoadedModule& module, std::uint64_t place,
                    exchange::ModuleSymbols* symbols) {
  const std::uint64_t offset = module.room() + place;
  const exchange::Frame frame = symbols->frame_at(module.bias() + offset);
  std::ostringstream file;
  file << module.path() << "+0x" << std::hex << offset;
  EXPECT_EQ(frame.filename, file.str());
  EXPECT_EQ(frame.line, 0u);
  return frame.name;
}
std::string name_at(const LoadedModule& module, std::uint64_t place) {
  exchange::ModuleSymbols symbols;
  return name_at(module, place, &symbols);
}

/// A file with one table; the values of its symbols are places in the room.
std::string file_with(const LoadedModule& module, std::vector<ElfSymbol> symbols,
                      std::uint32_t type = SHT_SYMTAB) {
  for (ElfSymbol& symbol : symbols) symbol.value += module.room();
  ElfFile file;
  file.add_table(type, symbols);
  return file.bytes();
}

TEST(ModuleSymbols, AFunctionHasItsAddressesFromTheFirstToTheLast) {
  const LoadedModule module("extents");
  module.replace(file_with(module, {{"later", 200, 10}, {"first", 100, 50}, {"next", 150, 1}}));
  exchange::ModuleSymbols symbols;
  const std::pair<std::uint64_t, const char*> names[] = {
      {0, "??"},   {99, "??"},  {100, "first"}, {149, "first"}, {150, "next"},
      {151, "??"}, {199, "??"}, {200, "later"}, {209, "later"}, {210, "??"}};
  for (const auto& [place, name] : names) EXPECT_EQ(name_at(module, place, &symbols), name);
}

TEST(ModuleSymbols, OfFunctionsThatBeginAtOnePlaceTheLongestCounts) {
  const LoadedModule module("alias");
  const ElfSymbol part{"part", 100, 10}, whole{"whole", 100, 50};
  for (const bool is_first : {false, true}) {
    module.replace(is_first ? file_with(module, {whole, part}) : file_with(module, {part, whole}));
    exchange::ModuleSymbols symbols;
    EXPECT_EQ(name_at(module, 105, &symbols), "whole");
    EXPECT_EQ(name_at(module, 149, &symbols), "whole");
  }
}

TEST(ModuleSymbols, OnlyTheNamesOfCxxFunctionsAreDemangled) {
  const LoadedModule module("demangled");
  // To the demangler `f` and `Pc` are types: float, char*.
  const char* const of_c[] = {"f", "Pc", "main", "_start", "_Z", "_Z7short"};
  for (const char* const name : of_c) {
    module.replace(file_with(module, {{name, 0, 16}}));
    EXPECT_EQ(name_at(module, 8), name);
  }
  module.replace(file_with(module, {{"_ZN1a1bEi", 0, 16}}));
  EXPECT_EQ(name_at(module, 8), "a::b(int)");
}

TEST(ModuleSymbols, SymbolsThatAreNoFunctionsWithANameAndASizeDoNotCount) {
  const LoadedModule module("kinds");
  ElfSymbol inner{"inner", 40, 8};
  const auto name_inside = [&] {
    module.replace(file_with(module, {{"outer", 0, 100}, inner}));
    return name_at(module, 44);
  };
  EXPECT_EQ(name_inside(), "inner");
  for (const int type : {STT_NOTYPE, STT_OBJECT, STT_SECTION, STT_TLS}) {
    inner.type = static_cast<unsigned char>(type);
    EXPECT_EQ(name_inside(), "outer") << type;
  }
  for (const int bind : {STB_LOCAL, STB_GLOBAL, STB_WEAK}) {
    inner.type = static_cast<unsigned char>(ELF64_ST_INFO(bind, STT_FUNC));
    EXPECT_EQ(name_inside(), "inner");
  }
  inner.size = 0;
  EXPECT_EQ(name_inside(), "outer");
}

TEST(ModuleSymbols, ASymbolWhoseNameIsNotInTheFileDoesNotCount) {
  const LoadedModule module("names");
  ElfFile file;
  file.add_table(SHT_SYMTAB, {{"outer", module.room(), 100}, {"inner", module.room() + 40, 8}});
  auto* const inner = reinterpret_cast<ElfW(Sym)*>(file.contents.data()) + 1;
  const auto size = static_cast<std::uint32_t>(file.sections[2].sh_size);
  const auto name_of_inner = [&](std::uint32_t at) {
    inner->st_name = at;
    module.replace(file.bytes());
    return name_at(module, 44);
  };
  EXPECT_EQ(name_of_inner(1), "outer") << "the other one's name";
  EXPECT_EQ(name_of_inner(size - 3), "er");
  EXPECT_EQ(name_of_inner(size - 1), "??") << "an empty one";
  EXPECT_EQ(name_of_inner(size), "outer");
  EXPECT_EQ(name_of_inner(0xffffffff), "outer");
}

TEST(ModuleSymbols, AStrippedModuleHasTheNamesThatItExports) {
  const LoadedModule module("stripped");
  module.replace(file_with(module, {{"exported", 0, 16}}, SHT_DYNSYM));
  EXPECT_EQ(name_at(module, 8), "exported");
  module.replace(file_with(module, {{"neither", 0, 16}}, SHT_HASH));
  EXPECT_EQ(name_at(module, 8), "??");
  for (const bool is_symtab_first : {false, true}) {
    ElfFile both;
    for (const bool is_symtab : {is_symtab_first, !is_symtab_first})
      both.add_table(is_symtab ? SHT_SYMTAB : SHT_DYNSYM,
                     {{is_symtab ? "own" : "exported", module.room(), 16}});
    module.replace(both.bytes());
    EXPECT_EQ(name_at(module, 8), "own");
  }
}

TEST(ModuleSymbols, AModuleIsReadOnce) {
  const LoadedModule module("once");
  exchange::ModuleSymbols symbols;
  module.replace(file_with(module, {{"before", 0, 16}}));
  EXPECT_EQ(name_at(module, 8, &symbols), "before");
  module.replace(file_with(module, {{"behind", 0, 32}}));
  EXPECT_EQ(name_at(module, 8, &symbols), "before");
  EXPECT_EQ(name_at(module, 24, &symbols), "??");
  EXPECT_EQ(name_at(module, 24), "behind") << "by another reader";
}

TEST(ModuleSymbols, AFileMayBeGivenInPieces) {
  const LoadedModule module("pieces");
  module.replace(file_with(module, {{"first", 0, 16}, {"second", 16, 16}}));
  for (bytes_at_once = 1; bytes_at_once <= 256; ++bytes_at_once)
    EXPECT_EQ(name_at(module, 8) + name_at(module, 24), "firstsecond") << bytes_at_once;
  bytes_at_once = 0;
}

TEST(ModuleSymbols, AnAddressIsOfTheModuleWhosePartsHoldIt) {
  // A part that is not loaded says nothing of addresses, whatever extent its header has.
  const std::uint64_t elsewhere = std::uint64_t{1} << 46;
  const LoadedModule module("parts", [](std::string* bytes) {
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(bytes->data());
    auto* part = reinterpret_cast<ElfW(Phdr)*>(bytes->data() + header->e_phoff);
    for (int i = 0; i < header->e_phnum; ++i, ++part) {
      if (part->p_type != PT_GNU_STACK) continue;
      part->p_vaddr = elsewhere;
      part->p_memsz = 4096;
    }
  });
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(module.bias());
  const auto* part = reinterpret_cast<const ElfW(Phdr)*>(module.bias() + header->e_phoff);
  exchange::ModuleSymbols symbols;
  const auto is_of_module = [&](std::uintptr_t address) {
    return symbols.frame_at(address).filename.rfind(module.path() + "+", 0) == 0;
  };
  std::uintptr_t end = module.bias();
  for (const auto* const behind = part + header->e_phnum; part != behind; ++part) {
    if (part->p_type != PT_LOAD) continue;
    end = module.bias() + part->p_vaddr + part->p_memsz;
    EXPECT_TRUE(is_of_module(module.bias() + part->p_vaddr));
    EXPECT_TRUE(is_of_module(end - 1));
  }
  EXPECT_FALSE(is_of_module(module.bias() - 1));
  EXPECT_FALSE(is_of_module(end));
  EXPECT_EQ(symbols.frame_at(module.bias() + elsewhere).name, "??");
  EXPECT_FALSE(is_of_module(module.bias() + elsewhere));
  const exchange::Frame of_none = symbols.frame_at(0xfedcba9876543210);
  EXPECT_EQ(of_none.filename, "0xfedcba9876543210");
  EXPECT_EQ(of_none.line, 0u);
}

TEST(ModuleSymbols, TheProgramIsNamedByItsFile) {
  const exchange::Frame frame = exchange::ModuleSymbols().frame_at(reinterpret_cast<std::uintptr_t>(
      static_cast<std::string (*)(const LoadedModule&, std::uint64_t)>(&name_at)));
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  EXPECT_EQ(frame.filename.rfind(program + "+0x", 0), 0u) << frame.filename;
  EXPECT_NE(frame.name.find("name_at"), std::string::npos) << frame.name;
}

}  // namespace
}  // namespace ashlar::props
