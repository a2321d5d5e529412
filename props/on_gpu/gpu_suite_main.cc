// The suites that need a GPU:
//
//   ashlar_gpu_suite [--simulated] [GoogleTest's flags]
//
// Exit 77, with one line that says why, where there is no driver or no GPU; 1 where the GPU cannot be opened. --simulated runs them over the driver's functions of a
// simulated GPU: that shows that the suites run, and nothing of a driver.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "props/on_gpu/gpu_session.h"
#include "props/on_gpu/no_gpu.h"

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  const bool is_simulated = count == 2 && std::strcmp(words[1], "--simulated") == 0;
  if (count > 1 && !is_simulated) {
    std::fprintf(stderr, "usage: %s [--simulated] [--gtest_...]\n", words[0]);
    return 2;
  }
  const ashlar::Status opened = ashlar::props::GpuSession::open(is_simulated);
  if (!opened.is_ok()) return ashlar::props::end_without_gpu(opened, is_simulated);
  std::printf("on %s\n", ashlar::props::GpuSession::get().name().c_str());
  const int failed = RUN_ALL_TESTS();
  ashlar::props::GpuSession::close();
  return failed;
}
