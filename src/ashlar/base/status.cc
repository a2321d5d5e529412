#include <ashlar/base/status.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ashlar::inline v0 {
namespace {

struct CodeName {
  Code code;
  const char* name;
};

constexpr std::array<CodeName, 24> kCodeNames{{
    {Code::kOk, "ok"},
    {Code::kNotReady, "not-ready"},
    {Code::kOutOfMemory, "out-of-memory"},
    {Code::kOutOfAddresses, "out-of-addresses"},
    {Code::kUnsupported, "unsupported"},
    {Code::kCaptureUnsafe, "capture-unsafe"},
    {Code::kCaptureInvalidated, "capture-invalidated"},
    {Code::kDriverError, "driver-error"},
    {Code::kDeviceLost, "device-lost"},
    {Code::kTornDown, "torn-down"},
    {Code::kDeadlock, "deadlock"},
    {Code::kHostOutOfMemory, "host-out-of-memory"},
    {Code::kWriteFailed, "write-failed"},
    {Code::kInvalidArgument, "invalid-argument"},
    {Code::kSizeOverflow, "size-overflow"},
    {Code::kUnknownPointer, "unknown-pointer"},
    {Code::kDoubleFree, "double-free"},
    {Code::kWrongDevice, "wrong-device"},
    {Code::kInvalidHandle, "invalid-handle"},
    {Code::kReentrant, "reentrant"},
    {Code::kForked, "forked"},
    {Code::kBusy, "busy"},
    {Code::kNotFound, "not-found"},
    {Code::kMalformed, "malformed"},
}};

}  // namespace

const char* code_name(Code code) noexcept {
  for (const CodeName& entry : kCodeNames) {
    if (entry.code == code) return entry.name;
  }
  return "unknown";
}

std::optional<Code> code_from_name(const char* name) noexcept {
  for (const CodeName& entry : kCodeNames) {
    if (std::strcmp(entry.name, name) == 0) return entry.code;
  }
  return std::nullopt;
}

void value_of_failure(const Status& status) noexcept {
  std::fprintf(stderr, "ashlar: value() of a failed Result: %s: %s\n", code_name(status.code()),
               status.why());
  std::abort();
}

}  // namespace ashlar::inline v0
