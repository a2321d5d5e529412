// A socket that passes a message on in pieces, is interrupted, or ends: each answer that its calls may give (unix(7)); and a host
// that gives no random numbers.
//
// Imitates: a full socket, signals at every place, an early boot. Does not prove: which of these answers a kernel gives when. The
// functions of the C library that are called here are this file's: without a plan they are system calls.
#include <gtest/gtest.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "props/host_memory/refusing_host.h"
#include "props/share/share_worlds.h"
#include "props/share/socket_ends.h"

namespace ashlar::props {
namespace {

using device::ShareKind;

/// What the next call of a socket does.
struct Answer {
  ssize_t most = -1;  ///< passes on so many bytes; if it is not positive, none: that is the answer
  int error = 0;      ///< what errno is then
};

struct Plan {
  std::deque<Answer> sends;     ///< empty: as the system does
  std::deque<Answer> receives;  ///< the same
  std::size_t bytes_max = 0;    ///< the most that a receiver's call passes on; 0: any number
  bool has_random = true;
  pid_t process = 0;  ///< this one's number; 0: the true one
};
Plan plan;

/// While it lives the plan may be another one.
struct Planned {
  Planned() = default;
  ~Planned() { plan = {}; }
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;
};

/// call(bytes at most), or what is planned in its place.
template <class Call>
ssize_t answer(std::deque<Answer>& planned, std::size_t size, Call call) {
  if (planned.empty()) return call(size);
  const Answer next = planned.front();
  planned.pop_front();
  if (next.most > 0) return call(std::min(size, static_cast<std::size_t>(next.most)));
  errno = next.error;
  return next.most;
}

}  // namespace
}  // namespace ashlar::props

extern "C" {

ssize_t send(int socket, const void* data, std::size_t size, int flags) {
  using namespace ashlar::props;
  return answer(plan.sends, size, [&](std::size_t most) {
    return static_cast<ssize_t>(::syscall(SYS_sendto, socket, data, most, flags, nullptr, 0));
  });
}
ssize_t recv(int socket, void* data, std::size_t size, int flags) {
  using namespace ashlar::props;
  const std::size_t wanted = plan.bytes_max > 0 ? std::min(size, plan.bytes_max) : size;
  return answer(plan.receives, wanted, [&](std::size_t most) {
    return static_cast<ssize_t>(
        ::syscall(SYS_recvfrom, socket, data, most, flags, nullptr, nullptr));
  });
}
ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  using namespace ashlar::props;
  return answer(plan.sends, 1, [&](std::size_t) {
    return static_cast<ssize_t>(::syscall(SYS_sendmsg, socket, message, flags));
  });
}
ssize_t recvmsg(int socket, msghdr* message, int flags) {
  using namespace ashlar::props;
  return answer(plan.receives, 1, [&](std::size_t) {
    return static_cast<ssize_t>(::syscall(SYS_recvmsg, socket, message, flags));
  });
}
ssize_t getrandom(void* bytes, std::size_t size, unsigned flags) {
  if (!ashlar::props::plan.has_random) {
    errno = EAGAIN;
    return -1;
  }
  return static_cast<ssize_t>(::syscall(SYS_getrandom, bytes, size, flags));
}
pid_t getpid() noexcept {
  const pid_t planned = ashlar::props::plan.process;
  return planned != 0 ? planned : static_cast<pid_t>(::syscall(SYS_getpid));
}

}  // extern "C"

namespace ashlar::props {
namespace {

/// An exporter of three pages with handles of one kind, and a socket.
class SocketCallsTest : public ::testing::TestWithParam<ShareKind> {
 protected:
  SocketCallsTest() : from_(ShareProcess::only(GetParam())), exporter_(from_.allocator()) {
    const Address p = from_.allocator().allocate(6_MiB, from_.stream()).value();
    memory_ = exporter_.export_memory(p).value();
    rejoin();
  }
  /// After an error a socket is of no use.
  void rejoin() { ends_ = std::make_unique<Ends>(); }
  Status send_it() { return share::send_memory(ends_->both[0], memory_); }
  auto receive_it() { return share::receive_memory(ends_->both[1]); }
  void expect_it(const Result<share::ReceivedMemory>& received) {
    ASSERT_TRUE(received.is_ok()) << received.status().why();
    const auto& header = received.value().header;
    EXPECT_TRUE(
        std::equal(header.begin(), header.end(), memory_.header().begin(), memory_.header().end()));
    EXPECT_EQ(received.value().descriptors.all().size(), memory_.descriptors().size());
  }
  bool has_descriptors() const { return GetParam() == ShareKind::kDescriptor; }

  const DescriptorBalance balance_;
  const Planned planned_;
  ShareProcess from_;
  share::MemoryExporter exporter_;
  share::ExportedMemory memory_;
  std::unique_ptr<Ends> ends_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, SocketCallsTest,
                         ::testing::Values(ShareKind::kDescriptor, ShareKind::kFabric));

TEST_P(SocketCallsTest, AMessageInPiecesOfAnySizeIsTheMessage) {
  for (const ssize_t most : {1, 2, 7, 8, 100}) {
    plan.bytes_max = static_cast<std::size_t>(most);  // of a receiver's call
    for (int i = 0; i < 2; ++i) {
      plan.sends = {{most, 0}, {1, 0}, {most, 0}, {1, 0}};
      ASSERT_TRUE(send_it().is_ok());
      EXPECT_TRUE(plan.sends.empty()) << "they were made";
    }
    for (int i = 0; i < 2; ++i) expect_it(receive_it());
  }
}

TEST_P(SocketCallsTest, AnInterruptionAnywhereChangesNothing) {
  for (std::size_t at = 0; at < (has_descriptors() ? 3u : 2u); ++at) {
    for (std::deque<Answer>* const calls : {&plan.sends, &plan.receives}) {
      *calls = std::deque<Answer>(at, Answer{1 << 20, 0});
      calls->push_back({-1, EINTR});
      calls->push_back({-1, EINTR});
      ASSERT_TRUE(send_it().is_ok()) << at;
      expect_it(receive_it());
      EXPECT_TRUE(calls->empty()) << "they were made";
    }
  }
}

TEST_P(SocketCallsTest, ASocketThatTakesNothingIsAFailure) {
  for (std::size_t at = 0; at < (has_descriptors() ? 3u : 2u); ++at) {
    // The error of an earlier call is still there when the next one takes nothing.
    for (const Answer last : {Answer{0, EINTR}, Answer{0, 0}, Answer{-1, EPIPE}}) {
      plan.sends = std::deque<Answer>(at, Answer{1 << 20, 0});
      plan.sends.push_back({-1, EINTR});
      plan.sends.push_back(last);
      EXPECT_EQ(send_it().code(), Code::kWriteFailed) << at;
      EXPECT_TRUE(plan.sends.empty());
      plan.sends.clear();
    }
  }
}

TEST_P(SocketCallsTest, AnEndIsAnEndAfterAnInterruptionToo) {
  for (std::size_t at = 0; at < (has_descriptors() ? 3u : 2u); ++at) {
    for (const Answer last : {Answer{0, EINTR}, Answer{0, 0}, Answer{-1, ECONNRESET}}) {
      ASSERT_TRUE(send_it().is_ok());
      plan.receives = std::deque<Answer>(at, Answer{1 << 20, 0});
      plan.receives.push_back({-1, EINTR});
      plan.receives.push_back(last);
      EXPECT_EQ(receive_it().code(), at == 0 ? Code::kNotFound : Code::kMalformed) << at;
      EXPECT_TRUE(plan.receives.empty());
      plan.receives.clear();
      rejoin();
    }
  }
}

TEST_P(SocketCallsTest, AMessageThatIsCutAnywhereIsMalformed) {
  ASSERT_TRUE(send_it().is_ok());
  const std::size_t whole = 8 + memory_.header().size();
  std::vector<std::byte> bytes(whole);
  ASSERT_EQ(recv(ends_->both[1], bytes.data(), whole, MSG_WAITALL), static_cast<ssize_t>(whole));
  std::memset(bytes.data(), 0, 4);  // a header of no bytes
  for (std::size_t length = 1; length < 8; ++length) {
    rejoin();
    ASSERT_EQ(write(ends_->both[0], bytes.data(), length), static_cast<ssize_t>(length));
    ASSERT_EQ(shutdown(ends_->both[0], SHUT_WR), 0);
    EXPECT_EQ(receive_it().code(), Code::kMalformed) << length;
  }
}

TEST_P(SocketCallsTest, NothingIsSentWithoutASocket) {
  int pipe_ends[2] = {-1, -1};
  ASSERT_EQ(pipe(pipe_ends), 0);
  const int unconnected = socket(AF_UNIX, SOCK_STREAM, 0);
  for (const int none : {-1, pipe_ends[0], pipe_ends[1], unconnected}) {
    EXPECT_EQ(share::send_memory(none, memory_).code(), Code::kInvalidArgument) << none;
    EXPECT_EQ(share::receive_memory(none).code(), Code::kInvalidArgument) << none;
  }
  for (const int each : {pipe_ends[0], pipe_ends[1], unconnected}) close(each);
}

TEST(ExporterNumberTest, WithoutRandomNumbersItIsTheProcessesAndTheExportersOwn) {
  const Planned planned;
  plan.has_random = false;
  ShareProcess process;
  CachingAllocator& allocator = process.allocator();
  const Address p = allocator.allocate(2_MiB, process.stream()).value();
  const auto number_of = [&](share::MemoryExporter& exporter) {
    const share::ExportedMemory memory = exporter.export_memory(p).value();
    return share::read_header(memory.header()).value().exporter;
  };
  share::MemoryExporter first(allocator);
  share::MemoryExporter second(allocator);
  EXPECT_NE(number_of(first), number_of(second)) << "of one process";
  std::optional<share::MemoryExporter> at_one_place;
  std::set<std::uint64_t> numbers;
  constexpr pid_t kProcesses[] = {1, 2, 3, 1 + (1 << 14), 1 + (1 << 15)};
  for (const pid_t each : kProcesses) {
    plan.process = each;
    numbers.insert(number_of(at_one_place.emplace(allocator)));
  }
  EXPECT_EQ(numbers.size(), std::size(kProcesses)) << "of several";
  EXPECT_TRUE(allocator.free(p).is_ok());
}

}  // namespace
}  // namespace ashlar::props
