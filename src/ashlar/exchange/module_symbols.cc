// Reads the symbols of ELF files of this machine's own word size: a program can load no others.
#include <ashlar/exchange/module_symbols.h>

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace ashlar::inline v0::exchange {
namespace {

constexpr char kThisProgram[] = "/proc/self/exe";

/// The loaded module that has an address.
struct Loaded {
  std::uintptr_t address = 0;
  std::string name;         ///< the dynamic loader's: empty is the program itself
  std::uintptr_t bias = 0;  ///< what the loader added to the module's addresses
  bool is_found = false;
};

int look_at_module(dl_phdr_info* info, std::size_t /*size*/, void* into) {
  Loaded& loaded = *static_cast<Loaded*>(into);
  for (const ElfW(Phdr) & part : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || loaded.address < begin || loaded.address - begin >= part.p_memsz)
      continue;
    loaded.name = info->dlpi_name;
    loaded.bias = info->dlpi_addr;
    loaded.is_found = true;
    return 1;
  }
  return 0;
}

/// A file, open for reading.
class File {
 public:
  explicit File(const char* path) noexcept : descriptor_(::open(path, O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool read(std::uint64_t at, void* into, std::uint64_t size) const noexcept {
    auto* to = static_cast<char*>(into);
    while (size != 0) {
      const ::ssize_t got = ::pread(descriptor_, to, size, static_cast<::off_t>(at));
      if (got <= 0) return false;
      to += got;
      at += static_cast<std::uint64_t>(got);
      size -= static_cast<std::uint64_t>(got);
    }
    return true;
  }

  std::uint64_t size() const noexcept {
    return static_cast<std::uint64_t>(::lseek(descriptor_, 0, SEEK_END));
  }

 private:
  const int descriptor_;
};

/// The headers of the file's sections; none if it is no ELF file of this word size.
std::vector<ElfW(Shdr)> sections_of(const File& file) {
  ElfW(Ehdr) header;
  if (!file.read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) ||
      header.e_shentsize != sizeof(ElfW(Shdr)))
    return {};
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  const bool is_read =
      file.read(header.e_shoff, sections.data(), sections.size() * sizeof(ElfW(Shdr)));
  return is_read ? sections : std::vector<ElfW(Shdr)>{};
}

/// The name of a function of C++ as its source has it; others stay: the demangler takes a C function `f` for the type float.
std::string demangled(const char* name) {
  if (!std::string_view(name).starts_with("_Z")) return name;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(name, nullptr, nullptr, nullptr), std::free);
  return plain != nullptr ? plain.get() : name;
}

std::string path_of_program() {
  std::array<char, 4096> path;
  const ::ssize_t length = ::readlink(kThisProgram, path.data(), path.size());
  return length <= 0 ? kThisProgram : std::string(path.data(), static_cast<std::size_t>(length));
}

std::string in_hex(std::uint64_t number) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

}  // namespace

void ModuleSymbols::read_functions(const char* path, Module* module) {
  const File file(path);
  const std::vector<ElfW(Shdr)> sections = sections_of(file);
  const auto table_of = [&sections](ElfW(Word) type) {
    return std::find_if(sections.begin(), sections.end(),
                        [type](const ElfW(Shdr) & section) { return section.sh_type == type; });
  };
  auto table = table_of(SHT_SYMTAB);
  if (table == sections.end()) table = table_of(SHT_DYNSYM);
  if (table == sections.end() || table->sh_link >= sections.size()) return;
  const ElfW(Shdr)& names = sections[table->sh_link];
  // Before there is memory for them: what does not fit in the file cannot be read.
  if (std::max(table->sh_size, names.sh_size) > file.size()) return;
  std::vector<ElfW(Sym)> symbols(table->sh_size / sizeof(ElfW(Sym)));
  module->names.resize(names.sh_size);
  if (!file.read(table->sh_offset, symbols.data(), symbols.size() * sizeof(ElfW(Sym))) ||
      !file.read(names.sh_offset, module->names.data(), names.sh_size) || module->names.empty() ||
      module->names.back() != 0)
    return;
  for (const ElfW(Sym) & symbol : symbols) {
    // Of ELF's two word sizes the macro is the same.
    const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
    if (is_function && symbol.st_size != 0 && symbol.st_name < names.sh_size)
      module->functions.push_back({symbol.st_value, symbol.st_size, symbol.st_name});
  }
  std::sort(module->functions.begin(), module->functions.end());
}

std::string ModuleSymbols::name_at(const Module& module, std::uint64_t offset) {
  const auto behind = std::upper_bound(
      module.functions.begin(), module.functions.end(), offset,
      [](std::uint64_t at, const Function& function) { return at < function.begin; });
  if (behind == module.functions.begin()) return {};
  const Function& function = *std::prev(behind);
  if (offset - function.begin >= function.size) return {};
  return demangled(module.names.data() + function.name);
}

Frame ModuleSymbols::frame_at(std::uintptr_t address) {
  Loaded loaded;
  loaded.address = address;
  ::dl_iterate_phdr(&look_at_module, &loaded);
  if (!loaded.is_found) return {"??", in_hex(address), 0};
  const auto [at, is_new] = modules_.try_emplace(loaded.name);
  Module& module = at->second;
  if (is_new) {
    module.path = loaded.name.empty() ? path_of_program() : loaded.name;
    read_functions(loaded.name.empty() ? kThisProgram : module.path.c_str(), &module);
  }
  const std::uint64_t offset = address - loaded.bias;
  std::string name = name_at(module, offset);
  return {name.empty() ? "??" : std::move(name), module.path + "+" + in_hex(offset), 0};
}

}  // namespace ashlar::inline v0::exchange
