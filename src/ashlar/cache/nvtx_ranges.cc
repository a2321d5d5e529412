// NVTX is a header alone; it finds a profiler by the environment variable NVTX_INJECTION64_PATH when it is first called.
#include <ashlar/cache/nvtx_ranges.h>

#if defined(ASHLAR_NVTX)
#include <nvtx3/nvToolsExt.h>
#endif

#include <array>

namespace ashlar::inline v0::cache {
namespace {

constexpr std::array<const char*, kSlowPaths> kNames{"miss", "grow", "reclaim",
                                                     "wait", "trim", "give back"};

}  // namespace

const char* slow_path_name(SlowPath path) noexcept { return kNames[static_cast<unsigned>(path)]; }

#if defined(ASHLAR_NVTX)
namespace {

nvtxDomainHandle_t domain() noexcept {
  // Made when it is first needed, and never destroyed: other threads may be in a range at the process's end.
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("ashlar");
  return made;
}

nvtxEventAttributes_t attributes(const char* name, Bytes size) noexcept {
  nvtxEventAttributes_t made{};
  made.version = NVTX_VERSION;
  made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  made.messageType = NVTX_MESSAGE_TYPE_ASCII;
  made.message.ascii = name;
  made.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  made.payload.ullValue = size.count();
  return made;
}

}  // namespace

NvtxRange::NvtxRange(SlowPath path, Bytes size) noexcept {
  const nvtxEventAttributes_t range = attributes(slow_path_name(path), size);
  static_cast<void>(nvtxDomainRangePushEx(domain(), &range));
}

NvtxRange::~NvtxRange() { static_cast<void>(nvtxDomainRangePop(domain())); }

void mark_out_of_memory(Bytes requested) noexcept {
  const nvtxEventAttributes_t mark = attributes("out of memory", requested);
  nvtxDomainMarkEx(domain(), &mark);
}
#else
NvtxRange::NvtxRange(SlowPath, Bytes) noexcept {}
NvtxRange::~NvtxRange() = default;
void mark_out_of_memory(Bytes) noexcept {}
#endif

}  // namespace ashlar::inline v0::cache
