// DriverSession: one GPU, ready for calls; RunningKernel: a kernel that runs until it is told to stop.
//
// Purpose: what all parts of ashlar_driver_facts use.
// Thread safety: a session is read only once it is open; a RunningKernel belongs to one thread, and
// one runs at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/driver/cuda_driver.h"

namespace ashlar::bench {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr std::size_t kGiB = std::size_t{1} << 30;
/// The size of a page in this program.
inline constexpr std::size_t kPageSize = 2 * kMiB;

struct DriverSession {
  CudaDriver cu;
  CUdevice device = 0;
  CUcontext context = nullptr;
  std::string card;
  int version = 0;          ///< of the driver's interface: 13000 is CUDA 13.0
  CUstream work = nullptr;  ///< where the running kernel is; non-blocking, as `side`
  CUstream side = nullptr;
  CUfunction spin = nullptr;        ///< (flags, limit in ns)
  CUfunction copy_word = nullptr;   ///< (to, from)
  CUfunction store_word = nullptr;  ///< (to, value)
  CUfunction count_down = nullptr;  ///< (word, conditional handle); null if it cannot be loaded
  volatile std::uint32_t* flags = nullptr;  ///< host memory: stop, started
  CUdeviceptr flags_at = 0;
};

/// Opens device 0 by that library. Returns why it cannot, or an empty text.
std::string open_session(const char* library, DriverSession* session);

/// "CUDA_SUCCESS" and the like.
std::string name_of(const DriverSession& session, CUresult result);

CUresult create_page(const DriverSession& session, std::size_t size,
                     CUmemGenericAllocationHandle* page);
/// Read and write access for device 0.
CUresult give_access(const DriverSession& session, CUdeviceptr at, std::size_t size);
CUresult store(const DriverSession& session, CUstream stream, CUdeviceptr to, std::uint32_t value);
CUresult copy(const DriverSession& session, CUstream stream, CUdeviceptr to, CUdeviceptr from);
/// The word at that address, after all work of the device; 0xdeadbeef if it cannot be read.
std::uint32_t read_word(const DriverSession& session, CUdeviceptr at);
/// Free memory of the device in bytes.
std::size_t free_bytes(const DriverSession& session);

/// Runs on the session's `work` stream, or on another, until stop() or for `limit`, and uses no
/// memory of the device.
class RunningKernel {
 public:
  /// Returns when the kernel runs.
  RunningKernel(const DriverSession& session, std::chrono::milliseconds limit)
      : RunningKernel(session, limit, session.work) {}
  RunningKernel(const DriverSession& session, std::chrono::milliseconds limit, CUstream stream);
  ~RunningKernel() { stop(); }
  RunningKernel(const RunningKernel&) = delete;
  RunningKernel& operator=(const RunningKernel&) = delete;

  /// Asks by an event behind the kernel.
  bool is_running() const;
  /// Ends it, and waits for that.
  void stop();

 private:
  const DriverSession& session_;
  CUevent behind_ = nullptr;
  bool is_stopped_ = false;
};

}  // namespace ashlar::bench
