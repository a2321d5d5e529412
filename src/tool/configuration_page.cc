#include "src/tool/configuration_page.h"

#include <ashlar/cache/config.h>

namespace ashlar::tool {
namespace {

constexpr char kHead[] =
    R"(# Configuration

An allocator is configured by `Config` (src/ashlar/cache/config.h) or by its string form,
`key:value,key:value`:

    ASHLAR_ALLOC_CONF=move:eager,headroom_mb:512 your_program     # config_from_environment()
    ashlar replay t.trace --conf backing:segments,wait_ms:never

Keys that PyTorch has too have PyTorch's meaning. An unknown key, a bad value, and a value that turns on
what is not built are errors that name the key.

`PYTORCH_CUDA_ALLOC_CONF`, or else `PYTORCH_ALLOC_CONF`, is read only when asked for: by
`pytorch_config_from_environment()`, and by `ashlar replay --conf pytorch-env`. PyTorch's keys that are built are
taken; all others are left out and named, not refused, and so is `max_split_size_mb` beside
`expandable_segments:True`. `PYTORCH_NO_CUDA_MEMORY_CACHING` is `cache:off` there, whatever its value,
and is left out beside `backend:cudaMallocAsync`, where PyTorch does not look at it.

`cache:off` is for memory checkers such as compute-sanitizer: every allocation is memory of its own from the
driver, as long as the request rounded up to the granule (`granule:16` leaves a checker 15 bytes at most that it
cannot see an overrun in), and it goes back when it is freed. It goes back in the call of the free if its work is
done by then, else in a later allocation or free, each of which looks at 32 other streams at most, or when events are
processed (`process_events()`); synchronise before a free to have it back at once. A driver may let the call that takes memory back
wait for the work of all streams (cuMemFree does): the free waits then, and so do calls behind it. What a memory pool holds, for
graphs, stays until the pool is released, and serves nobody meanwhile: a pool that no graph needs is not for this mode.

`ashlar --configuration-page` prints this page; `replay --help` ends with its keys.

## Keys of PyTorch's

)";

void add_table(bool is_pytorch, std::string* page) {
  *page += "| key | values | default | meaning |\n|---|---|---|---|\n";
  for (const cache::ConfigKey& key : cache::config_keys()) {
    if (key.is_pytorch != is_pytorch || !key.is_built) continue;
    *page += "| `" + std::string(key.name) + "` | " + std::string(key.values) + " | " +
             std::string(key.default_value) + " | " + std::string(key.meaning) + " |\n";
  }
}

}  // namespace

std::string configuration_keys_text() {
  std::string text;
  for (const cache::ConfigKey& key : cache::config_keys()) {
    if (!key.is_built) continue;
    text += "  " + std::string(key.name) + ": " + std::string(key.values);
    if (!key.default_value.empty()) text += " (default: " + std::string(key.default_value) + ")";
    text += "\n      " + std::string(key.meaning) + "\n";
  }
  return text;
}

std::string configuration_page() {
  std::string page = kHead;
  add_table(true, &page);
  page += "\n## Keys of Ashlar's own\n\n";
  add_table(false, &page);
  page +=
      "\n## Keys of PyTorch's that are not built\n\nEach takes only the value that turns it "
      "off.\n\n"
      "| key | value | why, or what is there instead |\n|---|---|---|\n";
  for (const cache::ConfigKey& key : cache::config_keys()) {
    if (key.is_built) continue;
    page += "| `" + std::string(key.name) + "` | " +
            (key.values.empty() ? "none" : std::string(key.values)) + " | " +
            std::string(key.meaning) + " |\n";
  }
  return page;
}

}  // namespace ashlar::tool
