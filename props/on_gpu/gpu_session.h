// GpuSession: a GPU, and what an application does with it through the CUDA driver: streams, copies, gates, graphs.
//
// Purpose: suites that run on a GPU where there is one, and over the simulated one where there is none, so that no line of them is
// first run on the day a GPU comes.
// Thread safety: a session is open for the whole program; each thread that calls it enters first. A Gate belongs to one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <ashlar/cuda/cuda_device.h>
#include <ashlar/cuda/driver_abi.h>

namespace ashlar::spec {
class SimGpu;
}

namespace ashlar::props {

/// How the simulated machine behaves: SimGpuOptions.
struct SimulatedMood {
  std::uint64_t seed = 1;
  std::uint32_t pace = 0;
  bool has_own_time = false;  ///< bounded waits go by its clock, and not by the host's
  Bytes memory{1_GiB};        ///< of the GPU; 0: no limit
  bool has_pages = false;     ///< enough addresses for an allocator's pages
};

class GpuSession {
 public:
  /// Opens the first GPU of the driver, or the simulated one. Errors as CudaDevice::open().
  static Status open(bool is_simulated, const SimulatedMood& mood = {});
  /// The session. REQUIRES: it is open.
  static GpuSession& get();
  static void close();
  ~GpuSession();

  /// The calling thread's calls are this GPU's from now on.
  void enter();
  void leave();

  cuda::CudaDevice& device() { return *device_; }
  bool is_simulated() const;
  /// The simulated machine; null on a GPU.
  spec::SimGpu* machine();
  /// The driver's; null for the simulated one, which is in the program.
  const char* library() const;
  std::string name();
  /// What the simulated machine reports since the last call: misuse, and what is still held. Empty on a GPU.
  std::string take_faults();

  Stream create_stream();
  void destroy_stream(const Stream& stream);
  void copy(Address to, Address from, Bytes size, const Stream& on);
  void synchronize(const Stream& stream);
  /// Captures what `work` enqueues on the stream. The graph, to be launched and destroyed; null if the capture was lost.
  cuda::GraphExec capture(const Stream& stream, const std::function<void()>& work);
  void launch(cuda::GraphExec graph, const Stream& on);
  void destroy(cuda::GraphExec graph);
  // The same in two parts, for captures of several streams. Whether the driver agreed.
  bool begin_capture(const Stream& stream, device::CaptureMode mode);
  /// Null if the capture was lost.
  cuda::GraphExec end_capture(const Stream& stream);

  /// A kernel of that module (a fat binary), which stays loaded. kUnsupported if the image is empty, or not for this GPU.
  Result<cuda::Kernel> load_kernel(std::span<const std::byte> image, const char* name);
  static constexpr unsigned kBlockThreads = 256;
  /// Enqueues it on so many blocks of kBlockThreads threads.
  bool launch(cuda::Kernel kernel, unsigned blocks, const Stream& on, void** parameters);

 private:
  friend class Gate;
  struct Functions;
  struct Simulated;
  GpuSession();

  std::unique_ptr<Simulated> simulated_;
  std::unique_ptr<Functions> cu_;
  cuda::Context context_ = nullptr;
  std::unique_ptr<cuda::CudaDevice> device_;
};

/// Holds a stream's later work until it is opened.
class Gate {
 public:
  explicit Gate(const Stream& stream);
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() { *is_open_ = true; }

 private:
  std::shared_ptr<std::atomic<bool>> is_open_;
};

/// Memory of the GPU that copies go to.
class FarMemory {
 public:
  explicit FarMemory(Bytes size);
  ~FarMemory();
  FarMemory(const FarMemory&) = delete;
  FarMemory& operator=(const FarMemory&) = delete;
  Address base() const { return base_; }

 private:
  const Address base_;
};

}  // namespace ashlar::props
