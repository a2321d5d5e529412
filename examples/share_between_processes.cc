// Memory of a GPU that one process allocates and another reads and writes.
//
// Shows: a ShareableDevice under the allocator, so that its memory can leave the process; an export, sent over a Unix socket;
// what the other process opens, which lasts though the exporter frees it. The other process is started anew: after a fork alone
// the parent's objects answer `forked`, as CUDA does. Without a GPU it says why and ends with 77. How to run it over the
// simulated driver: the README of src/ashlar/cuda.
// Prints:
//   the other process reads "written by the exporter"
//   the exporter reads "written by the other"
//   freed by the exporter, the other process still reads "written by the other"
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <ashlar/ashlar.h>
#include <ashlar/cuda/cuda_device.h>
#include <ashlar/share.h>

using namespace ashlar;

namespace {

constexpr Bytes kSize = 4_MiB;
constexpr StreamHandle kDefaultStream{};

// Text at the begin of a GPU's memory, by way of page-locked memory.
class Texts {
 public:
  explicit Texts(CudaDevice& gpu) : gpu_(gpu), host_(gpu.pinned_alloc(kSize).value()) {}
  ~Texts() { static_cast<void>(gpu_.pinned_free(host_)); }
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;

  void write(Address to, const std::string& text) {
    std::memcpy(host_.pointer(), text.c_str(), text.size() + 1);
    copy(to, host_);
  }
  std::string read(Address from) {
    copy(host_, from);
    return static_cast<const char*>(host_.pointer());
  }

 private:
  void copy(Address to, Address from) {
    const Status copied = gpu_.sharing()->copy(to, from, kSize, kDefaultStream);
    if (!copied.is_ok() || !gpu_.synchronize().is_ok()) std::exit(1);
  }

  CudaDevice& gpu_;
  const Address host_;
};

void tell(int socket) {
  if (::write(socket, "x", 1) != 1) std::exit(1);
}
void await(int socket) {
  char byte = 0;
  if (::read(socket, &byte, 1) != 1) std::exit(1);
}

int open_and_use(CudaDevice& gpu, int socket) {
  Device* const devices[] = {&gpu};
  share::MemoryOpener opener(devices);
  const share::ReceivedMemory received = share::receive_memory(socket).value();
  const share::OpenedMemory memory =
      opener.open(received.header, received.descriptors.all()).value();
  Texts texts(gpu);
  std::cout << "the other process reads \"" << texts.read(memory.address()) << "\"" << std::endl;
  texts.write(memory.address(), "written by the other");
  tell(socket);
  await(socket);
  std::cout << "freed by the exporter, the other process still reads \""
            << texts.read(memory.address()) << "\"" << std::endl;
  return 0;
}

void export_and_free(CudaDevice& gpu, int socket) {
  share::ShareableDevice shareable(gpu, ShareKind::kDescriptor);
  Device* const devices[] = {&shareable};
  const Config config = parse_config("backing:pages", nullptr).value();
  const auto allocator = CachingAllocator::create(devices, config).value();
  share::MemoryExporter exporter(*allocator);
  const Stream stream = gpu.identify(kDefaultStream).value();
  const Address block = allocator->allocate(kSize, stream).value();
  Texts texts(gpu);
  texts.write(block, "written by the exporter");
  {
    // While this lives the pages stay where they are, and the header is valid.
    const share::ExportedMemory exported = exporter.export_memory(block).value();
    if (!share::send_memory(socket, exported).is_ok()) std::exit(1);
    await(socket);
    std::cout << "the exporter reads \"" << texts.read(block) << "\"" << std::endl;
  }
  if (!allocator->free(block).is_ok() || !allocator->trim(DeviceId{0}).is_ok()) std::exit(1);
  tell(socket);
}

// Starts this program anew, with the other end of the socket.
pid_t start_other(int socket) {
  std::string program = "/proc/self/exe";
  std::string number = std::to_string(socket);
  char* const words[] = {program.data(), number.data(), nullptr};
  pid_t other = -1;
  return posix_spawn(&other, program.c_str(), nullptr, nullptr, words, environ) == 0 ? other : -1;
}

}  // namespace

int main(int count, char** words) {
  auto opened = CudaDevice::open(0, DeviceId{0});
  if (!opened.is_ok()) {
    std::cerr << "no GPU to run on: " << opened.status().why() << "\n";
    return 77;
  }
  const std::unique_ptr<CudaDevice> gpu = std::move(opened).value();
  if (count == 2) return open_and_use(*gpu, std::atoi(words[1]));
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  const pid_t other = start_other(ends[1]);
  close(ends[1]);
  if (other < 0) return 1;
  export_and_free(*gpu, ends[0]);
  int status = 1;
  return waitpid(other, &status, 0) == other && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
