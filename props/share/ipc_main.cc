// Memory between two processes, with its bytes: on the first GPU of the driver, or over a library in its place.
//
//   ashlar_ipc_suite [LIBRARY]    LIBRARY: the driver's library (default libcuda.so.1)
//
// One process allocates, fills and exports; another, a program started anew, opens, checks, writes, and still has the memory when the
// exporter has freed it. Exit 0 when everything holds, 1 when something does not, 77 where there is no driver or no GPU.
// Imitates: a process that serves tensors to workers. Does not prove: anything of several GPUs or of several hosts.
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

void tell(int socket) { require(write(socket, "x", 1) == 1, "the other process is gone"); }
void await(int socket) {
  char byte = 0;
  require(read(socket, &byte, 1) == 1, "the other process is gone");
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
share::OpenedMemory receive(int socket, const Way& way, share::MemoryOpener& opener) {
  if (way.is_sent) {
    const share::ReceivedMemory received = value_of(share::receive_memory(socket), "receive");
    return value_of(opener.open(received.header, received.descriptors.all()), "open");
  }
  std::uint32_t size = 0;
  require(read(socket, &size, sizeof size) == sizeof size, "the header's size");
  std::vector<std::byte> header(size);
  require(recv(socket, header.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size),
          "the header");
  return value_of(opener.open(header), "open");
}

void work(device::Device& gpu, int socket) {
  device::Device* const devices[] = {&gpu};
  share::MemoryOpener opener(devices);
  Copier copier(gpu);
  for (const Way& way : kWays) {
    const std::string name = way.name;
    share::OpenedMemory memory = receive(socket, way, opener);
    copier.check(memory.address(), 1, name + ": what the exporter wrote");
    copier.fill(memory.address(), 2);
    tell(socket);
    await(socket);  // the exporter has freed it, unless it is a whole segment
    copier.check(memory.address(), 2, name + ": what the worker wrote, later");
    memory = share::OpenedMemory();
    tell(socket);
  }
}

void serve_way(device::Device& gpu, int socket, const Way& way, Copier& copier) {
  share::ShareableDevice shareable(gpu, way.kind);
  share::SingleHandleDevice single(shareable);
  device::Device* const devices[] = {way.has_one_handle ? static_cast<device::Device*>(&single)
                                                        : &shareable};
  std::string error;
  const Config config = value_of(parse_config(way.settings, &error), "the settings");
  const auto allocator = value_of(CachingAllocator::create(devices, config), "an allocator");
  share::MemoryExporter exporter(*allocator);
  const Stream stream = value_of(gpu.identify(kStream), "the stream");
  const Address p = value_of(allocator->allocate(kSize, stream), "an allocation");
  copier.fill(p, 1);
  auto memory =
      std::make_unique<share::ExportedMemory>(value_of(exporter.export_memory(p), "an export"));
  require(memory->is_whole_segment() == (way.kind == device::ShareKind::kNone), "another kind");
  const device::ShareKind used =
      value_of(share::read_header(memory->header()), "the header").parts.front().handle.kind;
  if (way.is_sent) require(share::send_memory(socket, *memory), "send");
  else send_header_only(socket, *memory);
  await(socket);
  copier.check(p, 2, std::string(way.name) + ": what the worker wrote");
  if (!memory->is_whole_segment()) {
    memory.reset();
    require(allocator->free(p), "a free");
    require(allocator->trim(gpu.traits().id), "a trim");
    tell(socket);
    await(socket);
  } else {
    tell(socket);
    await(socket);
    memory.reset();
    require(allocator->free(p), "a free");
  }
  if (used == way.kind || way.kind == device::ShareKind::kNone) {
    std::printf("%s: the bytes are shared\n", way.name);
  } else {
    std::printf("%s: not permitted here; the bytes are shared by a %s\n", way.name,
                device::share_kind_name(used));
  }
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
  {
    Copier copier(gpu);
    for (const Way& way : kWays) serve_way(gpu, ends[0], way, copier);
  }
  close(ends[0]);
  int status = 0;
  require(waitpid(worker, &status, 0) == worker, "the worker's end");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int run(int count, char** words) {
  const char* const library = count > 1 ? words[1] : cuda::kDriverLibrary;
  const bool is_worker = count == 4 && std::strcmp(words[2], kWorkerOption) == 0;
  if (is_worker) role = "worker";
  auto opened = cuda::CudaDevice::open(0, DeviceId{0}, library);
  if (opened.code() == Code::kNotFound || opened.code() == Code::kUnsupported) {
    std::printf("SKIPPED: %s\n", opened.status().why());
    return 77;
  }
  const std::unique_ptr<cuda::CudaDevice> gpu = value_of(std::move(opened), "the GPU");
  if (!is_worker) return serve(*gpu, words[0], library);
  work(*gpu, std::atoi(words[3]));
  return 0;
}

}  // namespace
}  // namespace ashlar::props

int main(int count, char** words) { return ashlar::props::run(count, words); }
