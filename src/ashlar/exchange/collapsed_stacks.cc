#include <ashlar/exchange/collapsed_stacks.h>

#include <map>

#include <ashlar/exchange/frame_cache.h>
#include <ashlar/exchange/output_buffer.h>
#include <ashlar/exchange/utf8.h>

namespace ashlar::inline v0::exchange {
namespace {

/// Frames outermost first. What the format uses itself becomes a space.
std::string stack_of(const std::vector<Frame>& frames) {
  if (frames.empty()) return "unknown";
  std::string stack;
  std::string space;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame != frames.rbegin()) stack += ';';
    for (const char c : valid_utf8(frame->name, &space)) {
      const bool is_plain = c != ';' && static_cast<unsigned char>(c) >= 0x20;
      stack += is_plain ? c : ' ';
    }
  }
  return stack;
}

}  // namespace

Status write_collapsed_stacks(const std::vector<DeviceHistory>& devices, const FrameSource& frames,
                              const ByteSink& sink) {
  FrameCache cache(frames);
  std::map<std::string, Bytes> live;
  for (const DeviceHistory& device : devices) {
    ASHLAR_REQUIRE(device.record != nullptr, Code::kInvalidArgument, "a device has no record");
    const auto& [snapshot, history, contexts] = *device.record;
    for (std::size_t i = 0; i < snapshot.blocks.size(); ++i) {
      if (snapshot.blocks[i].state != BlockState::kLive) continue;
      const cache::ContextId context = i < contexts.size() ? contexts[i] : cache::ContextId{};
      live[stack_of(cache.of(context))] += snapshot.blocks[i].requested;
    }
  }
  OutputBuffer out(sink);
  for (const auto& [stack, bytes] : live) {
    out.append(stack);
    out.append(' ');
    out.append_number(bytes.count());
    out.append('\n');
  }
  return out.flush();
}

}  // namespace ashlar::inline v0::exchange
