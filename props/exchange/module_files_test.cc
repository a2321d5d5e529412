// Files that are not what a module's file should be: cut short, of another kind, with numbers that lead out of them.
//
// Imitates: a library that is replaced or removed while programs use it. A name is then not known, and nothing else happens.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include <ashlar/exchange/module_symbols.h>

#include "props/exchange/loaded_module.h"

namespace ashlar::props {
namespace {

/// A module, and a file for it with the functions `outer` and in it `inner`, which can be spoiled.
class ModuleFiles : public testing::Test {
 protected:
  ModuleFiles() {
    file.add_table(SHT_SYMTAB, {{"outer", module.room(), 100}, {"inner", module.room() + 40, 8}});
  }
  /// What is found with such a file.
  std::string name_with(const std::string& bytes) const {
    module.replace(bytes);
    const exchange::Frame frame =
        exchange::ModuleSymbols().frame_at(module.bias() + module.room() + 44);
    EXPECT_EQ(frame.filename.rfind(module.path() + "+0x", 0), 0u);
    return frame.name;
  }

  const LoadedModule module{"spoiled"};
  ElfFile file;
};

TEST_F(ModuleFiles, AFileThatWasCutHasNoNames) {
  const std::string whole = file.bytes();
  EXPECT_EQ(name_with(whole), "inner");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(name_with(whole.substr(0, size)), "??") << size << " of " << whole.size();
}

TEST_F(ModuleFiles, AFileThatWasRemovedHasNoNames) {
  ASSERT_EQ(std::remove(module.path().c_str()), 0);
  EXPECT_EQ(exchange::ModuleSymbols().frame_at(module.bias() + module.room()).name, "??");
}

TEST_F(ModuleFiles, AFileOfAnotherKindHasNoNames) {
  for (const int at : {EI_MAG0, EI_MAG1, EI_MAG2, EI_MAG3, EI_CLASS}) {
    ElfFile other = file;
    other.header.e_ident[at] ^= 3;
    EXPECT_EQ(name_with(other.bytes()), "??") << at;
  }
  for (const std::size_t size : {sizeof(ElfW(Shdr)) - 1, sizeof(ElfW(Shdr)) + 1}) {
    ElfFile other = file;
    other.header.e_shentsize = static_cast<std::uint16_t>(size);
    EXPECT_EQ(name_with(other.bytes()), "??");
  }
}

TEST_F(ModuleFiles, AFileWithoutSectionsHasNoNames) {
  file.header.e_shnum = 0;
  EXPECT_EQ(name_with(file.bytes()), "??");
  file.header.e_shnum = 2;
  EXPECT_EQ(name_with(file.bytes()), "??") << "the table, but not its texts";
  file.header.e_shnum = 0xffff;
  EXPECT_EQ(name_with(file.bytes()), "??");
}

TEST_F(ModuleFiles, ATableWhoseTextsAreNoSectionHasNoNames) {
  for (const std::uint32_t link : {0u, 3u, 4u, 0xffffffffu}) {
    file.sections[1].sh_link = link;
    EXPECT_EQ(name_with(file.bytes()), "??") << link;
  }
}

TEST_F(ModuleFiles, TextsWithoutTheirEndAreNotRead) {
  const std::size_t size = file.sections[2].sh_size;
  file.contents.back() = 'x';
  EXPECT_EQ(name_with(file.bytes()), "??");
  file.contents.back() = '\0';
  file.sections[2].sh_size = 0;
  EXPECT_EQ(name_with(file.bytes()), "??");
  file.sections[2].sh_size = size - 1;
  EXPECT_EQ(name_with(file.bytes()), "??");
  file.sections[2].sh_size = size;
  EXPECT_EQ(name_with(file.bytes()), "inner");
}

TEST_F(ModuleFiles, TextsMayBeTheWholeFileButNoMore) {
  const std::uint64_t begin = file.sections[2].sh_offset, end = file.bytes().size();
  file.sections[2].sh_offset = 0;
  file.sections[2].sh_size = end;
  auto* const symbols = reinterpret_cast<ElfW(Sym)*>(file.contents.data());
  for (int i = 0; i < 2; ++i) symbols[i].st_name += static_cast<std::uint32_t>(begin);
  EXPECT_EQ(name_with(file.bytes()), "inner");
  file.sections[2].sh_size = end + 1;
  EXPECT_EQ(name_with(file.bytes()), "??");
}

TEST_F(ModuleFiles, AFileThatWasReadIsClosed) {
  const int input = ::dup(STDIN_FILENO), lowest = ::dup(input);
  ::close(lowest);
  EXPECT_EQ(name_with(file.bytes()), "inner");
  const int next = ::dup(input);
  EXPECT_EQ(next, lowest) << "the lowest number is free again";
  ::close(next);
  // To a program without a standard input it is 0.
  ::close(STDIN_FILENO);
  EXPECT_EQ(name_with(file.bytes()), "inner");
  EXPECT_EQ(::fcntl(STDIN_FILENO, F_GETFD), -1);
  ::dup2(input, STDIN_FILENO);
  ::close(input);
}

// No memory is asked for that no file can have filled.
TEST_F(ModuleFiles, SectionsThatNoFileCanHaveAreNotRead) {
  const ElfFile good = file;
  for (const std::size_t section : {1u, 2u}) {
    for (const unsigned bit : {33u, 48u, 62u, 63u}) {
      file = good;
      file.sections[section].sh_size += std::uint64_t{1} << bit;
      EXPECT_EQ(name_with(file.bytes()), "??") << section << " " << bit;
      file = good;
      file.sections[section].sh_offset += std::uint64_t{1} << bit;
      EXPECT_EQ(name_with(file.bytes()), "??") << section << " " << bit;
    }
  }
  file = good;
  file.header.e_shoff = ~std::uint64_t{0};
  EXPECT_EQ(name_with(file.bytes()), "??");
}

TEST_F(ModuleFiles, APartOfASymbolAtTheTablesEndIsNone) {
  file.sections[1].sh_size -= 1;
  EXPECT_EQ(name_with(file.bytes()), "outer");
}

}  // namespace
}  // namespace ashlar::props
