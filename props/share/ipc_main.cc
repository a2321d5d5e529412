// Memory between two processes, with its bytes: on the first GPU of the driver, or over a library in its place.
//
//   ashlar_ipc_suite [LIBRARY]    LIBRARY: the driver's library (default libcuda.so.1)
//
// One process allocates, fills and exports; another, a program started anew, opens, checks, writes, and still has the memory when the
// exporter has freed it. A way that the GPU, its driver or the host does not have is skipped with a line. Exit 0 when everything
// holds, 1 when something does not, 77 where there is no driver, no GPU, or no way at all.
// Imitates: a process that serves tensors to workers. Does not prove: anything of several GPUs or of several hosts.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include <ashlar/ashlar.h>
#include <ashlar/cuda/driver_abi.h>
#include <ashlar/share.h>

#include "props/on_gpu/no_gpu.h"

namespace ashlar::props {
namespace {

constexpr Bytes kSize = 5_MiB;
constexpr StreamHandle kStream{cuda::kStreamPerThread};
constexpr char kWorkerOption[] = "--worker-on-socket";
const char* role = "exporter";

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", role, what.c_str());
  std::exit(1);
}
void require(bool holds, const std::string& what) {
  if (!holds) fail(what);
}
void require(const Status& status, const std::string& what) {
  if (!status.is_ok()) fail(what + ": " + code_name(status.code()) + ", " + status.why());
}
template <class T>
T value_of(Result<T> result, const std::string& what) {
  require(result.status(), what);
  return std::move(result).value();
}

/// Bytes of the GPU, by way of page-locked memory.
class Copier {
 public:
  explicit Copier(device::Device& gpu)
      : gpu_(gpu),
        host_(value_of(gpu.pinned_alloc(kSize), "page-locked memory")),
        event_(value_of(gpu.event_create(), "an event")) {}
  ~Copier() {
    static_cast<void>(gpu_.event_destroy(event_));
    static_cast<void>(gpu_.pinned_free(host_));
  }
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  void fill(Address to, unsigned seed) {
    auto* const words = static_cast<unsigned*>(host_.pointer());
    for (std::size_t i = 0; i < kSize.count() / sizeof *words; ++i) words[i] = word(seed, i);
    copy(to, host_);
  }
  void check(Address from, unsigned seed, const std::string& when) {
    std::memset(host_.pointer(), 0, kSize.count());
    copy(host_, from);
    const auto* const words = static_cast<const unsigned*>(host_.pointer());
    for (std::size_t i = 0; i < kSize.count() / sizeof *words; ++i) {
      if (words[i] != word(seed, i))
        fail(when + ": word " + std::to_string(i) + " is " + std::to_string(words[i]));
    }
  }

 private:
  static unsigned word(unsigned seed, std::size_t i) {
    return (static_cast<unsigned>(i) + 1) * 2654435761u ^ seed;
  }
  void copy(Address to, Address from) {
    require(gpu_.sharing()->copy(to, from, kSize, kStream), "a copy");
    require(gpu_.event_record(event_, kStream), "an event's record");
    require(gpu_.event_synchronize(event_, device::kWaitForever), "a wait for a copy");
  }

  device::Device& gpu_;
  const Address host_;
  const EventHandle event_;
};

/// What one process tells the other at each step of a way.
enum Word : char { kDone = 'x', kSkipped = 's' };
void tell(int socket, Word word = kDone) {
  require(write(socket, &word, 1) == 1, "the other process is gone");
}
Word await(int socket) {
  char byte = 0;
  require(read(socket, &byte, 1) == 1, "the other process is gone");
  return static_cast<Word>(byte);
}

/// The ways in which memory leaves, each with an allocator of its own.
struct Way {
  const char* name;
  const char* settings;
  device::ShareKind kind;
  bool has_one_handle;
  bool is_sent;  ///< its descriptors are sent; else the worker fetches them
};
constexpr Way kWays[] = {
    {"pages, descriptors sent", "backing:pages", device::ShareKind::kDescriptor, false, true},
    {"pages, descriptors fetched", "backing:pages", device::ShareKind::kDescriptor, false, false},
    {"a segment of one handle", "backing:segments", device::ShareKind::kDescriptor, true, true},
    {"fabric handles", "backing:pages", device::ShareKind::kFabric, false, true},
    {"a whole segment", "backing:segments", device::ShareKind::kNone, false, true},
};

void send_header_only(int socket, const share::ExportedMemory& memory) {
  const auto size = static_cast<std::uint32_t>(memory.header().size());
  require(write(socket, &size, sizeof size) == sizeof size, "the header's size");
  require(write(socket, memory.header().data(), size) == static_cast<ssize_t>(size), "the header");
}
Result<share::OpenedMemory> receive(int socket, const Way& way, share::MemoryOpener& opener) {
  if (way.is_sent) {
    const share::ReceivedMemory received = value_of(share::receive_memory(socket), "receive");
    return opener.open(received.header, received.descriptors.all());
  }
  std::uint32_t size = 0;
  require(read(socket, &size, sizeof size) == sizeof size, "the header's size");
  std::vector<std::byte> header(size);
  require(recv(socket, header.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size),
          "the header");
  return opener.open(header);
}

void work_on(int socket, const Way& way, share::MemoryOpener& opener, Copier& copier) {
  const std::string name = way.name;
  if (await(socket) == kSkipped) return;
  Result<share::OpenedMemory> opened = receive(socket, way, opener);
  // To fetch descriptors needs what ptrace needs.
  if (!way.is_sent && opened.code() == Code::kUnsupported) return tell(socket, kSkipped);
  share::OpenedMemory memory = value_of(std::move(opened), name + ": open");
  copier.check(memory.address(), 1, name + ": what the exporter wrote");
  copier.fill(memory.address(), 2);
  tell(socket);
  require(await(socket) == kDone,
          "the exporter's word");  // it has freed it, unless it is a whole segment
  copier.check(memory.address(), 2, name + ": what the worker wrote, later");
  memory = share::OpenedMemory();
  tell(socket);
}

void work(device::Device& gpu, int socket) {
  device::Device* const devices[] = {&gpu};
  share::MemoryOpener opener(devices);
  Copier copier(gpu);
  for (const Way& way : kWays) work_on(socket, way, opener, copier);
}

/// One way's allocator, with an allocation that is exported.
class Export {
 public:
  Export(device::Device& gpu, const Way& way)
      : gpu_(gpu), way_(way), shareable_(gpu, way.kind), single_(shareable_) {}

  /// Allocates, fills and exports. kUnsupported where the GPU or its driver has no such way.
  Status begin(Copier& copier) {
    device::Device* const devices[] = {way_.has_one_handle ? static_cast<device::Device*>(&single_)
                                                           : &shareable_};
    std::string error;
    const Config config = value_of(parse_config(way_.settings, &error), "the settings");
    auto made = CachingAllocator::create(devices, config);
    if (!made.is_ok()) return made.status();
    allocator_ = std::move(made).value();
    const Stream stream = value_of(gpu_.identify(kStream), "the stream");
    const Result<Address> got = allocator_->allocate(kSize, stream);
    if (!got.is_ok()) return got.status();
    at_ = got.value();
    copier.fill(at_, 1);
    auto exported = share::MemoryExporter(*allocator_).export_memory(at_);
    if (!exported.is_ok()) return exported.status();
    memory_ = std::move(exported).value();
    if (memory_.is_whole_segment() == (way_.kind == device::ShareKind::kNone)) return Status::ok();
    require(!gpu_.traits().has_virtual_memory, "another kind");
    return {Code::kUnsupported, "the GPU has no virtual memory"};
  }
  /// The other process has taken it, writes to it, and then sees that it lasts.
  void share(int socket, Copier& copier) {
    copier.check(at_, 2, std::string(way_.name) + ": what the worker wrote");
    const bool is_gone_first = !memory_.is_whole_segment();
    if (is_gone_first) end();
    tell(socket);
    require(await(socket) == kDone, "the worker's word");
    if (!is_gone_first) end();
  }
  void end() {
    memory_ = share::ExportedMemory();
    require(allocator_->free(at_), "a free");
    require(allocator_->trim(gpu_.traits().id), "a trim");
  }
  const share::ExportedMemory& memory() const { return memory_; }
  device::ShareKind kind() const {
    return value_of(share::read_header(memory_.header()), "the header").parts.front().handle.kind;
  }

 private:
  device::Device& gpu_;
  const Way& way_;
  share::ShareableDevice shareable_;
  share::SingleHandleDevice single_;
  std::unique_ptr<CachingAllocator> allocator_;
  Address at_;
  share::ExportedMemory memory_;
};

/// Whether the bytes were shared; else a line says why this machine has no such way.
bool serve_way(device::Device& gpu, int socket, const Way& way, Copier& copier) {
  Export one(gpu, way);
  const Status begun = one.begin(copier);
  if (begun.code() == Code::kUnsupported) {
    tell(socket, kSkipped);
    std::printf("%s: skipped: %s\n", way.name, begun.why());
    return false;
  }
  require(begun, std::string(way.name) + ": an export");
  const device::ShareKind used = one.kind();
  tell(socket);
  if (way.is_sent) require(share::send_memory(socket, one.memory()), "send");
  else send_header_only(socket, one.memory());
  if (await(socket) == kSkipped) {
    one.end();
    std::printf("%s: not permitted here (ptrace_scope, or a container's seccomp profile)\n",
                way.name);
    return false;
  }
  one.share(socket, copier);
  if (used == way.kind || way.kind == device::ShareKind::kNone) {
    std::printf("%s: the bytes are shared\n", way.name);
  } else {
    std::printf("%s: not permitted here; the bytes are shared by a %s\n", way.name,
                device::share_kind_name(used));
  }
  return true;
}

int serve(device::Device& gpu, const char* program, const char* library) {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a socket");
  const pid_t worker = fork();
  require(worker >= 0, "a process");
  if (worker == 0) {
    close(ends[0]);
    execl(program, program, library, kWorkerOption, std::to_string(ends[1]).c_str(),
          static_cast<char*>(nullptr));
    _exit(1);
  }
  close(ends[1]);
  // Under Yama's ptrace_scope=1 a child may fetch nothing from its parent, unless that names it. Kernels without Yama refuse the call.
  static_cast<void>(prctl(PR_SET_PTRACER, worker, 0, 0, 0));
  int shared = 0;
  {
    Copier copier(gpu);
    for (const Way& way : kWays) shared += serve_way(gpu, ends[0], way, copier);
  }
  close(ends[0]);
  int status = 0;
  require(waitpid(worker, &status, 0) == worker, "the worker's end");
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the worker failed");
  if (shared != 0) return 0;
  std::printf("SKIPPED: this machine has no way for memory between processes\n");
  return 77;
}

int run(int count, char** words) {
  const char* const library = count > 1 ? words[1] : cuda::kDriverLibrary;
  const bool is_worker = count == 4 && std::strcmp(words[2], kWorkerOption) == 0;
  if (is_worker) role = "worker";
  auto opened = cuda::CudaDevice::open(0, DeviceId{0}, library);
  if (!opened.is_ok()) return end_without_gpu(opened.status());
  const std::unique_ptr<cuda::CudaDevice> gpu = std::move(opened).value();
  if (!is_worker) return serve(*gpu, words[0], library);
  work(*gpu, std::atoi(words[3]));
  return 0;
}

}  // namespace
}  // namespace ashlar::props

int main(int count, char** words) { return ashlar::props::run(count, words); }
