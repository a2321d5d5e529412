#include <ashlar/share/descriptor_passing.h>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <ashlar/base/exceptions.h>

namespace ashlar::inline v0::share {
namespace {

constexpr std::size_t kBatchMax = 250;  // Linux passes at most 253 in a message

constexpr Status kSomethingElse{Code::kMalformed, "shared memory: the socket has something else"};

constexpr Status kNoSocket{
    Code::kInvalidArgument,
    "shared memory: not a connected Unix socket, or a descriptor of the memory is closed"};

/// Does the system say so of a call's descriptors, and not of the other end?
bool is_of_descriptors(int error) noexcept {
  return error == EBADF || error == ENOTSOCK || error == ENOTCONN || error == EOPNOTSUPP ||
         error == EDESTADDRREQ || error == EINVAL;
}

/// What comes before the header.
struct Preamble {
  std::uint32_t header_bytes = 0;
  std::uint32_t descriptors = 0;
};

using Control = std::array<char, CMSG_SPACE(kBatchMax * sizeof(int)) + CMSG_SPACE(sizeof(ucred))>;

bool send_all(int socket, const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// How much came before the other end closed, or failed.
std::size_t receive_all(int socket, void* data, std::size_t size) {
  auto* const begin = static_cast<char*>(data);
  std::size_t got = 0;
  while (got < size) {
    const ssize_t part = recv(socket, begin + got, size - got, 0);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) break;
    got += static_cast<std::size_t>(part);
  }
  return got;
}

/// A message of one byte that carries descriptors needs these.
struct Message {
  char byte = 0;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) Control control{};
  msghdr header{};

  explicit Message(std::size_t descriptors) {
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
  }
};

bool send_batch(int socket, std::span<const int> batch) {
  Message message(batch.size());
  cmsghdr* const control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(batch.size_bytes());
  std::memcpy(CMSG_DATA(control), batch.data(), batch.size_bytes());
  ssize_t sent = 0;
  do sent = sendmsg(socket, &message.header, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == 1;
}

/// Receives the descriptors that come with the next byte, as many as a message carries of `left`; `*out` has room.
Status receive_batch(int socket, std::size_t left, Descriptors* out) {
  Message message(kBatchMax);
  message.header.msg_controllen = sizeof message.control;
  ssize_t got = 0;
  do got = recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got != 1) return kSomethingElse;
  const std::size_t expected = std::min(left, kBatchMax);
  std::size_t count = 0;
  // Credentials may come before the descriptors (SO_PASSCRED).
  for (cmsghdr* control = CMSG_FIRSTHDR(&message.header); control != nullptr;
       control = CMSG_NXTHDR(&message.header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t in_this = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < in_this; ++i, ++count) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(control) + i * sizeof descriptor, sizeof descriptor);
      if (count < expected) out->add(descriptor);
      else close(descriptor);
    }
  }
  // Linux delivers as many as the process has room for, and drops the others.
  if ((message.header.msg_flags & MSG_CTRUNC) != 0)
    return {Code::kDriverError, "shared memory: the process has no descriptor left"};
  return count == expected ? Status::ok() : kSomethingElse;
}

Status receive_into(int socket, ReceivedMemory* memory) {
  Preamble preamble;
  errno = 0;
  const std::size_t got = receive_all(socket, &preamble, sizeof preamble);
  if (got == 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return {Code::kNotReady, "shared memory: nothing has come on the socket yet"};
  if (got == 0 && is_of_descriptors(errno)) return kNoSocket;
  if (got == 0) return {Code::kNotFound, "shared memory: the other end has closed the socket"};
  if (got < sizeof preamble || preamble.descriptors > kSharedPartsMax ||
      preamble.header_bytes > header_bytes_max())
    return kSomethingElse;
  memory->header.resize(preamble.header_bytes);
  memory->descriptors.reserve(preamble.descriptors);
  if (receive_all(socket, memory->header.data(), memory->header.size()) < memory->header.size())
    return kSomethingElse;
  for (std::size_t left = preamble.descriptors; left > 0; left -= std::min(left, kBatchMax)) {
    const Status came = receive_batch(socket, left, &memory->descriptors);
    if (!came.is_ok()) return came;
  }
  return Status::ok();
}

}  // namespace

Status send_memory(int socket, const ExportedMemory& memory) noexcept {
  constexpr Status kFailed{Code::kWriteFailed, "shared memory: the socket does not take it"};
  const auto failed = [&kFailed] { return is_of_descriptors(errno) ? kNoSocket : kFailed; };
  const std::span<const std::byte> header = memory.header();
  std::span<const int> left = memory.descriptors();
  errno = 0;
  const Preamble preamble{static_cast<std::uint32_t>(header.size()),
                          static_cast<std::uint32_t>(left.size())};
  if (!send_all(socket, &preamble, sizeof preamble) ||
      !send_all(socket, header.data(), header.size()))
    return failed();
  while (!left.empty()) {
    const std::span<const int> batch = left.first(std::min(left.size(), kBatchMax));
    if (!send_batch(socket, batch)) return failed();
    left = left.subspan(batch.size());
  }
  return Status::ok();
}

Result<ReceivedMemory> receive_memory(int socket) noexcept {
  ReceivedMemory memory;
  Status status;
  if (!with_host_memory([&] { status = receive_into(socket, &memory); }))
    return Status{Code::kHostOutOfMemory, "no memory for the header of shared memory"};
  if (!status.is_ok()) return status;
  return memory;
}

}  // namespace ashlar::inline v0::share
