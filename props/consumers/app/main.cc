// What a user's first program does with the library: enough to compile, link and run against it.
#include <cstdio>
#include <cstring>

#include <ashlar/base/status.h>
#include <ashlar/base/version.h>
#include <ashlar/device/device.h>

int main() {
  if (std::strcmp(ASHLAR_VERSION, EXPECTED_VERSION) != 0) {
    std::printf("version %s, expected %s\n", ASHLAR_VERSION, EXPECTED_VERSION);
    return 1;
  }
  if (ashlar::code_from_name(ashlar::code_name(ashlar::Code::kOutOfMemory)) != ashlar::Code::kOutOfMemory) return 1;
  return std::strcmp(ashlar::call_name(ashlar::CallKind::kSegmentAlloc), "segment-alloc") == 0 ? 0 : 1;
}
