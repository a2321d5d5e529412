// The two ends of a socket between an exporter and an opener, and what send_memory() does not write there.
//
// Purpose: suites of descriptors on their way.
// Thread safety: one thread on each end.
#pragma once

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace ashlar::props {

/// Two ends that are connected, and are closed at the end.
struct Ends {
  Ends() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0); }
  ~Ends() {
    for (const int each : both) close(each);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  /// How many bytes wait at the second end.
  int waiting() const {
    int bytes = -1;
    EXPECT_EQ(ioctl(both[1], FIONREAD, &bytes), 0);
    return bytes;
  }
  /// Writes at the first end what comes before a header.
  void announce(std::uint32_t header_bytes, std::uint32_t descriptors) const {
    const std::uint32_t sizes[] = {header_bytes, descriptors};
    ASSERT_EQ(write(both[0], sizes, sizeof sizes), static_cast<ssize_t>(sizeof sizes));
  }
  /// Sends a byte with so many descriptors from the first end, each that end itself.
  void send_descriptors(std::size_t count) const {
    char byte = 0;
    iovec bytes{&byte, 1};
    const std::vector<int> sent(count, both[0]);
    const std::size_t size = count * sizeof(int);
    std::vector<cmsghdr> control(CMSG_SPACE(size) / sizeof(cmsghdr) + 1);
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(head), sent.data(), size);
    ASSERT_EQ(sendmsg(both[0], &message, 0), 1);
  }

  int both[2] = {-1, -1};
};

}  // namespace ashlar::props
