#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "props/exchange/loaded_module.h"

namespace ashlar::props {
namespace {

template <class T>
std::string bytes_of(const T* values, std::size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

ElfFile::ElfFile() : sections(1) {
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(ElfW(Shdr));
}

void ElfFile::add_table(std::uint32_t type, const std::vector<ElfSymbol>& symbols) {
  std::vector<ElfW(Sym)> table;
  std::string names(1, '\0');
  for (const ElfSymbol& symbol : symbols) {
    ElfW(Sym) entry{};
    entry.st_name = static_cast<std::uint32_t>(names.size());
    entry.st_value = symbol.value;
    entry.st_size = symbol.size;
    entry.st_info = symbol.type;
    table.push_back(entry);
    names += symbol.name + '\0';
  }
  const auto add = [this](std::uint32_t section_type, const std::string& bytes) {
    ElfW(Shdr) section{};
    section.sh_type = section_type;
    section.sh_offset = contents.size();
    section.sh_size = bytes.size();
    sections.push_back(section);
    contents += bytes;
  };
  add(type, bytes_of(table.data(), table.size()));
  sections.back().sh_link = static_cast<std::uint32_t>(sections.size());
  add(SHT_STRTAB, names);
  const std::uint64_t begin = sizeof header + sections.size() * sizeof(ElfW(Shdr));
  std::uint64_t at = begin;
  for (std::size_t i = 1; i < sections.size(); at += sections[i++].sh_size)
    sections[i].sh_offset = at;
  header.e_shnum = static_cast<std::uint16_t>(sections.size());
}

std::string ElfFile::bytes() const {
  return bytes_of(&header, 1) + bytes_of(sections.data(), sections.size()) + contents;
}

std::string LoadedModule::library() {
  std::ifstream file(EXCHANGE_MODULE, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void LoadedModule::load(const std::string& name, const std::string& bytes) {
  path_ = testing::TempDir() + "exchange_" + std::to_string(::getpid()) + "_" + name + ".so";
  write_file(path_, bytes);
  handle_ = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  link_map* loaded = nullptr;
  if (handle_ == nullptr || ::dlinfo(handle_, RTLD_DI_LINKMAP, &loaded) != 0) {
    ADD_FAILURE() << ::dlerror();
    return;
  }
  bias_ = loaded->l_addr;
  room_ = reinterpret_cast<std::uintptr_t>(::dlsym(handle_, "exchange_module_room")) - bias_;
}

LoadedModule::~LoadedModule() {
  if (handle_ != nullptr) ::dlclose(handle_);
  std::remove(path_.c_str());
}

// By a rename, because the file that was loaded is mapped.
void LoadedModule::replace(const std::string& bytes) const {
  write_file(path_ + ".new", bytes);
  std::rename((path_ + ".new").c_str(), path_.c_str());
}

}  // namespace ashlar::props
