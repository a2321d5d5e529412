#include "src/tool/trace_conf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <ashlar/cache/config_table.h>

#include "src/tool/commands.h"
#include "src/tool/failure.h"

namespace ashlar::tool {
namespace {

// What was read of PyTorch's environment variables.
struct PyTorchConf {
  std::string names;  // of the variables that are set and count
  std::string text;
};

PyTorchConf pytorch_conf() {
  PyTorchConf conf;
  for (const char* const name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    const char* const text = std::getenv(name);
    if (text == nullptr || !conf.names.empty()) continue;
    conf = {name, text};
  }
  constexpr const char* kNoCache = "PYTORCH_NO_CUDA_MEMORY_CACHING";
  if (std::getenv(kNoCache) != nullptr)
    conf.names += (conf.names.empty() ? "" : ", ") + std::string(kNoCache);
  return conf;
}

std::vector<std::string_view> settings_of(std::string_view text) {
  std::vector<std::string_view> settings;
  while (!text.empty()) settings.push_back(cache::take_setting(&text));
  return settings;
}

// The settings of PyTorch's that count, as Ashlar's own configuration string has them.
std::string obeyed_text(const std::string& text, const std::string& ignored, bool caches) {
  std::vector<std::string_view> obeyed = settings_of(text);
  const std::vector<std::string_view> left_out = settings_of(ignored);
  std::erase_if(obeyed, [&](std::string_view setting) {
    return setting.empty() ||
           std::find(left_out.begin(), left_out.end(), setting) != left_out.end();
  });
  if (!caches) obeyed.emplace_back("cache:off");
  return fmt::format("{}", fmt::join(obeyed, ","));
}

// Fills the configuration with what PyTorch's environment variables say.
int read_pytorch_conf(TraceRunOptions* options) {
  const PyTorchConf conf = pytorch_conf();
  if (conf.names.empty())
    fmt::print(stderr,
               "--conf pytorch-env: none of PyTorch's variables is set: PYTORCH_CUDA_ALLOC_CONF, "
               "PYTORCH_ALLOC_CONF, PYTORCH_NO_CUDA_MEMORY_CACHING\n");
  std::string error, ignored;
  const Result<cache::Config> config = cache::pytorch_config_from_environment(&ignored, &error);
  if (!config.is_ok()) return fail(kExitUsage, fmt::format("{}: {}", conf.names, error));
  if (!ignored.empty()) fmt::print(stderr, "{}: ignored here: {}\n", conf.names, ignored);
  options->config = config.value();
  options->conf_text = obeyed_text(conf.text, ignored, config.value().caches);
  return kExitDone;
}

}  // namespace

int read_trace_conf(const std::string& conf, TraceRunOptions* options) {
  if (conf == "pytorch-env") return read_pytorch_conf(options);
  const char* const variable = conf.empty() ? std::getenv("ASHLAR_ALLOC_CONF") : nullptr;
  options->conf_text = variable != nullptr ? variable : conf;
  std::string error;
  const Result<cache::Config> config = cache::parse_config(options->conf_text, &error);
  if (!config.is_ok())
    return fail(kExitUsage,
                fmt::format("{}: {}", variable != nullptr ? "ASHLAR_ALLOC_CONF" : "--conf", error));
  options->config = config.value();
  return kExitDone;
}

}  // namespace ashlar::tool
