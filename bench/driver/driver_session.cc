#include "bench/driver/driver_session.h"

#include <thread>

namespace ashlar::bench {
namespace {

constexpr std::uint32_t kUnreadable = 0xdeadbeef;

// For every GPU from compute capability 7.5 on; the driver compiles it.
const char* const kKernels =
    ".version 6.4\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry spin(.param .u64 flags, .param .u64 limit_ns)\n"
    "{\n"
    "  .reg .pred %p<2>;\n"
    "  .reg .b32 %r<2>;\n"
    "  .reg .b64 %d<5>;\n"
    "  ld.param.u64 %d0, [flags];\n"
    "  ld.param.u64 %d1, [limit_ns];\n"
    "  mov.u64 %d2, %globaltimer;\n"
    "  mov.u32 %r1, 1;\n"
    "  st.volatile.global.u32 [%d0+4], %r1;\n"
    "LOOP:\n"
    "  ld.volatile.global.u32 %r0, [%d0];\n"
    "  setp.ne.u32 %p0, %r0, 0;\n"
    "  @%p0 bra DONE;\n"
    "  mov.u64 %d3, %globaltimer;\n"
    "  sub.u64 %d4, %d3, %d2;\n"
    "  setp.lt.u64 %p1, %d4, %d1;\n"
    "  @%p1 bra LOOP;\n"
    "DONE:\n"
    "  ret;\n"
    "}\n"
    ".visible .entry copy_word(.param .u64 to, .param .u64 from)\n"
    "{\n"
    "  .reg .b32 %r<1>;\n"
    "  .reg .b64 %d<2>;\n"
    "  ld.param.u64 %d0, [to];\n"
    "  ld.param.u64 %d1, [from];\n"
    "  ld.global.u32 %r0, [%d1];\n"
    "  st.global.u32 [%d0], %r0;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry store_word(.param .u64 to, .param .u32 value)\n"
    "{\n"
    "  .reg .b32 %r<1>;\n"
    "  .reg .b64 %d<1>;\n"
    "  ld.param.u64 %d0, [to];\n"
    "  ld.param.u32 %r0, [value];\n"
    "  st.global.u32 [%d0], %r0;\n"
    "  ret;\n"
    "}\n";

// The driver provides the function that sets a conditional handle; an older one refuses this module.
const char* const kConditionalKernel =
    ".version 6.4\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    ".visible .entry count_down(.param .u64 word, .param .u64 handle)\n"
    "{\n"
    "  .reg .pred %p<1>;\n"
    "  .reg .b32 %r<2>;\n"
    "  .reg .b64 %d<2>;\n"
    "  ld.param.u64 %d0, [word];\n"
    "  ld.param.u64 %d1, [handle];\n"
    "  ld.global.u32 %r0, [%d0];\n"
    "  sub.u32 %r0, %r0, 1;\n"
    "  st.global.u32 [%d0], %r0;\n"
    "  setp.ne.u32 %p0, %r0, 0;\n"
    "  selp.u32 %r1, 1, 0, %p0;\n"
    "  {\n"
    "    .param .b64 a;\n"
    "    .param .b32 b;\n"
    "    st.param.b64 [a], %d1;\n"
    "    st.param.b32 [b], %r1;\n"
    "    call.uni cudaGraphSetConditional, (a, b);\n"
    "  }\n"
    "  ret;\n"
    "}\n";

CUmemAllocationProp page_properties(const DriverSession& session) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = session.device;
  return properties;
}

CUresult launch(const DriverSession& session, CUfunction kernel, CUstream stream,
                void** parameters) {
  return session.cu.launch_kernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

CUresult load_kernels(DriverSession& session) {
  const CudaDriver& cu = session.cu;
  CUmodule module = nullptr;
  CUresult result = cu.module_load_data(&module, kKernels);
  if (result != CUDA_SUCCESS) return result;
  cu.module_get_function(&session.copy_word, module, "copy_word");
  cu.module_get_function(&session.store_word, module, "store_word");
  result = cu.module_get_function(&session.spin, module, "spin");
  if (cu.module_load_data(&module, kConditionalKernel) == CUDA_SUCCESS)
    cu.module_get_function(&session.count_down, module, "count_down");
  return result;
}

}  // namespace

std::string open_session(const char* library, DriverSession* session) {
  const std::string why = load_cuda_driver(library, &session->cu);
  if (!why.empty()) return why;
  const CudaDriver& cu = session->cu;
  void* flags = nullptr;
  char card[128] = "";
  const auto failed = [&](const char* step, CUresult result) {
    return std::string(step) + ": " + name_of(*session, result);
  };
  if (const CUresult r = cu.init(0); r != CUDA_SUCCESS) return failed("no GPU: cuInit", r);
  if (const CUresult r = cu.device_get(&session->device, 0); r != CUDA_SUCCESS)
    return failed("no GPU: cuDeviceGet", r);
  cu.driver_get_version(&session->version);
  cu.device_get_name(card, sizeof card, session->device);
  session->card = card;
  CUresult result = cu.primary_ctx_retain(&session->context, session->device);
  if (result == CUDA_SUCCESS) result = cu.ctx_set_current(session->context);
  if (result == CUDA_SUCCESS) result = cu.stream_create(&session->work, CU_STREAM_NON_BLOCKING);
  if (result == CUDA_SUCCESS) result = cu.stream_create(&session->side, CU_STREAM_NON_BLOCKING);
  if (result == CUDA_SUCCESS)
    result = cu.mem_host_alloc(&flags, 4096, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
  if (result == CUDA_SUCCESS) result = cu.mem_host_get_device_pointer(&session->flags_at, flags, 0);
  session->flags = static_cast<volatile std::uint32_t*>(flags);
  if (result == CUDA_SUCCESS) result = load_kernels(*session);
  return result == CUDA_SUCCESS ? "" : failed("setting up", result);
}

std::string name_of(const DriverSession& session, CUresult result) {
  const char* name = nullptr;
  if (session.cu.get_error_name(result, &name) != CUDA_SUCCESS || name == nullptr)
    return "error " + std::to_string(static_cast<int>(result));
  return name;
}

CUresult create_page(const DriverSession& session, std::size_t size,
                     CUmemGenericAllocationHandle* page) {
  const CUmemAllocationProp properties = page_properties(session);
  return session.cu.mem_create(page, size, &properties, 0);
}

CUresult give_access(const DriverSession& session, CUdeviceptr at, std::size_t size) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = session.device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return session.cu.mem_set_access(at, size, &access, 1);
}

CUresult store(const DriverSession& session, CUstream stream, CUdeviceptr to, std::uint32_t value) {
  void* parameters[] = {&to, &value};
  return launch(session, session.store_word, stream, parameters);
}

CUresult copy(const DriverSession& session, CUstream stream, CUdeviceptr to, CUdeviceptr from) {
  void* parameters[] = {&to, &from};
  return launch(session, session.copy_word, stream, parameters);
}

std::uint32_t read_word(const DriverSession& session, CUdeviceptr at) {
  std::uint32_t word = kUnreadable;
  if (session.cu.ctx_synchronize() != CUDA_SUCCESS) return kUnreadable;
  if (session.cu.memcpy_to_host(&word, at, sizeof word) != CUDA_SUCCESS) return kUnreadable;
  return word;
}

std::size_t free_bytes(const DriverSession& session) {
  std::size_t free = 0, total = 0;
  session.cu.mem_get_info(&free, &total);
  return free;
}

RunningKernel::RunningKernel(const DriverSession& session, std::chrono::milliseconds limit,
                             CUstream stream)
    : session_(session) {
  session.flags[0] = 0;
  session.flags[1] = 0;
  CUdeviceptr flags = session.flags_at;
  std::uint64_t limit_ns = static_cast<std::uint64_t>(limit.count()) * 1'000'000;
  void* parameters[] = {&flags, &limit_ns};
  session.cu.event_create(&behind_, CU_EVENT_DISABLE_TIMING);
  if (launch(session, session.spin, stream, parameters) != CUDA_SUCCESS) return;
  session.cu.event_record(behind_, stream);
  const auto begin = std::chrono::steady_clock::now();
  while (session.flags[1] == 0 && std::chrono::steady_clock::now() - begin < limit)
    std::this_thread::yield();
}

bool RunningKernel::is_running() const {
  return session_.cu.event_query(behind_) == CUDA_ERROR_NOT_READY;
}

void RunningKernel::stop() {
  if (is_stopped_) return;
  is_stopped_ = true;
  session_.flags[0] = 1;
  session_.cu.event_synchronize(behind_);
  session_.cu.event_destroy(behind_);
}

}  // namespace ashlar::bench
