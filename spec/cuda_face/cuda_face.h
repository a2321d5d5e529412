// The CUDA driver's functions over a simulated GPU, so that code which calls the driver runs without one.
//
// Purpose: a program that links this library, and exports its symbols (ENABLE_EXPORTS), is its own libcuda: what looks for
// cuGetProcAddress_v2 in the program finds the one here, and by it every function that src/ashlar/cuda calls. Each function
// does what the "CUDA Driver API" says of it with the machine that is attached: calls act on the calling thread's current
// context, handles are the machine's, and answers are CUDA's own codes.
// Thread safety: attach() and the switches while no other thread calls; the functions from any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <ashlar/cuda/driver_abi.h>

#include "spec/gpu/sim_gpu.h"

namespace ashlar::spec::cuda_face {

/// The machine that the functions act on from now on; null: a driver without a GPU. Contexts of an earlier one are gone.
void attach(SimGpu* gpu);
/// The function of that name is not found from now on.
void hide(const char* name);
/// The call after the next `after` ones, of any function but the current context's, answers that, and so do the `times` - 1 calls
/// behind it; kSuccess: all do what they should.
void answer_next(cuda::CallResult answer, int after = 0, int times = 1);
/// Is that answer still to come?
bool is_answer_due();
/// The machine's addresses (SimGpuOptions::first_address) lie in this memory of the caller's, so copies and kernels find bytes
/// there. Other addresses are the host's. Without it every address counts as the machine's. Until the next attach().
void give_bytes(Address begin, Bytes size);

/// What a launch of a kernel will touch, and what it does when its stream gets there.
struct KernelWork {
  std::vector<Touch> touches;
  std::function<void()> run;
  HostFlag held_by = 0;  ///< the stream waits until it is raised (SimCaller::raise); 0: for nothing
  bool is_faulty = false;  ///< the device is lost when it runs, and nothing else happens
};
/// A kernel, told the number of its threads and its parameters, which last until it returns.
using FaceKernel = std::function<KernelWork(std::uint64_t threads, void* const* parameters)>;
/// Every module that is loaded has this kernel from now on.
void set_kernel(const char* name, FaceKernel kernel);
/// How many products cuBLAS's functions of this program have enqueued; a program that asks has those functions.
int blas_products();

/// What the GPUs have of that attribute; -1: the driver knows no such attribute. attach() makes it 1 again.
void set_attribute(int attribute, int value);
/// How many uses of the primary context of that device are held.
int context_uses(int device);
/// Makes that device's context the calling thread's current one; -1: takes back what that made.
void make_current(int device);
/// How often a context was pushed.
int context_pushes();
/// How deep the calling thread's stack of contexts is.
std::size_t context_depth();
/// How many memory pools were made and not destroyed.
std::size_t live_pools();
/// May one of those have a stream wait for another whose memory it reuses?
bool pools_add_waits();

}  // namespace ashlar::spec::cuda_face
