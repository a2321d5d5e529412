// What a profiler is to NVTX: a library that the environment variable NVTX_INJECTION64_PATH names. It notes what
// ranges begin and end, and which marks are made.
//
// Thread safety: one thread.
#include <nvtx3/nvToolsExt.h>

#include <string>

namespace {

/// A line for each call: `domain NAME`, `+NAME BYTES`, `-`, `!NAME BYTES`.
std::string& seen() {
  static std::string lines;
  return lines;
}

std::string described(const nvtxEventAttributes_t* event) {
  return std::string(event->message.ascii) + " " + std::to_string(event->payload.ullValue) + "\n";
}

nvtxDomainHandle_t NVTX_API create(const char* name) {
  seen() += "domain " + std::string(name) + "\n";
  static int stands_for_the_domain;
  return reinterpret_cast<nvtxDomainHandle_t>(&stands_for_the_domain);
}
int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  seen() += (domain == nullptr ? "?" : "+") + described(event);
  return 0;
}
int NVTX_API pop(nvtxDomainHandle_t) {
  seen() += "-\n";
  return 0;
}
void NVTX_API mark(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
  seen() += "!" + described(event);
}

}  // namespace

/// NVTX calls this when it is first used.
extern "C" __attribute__((visibility("default"))) int NVTX_API
InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0 ||
      size <= NVTX_CBID_CORE2_DomainCreateA)
    return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(&create);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  *table[NVTX_CBID_CORE2_DomainMarkEx] = reinterpret_cast<NvtxFunctionPointer>(&mark);
  return 1;
}

/// What was seen so far; forgotten with that.
extern "C" __attribute__((visibility("default"))) const char* nvtx_tool_take() {
  static std::string taken;
  taken.swap(seen());
  seen().clear();
  return taken.c_str();
}
