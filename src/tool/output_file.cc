#include "src/tool/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "src/tool/commands.h"
#include "src/tool/failure.h"
#include "src/tool/files.h"

namespace ashlar::tool {
namespace {

constexpr mode_t kModeBits = 07777;

/// Where a chain of links ends, also if nothing is there; at most as many as the kernel follows.
std::string end_of_links(std::string path) {
  constexpr int kLinksMax = 40;
  std::array<char, PATH_MAX> buffer;
  for (int i = 0; i < kLinksMax; ++i) {
    const ssize_t got = ::readlink(path.c_str(), buffer.data(), buffer.size());
    if (got < 0) break;
    const std::string to(buffer.data(), static_cast<std::size_t>(got));
    const std::size_t slash = path.rfind('/');
    const bool is_beside = !to.starts_with('/') && slash != std::string::npos;
    path.resize(is_beside ? slash + 1 : 0);
    path += to;
  }
  return path;
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real == nullptr ? path : real.get();
}

/// What the umask leaves of the mode of a new file. REQUIRES: one thread.
mode_t new_file_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

bool is_same_inode(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

/// Is there a file that is not empty and, if it is gzip unpacked, of another kind?
bool is_of_another_kind(const std::string& path, KnownFile kind) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  std::array<char, 4096> first;
  const std::string_view bytes(first.data(), std::fread(first.data(), 1, first.size(), file));
  std::fclose(file);
  std::string within;
  if (is_gzip(bytes)) {
    gunzip(bytes, [&within](std::string_view piece) {  // what of it is there; its end is cut off
      within += piece;
      return true;
    });
  }
  return !bytes.empty() && known_file(is_gzip(bytes) ? within : bytes) != kind;
}

}  // namespace

bool OutputFile::fail(std::string* error) {
  *error = path_ + ": " + std::strerror(errno);
  close();
  return false;
}

void OutputFile::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.path().empty()) ::unlink(temporary_.path().c_str());
  temporary_.clear();
}

bool OutputFile::open(const std::string& path, KnownFile kind, std::string* error) {
  path_ = path == "-" ? "standard output" : path;
  if (path == "-") {
    is_stdout_ = true;
    fd_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    return fd_ >= 0 || fail(error);
  }
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) {
    if (errno != ENOENT) return fail(error);
    target_ = end_of_links(path);
    if (!open_beside()) return fail(error);
    ::fchmod(fd_, new_file_mode());
    const std::size_t slash = target_.rfind('/');
    if (slash == std::string::npos) {
      target_ = real_path(".") + "/" + target_;
    } else {
      target_ = real_path(target_.substr(0, slash + 1)) + target_.substr(slash);
    }
    return true;
  }
  if (!S_ISREG(there.st_mode)) {
    errno = EISDIR;
    if (!S_ISDIR(there.st_mode)) fd_ = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return fd_ >= 0 || fail(error);
  }
  if (is_of_another_kind(path, kind)) {
    *error = path + ": not replaced, because it is a file of another kind";
    return false;
  }
  return open_existing(error);
}

bool OutputFile::open_existing(std::string* error) {
  struct stat there {};
  if (::stat(path_.c_str(), &there) != 0) return fail(error);
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {  // as /dev/stdout may be
    struct stat open {};
    if (::fstat(standard, &open) != 0 || !is_same_inode(there, open)) continue;
    fd_ = ::fcntl(standard, F_DUPFD_CLOEXEC, 0);
    return fd_ >= 0 || fail(error);
  }
  if (::access(path_.c_str(), W_OK) != 0) return fail(error);
  target_ = real_path(path_);
  if (there.st_nlink == 1 && open_beside()) {
    struct stat own {};
    const bool is_owned =
        ::fstat(fd_, &own) == 0 && ((own.st_uid == there.st_uid && own.st_gid == there.st_gid) ||
                                    ::fchown(fd_, there.st_uid, there.st_gid) == 0);
    if (is_owned && ::fchmod(fd_, there.st_mode & kModeBits) == 0) return true;
    close();
  }
  return open_in_place() || fail(error);
}

bool OutputFile::open_beside() {
  const std::size_t slash = target_.rfind('/');
  std::string name = slash == std::string::npos ? "" : target_.substr(0, slash + 1);
  name += ".ashlar-XXXXXX";
  fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd_ >= 0) temporary_.set(std::move(name));
  return fd_ >= 0;
}

bool OutputFile::open_in_place() {
  fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  return fd_ >= 0;
}

bool OutputFile::is_same_as(const OutputFile& other) const {
  return (is_stdout_ && other.is_stdout_) || (!target_.empty() && target_ == other.target_);
}

bool OutputFile::write(std::string_view bytes, std::string* error) {
  if (!is_open()) return true;
  const bool is_in_place = !target_.empty() && temporary_.path().empty();
  // What was printed before comes before.
  if (std::fflush(stdout) != 0 && is_stdout_) return fail(error);
  if (is_in_place && ::ftruncate(fd_, 0) != 0) return fail(error);
  if (!write_all(fd_, bytes)) return fail(error);
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) return fail(error);
  if (temporary_.path().empty()) return true;
  if (std::rename(temporary_.path().c_str(), target_.c_str()) != 0) return fail(error);
  temporary_.clear();
  return true;
}

int open_outputs(std::initializer_list<OutputRequest> outputs) {
  std::string error;
  for (const OutputRequest& output : outputs) {
    if (output.path.empty()) continue;
    if (!output.file->open(output.path, output.kind, &error))
      return tool::fail(kExitUnreadable, error);
    for (const OutputRequest& earlier : outputs) {
      if (&earlier == &output) break;
      if (!output.file->is_same_as(*earlier.file)) continue;
      return tool::fail(kExitUsage, std::string(earlier.option) + " and " + output.option +
                                        ": both write to " + output.path);
    }
  }
  return kExitDone;
}

}  // namespace ashlar::tool
