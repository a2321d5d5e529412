#include "spec/gpu/shared_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace ashlar::spec {
namespace {

using device::ShareHandle;
using device::ShareKind;

constexpr std::uint64_t kMark = 0x6873'2d72'616c'6873;  // of bytes that these functions wrote

/// The bytes of a handle that is no descriptor.
struct FilePlace {
  std::uint64_t mark = kMark;
  std::uint64_t file = 0;
  std::int32_t process = 0;
  std::int32_t descriptor = -1;  // of that process
};

/// The file that a handle leads to, with a new descriptor.
struct OpenFile {
  int descriptor = -1;
  std::uint64_t number = 0;
  Bytes size;
};

/// nullopt for a handle that leads to no file, or to one of another sort.
std::optional<OpenFile> open_file(const ShareHandle& handle) {
  OpenFile file;
  std::uint64_t expected = 0;
  if (handle.kind == ShareKind::kDescriptor) {
    file.descriptor = fcntl(handle.descriptor, F_DUPFD_CLOEXEC, 0);
  } else {
    FilePlace place;
    std::memcpy(&place, handle.bytes.data(), sizeof place);
    if (place.mark != kMark) return std::nullopt;
    expected = place.file;
    const std::string path =
        "/proc/" + std::to_string(place.process) + "/fd/" + std::to_string(place.descriptor);
    file.descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  }
  struct stat read {};
  if (file.descriptor < 0) return std::nullopt;
  if (fstat(file.descriptor, &read) != 0 || !S_ISREG(read.st_mode) ||
      (expected != 0 && read.st_ino != expected)) {
    ::close(file.descriptor);
    return std::nullopt;
  }
  file.number = read.st_ino;
  file.size = Bytes{static_cast<std::uint64_t>(read.st_size)};
  return file;
}

}  // namespace

SharedFiles::~SharedFiles() {
  for (const File& file : files_) ::close(file.descriptor);
}

const SharedFiles::File* SharedFiles::open_for(MemoryNumber memory, Bytes size) {
  if (const File* const open = file_for(memory); open != nullptr) return open;
  const int descriptor = memfd_create("simulated-gpu-memory", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat made {};
  if (ftruncate(descriptor, static_cast<off_t>(size.count())) != 0 ||
      fstat(descriptor, &made) != 0) {
    ::close(descriptor);
    return nullptr;
  }
  files_.push_back({memory, made.st_ino, descriptor});
  return &files_.back();
}

std::optional<ShareHandle> SharedFiles::handle_of(MemoryNumber memory, Bytes size, ShareKind kind) {
  const File* const file = open_for(memory, size);
  if (file == nullptr) return std::nullopt;
  ShareHandle handle;
  handle.kind = kind;
  if (kind == ShareKind::kDescriptor) {
    handle.descriptor = fcntl(file->descriptor, F_DUPFD_CLOEXEC, 0);
    return handle.descriptor < 0 ? std::nullopt : std::optional(handle);
  }
  const FilePlace place{kMark, file->number, getpid(), file->descriptor};
  static_assert(sizeof place <= sizeof handle.bytes);
  std::memcpy(handle.bytes.data(), &place, sizeof place);
  return handle;
}

const SharedFiles::File* SharedFiles::file_for(MemoryNumber memory) const {
  const auto found = std::find_if(files_.begin(), files_.end(),
                                  [&](const File& file) { return file.memory == memory; });
  return found == files_.end() ? nullptr : &*found;
}

int SharedFiles::file_of(MemoryNumber memory) const {
  const File* const file = file_for(memory);
  return file == nullptr ? -1 : file->descriptor;
}

void SharedFiles::close(MemoryNumber memory) {
  const File* const file = file_for(memory);
  if (file == nullptr) return;
  ::close(file->descriptor);
  files_.erase(files_.begin() + (file - files_.data()));
}

Bytes shared_size(const ShareHandle& handle) {
  const std::optional<OpenFile> file = open_file(handle);
  if (!file.has_value()) return Bytes{};
  ::close(file->descriptor);
  return file->size;
}

std::optional<SharedFiles::Found> SharedFiles::find(const ShareHandle& handle) const {
  const std::optional<OpenFile> opened = open_file(handle);
  if (!opened.has_value()) return std::nullopt;
  Found found{opened->number, opened->size, std::nullopt, opened->descriptor};
  for (const File& file : files_) {
    if (file.number == found.file) found.memory = file.memory;
  }
  return found;
}

}  // namespace ashlar::spec
