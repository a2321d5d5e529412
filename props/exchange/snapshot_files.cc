// Writes snapshots for the readers of props/exchange: NAME.pickle, NAME.json, and NAME.live with what
// was live before each of their events.
//
//   exchange_files FOLDER     prints the names, one a line; exit 1 if a file cannot be written
//
// Imitates: an allocator on one device or several, with a history that is whole, cut by its ring, or
// written in part; addresses as high as JavaScript can hold; texts with every sort of character.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <ashlar/ashlar.h>
#include <ashlar/base/mix.h>
#include <ashlar/exchange.h>

#include "props/exchange/history_maker.h"

namespace ashlar::props {
namespace {

constexpr Address kBase{std::uint64_t{0x7f} << 40};
constexpr std::size_t kAll = ~std::size_t{0};

/// Every third context has no frames.
std::vector<exchange::Frame> frames_of(cache::ContextId context) {
  std::vector<exchange::Frame> frames;
  if (context.value() % 3 == 0) return frames;
  frames.push_back({"forward<\"T\">\\", "C:\\models\\net.py", 12});
  frames.push_back({"Schicht \xc3\xa4\xe2\x82\xac \xf0\x9f\xa7\xb1", "/tmp/\xff\xc3(.cc", 0});
  frames.push_back({std::string("line\nend\tnull\0behind\x7f", 21), "", 0xffffffff});
  frames.push_back({"context " + std::to_string(context.value()), "'quoted'.py", 300});
  return frames;
}

/// One file in the making.
struct Case {
  std::string name;
  std::vector<exchange::DeviceHistory> devices;
  std::string live;  ///< the text of NAME.live
  exchange::TorchSnapshotOptions options;
};

/// Adds a device with the states of events [first, last) of its record.
void add(Case* out, std::int32_t device, const cache::HistorySnapshot& record,
         const std::vector<LiveState>& states, std::size_t first = 0, std::size_t last = kAll) {
  out->devices.push_back({DeviceId{device}, &record});
  const std::size_t lost = states.size() - 1 - record.history.events.size();
  if (last == kAll) last = record.history.events.size();
  out->live += "device " + std::to_string(device) + "\n";
  for (std::size_t i = lost + first; i <= lost + last; ++i) {
    const LiveState& state = states[i];
    out->live += std::to_string(state.live) + " " + std::to_string(state.pending) + " " +
                 std::to_string(state.requested) + " " + std::to_string(state.reserved) + " " +
                 std::to_string(state.hash) + "\n";
  }
}

bool write(Case* part, const std::string& folder) {
  const std::string path = folder + "/" + part->name;
  std::ofstream(path + ".live", std::ios::binary) << part->live;
  for (const auto format : {exchange::TorchFormat::kPickle, exchange::TorchFormat::kJson}) {
    part->options.format = format;
    const bool is_pickle = format == exchange::TorchFormat::kPickle;
    auto sink = exchange::file_sink(path + (is_pickle ? ".pickle" : ".json"));
    const Status written = sink.is_ok()
                               ? write_torch_snapshot(part->devices, part->options, sink.value())
                               : sink.status();
    if (!written.is_ok()) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), written.why());
      return false;
    }
  }
  std::printf("%s\n", path.c_str());
  return true;
}

bool write_odd_ones(const std::string& folder) {
  Case nothing{"no-device", {}, "", {}};
  if (!write(&nothing, folder)) return false;
  const cache::HistorySnapshot empty;
  Case bare{"no-segment", {}, "", {}};
  add(&bare, 0, empty, {LiveState{}});
  if (!write(&bare, folder)) return false;
  HistoryMaker maker(1, kBase);
  maker.run(2000);
  cache::HistorySnapshot still = maker.record(0);
  still.history.lost = 0;
  Case unrecorded{"no-history", {}, "", {}};
  add(&unrecorded, 0, still, {maker.states().back()});
  return write(&unrecorded, folder);
}

bool write_texts(const std::string& folder) {
  HistoryMaker maker(2, kBase);
  maker.run(3000);
  const cache::HistorySnapshot record = maker.record();
  Case texts{"texts-and-settings", {}, "", {}};
  add(&texts, 0, record, maker.states());
  texts.options.frames = frames_of;
  texts.options.settings = {{"PYTORCH_CUDA_ALLOC_CONF", std::string("a:\"b\",c:\\d")},
                            {"max_split_size", std::int64_t{-1}},
                            {"least", std::numeric_limits<std::int64_t>::min()},
                            {"garbage_collection_threshold", 0.8},
                            {"whole", 2.0},
                            {"huge", 1e300},
                            {"endless", std::numeric_limits<double>::infinity()},
                            {"expandable_segments", true},
                            {"\xf0\x9f\xa7\xb1\xed\xa0\x80", false}};
  const std::uint64_t begin = record.history.events.front().time_us;
  texts.options.annotations = {
      {DeviceId{0}, begin, {{"name", std::string("step 1")}, {"stage", std::string("START")}}},
      {DeviceId{0}, begin + 99, {{"name", std::string("step 1")}, {"n", std::int64_t{70'000}}}}};
  return write(&texts, folder);
}

bool write_long_ones(const std::string& folder) {
  HistoryMaker maker(3, kBase);
  maker.run(20'000);
  const cache::HistorySnapshot record = maker.record();
  Case whole{"20000-events", {}, "", {}};
  whole.options.frames = frames_of;
  add(&whole, 0, record, maker.states());
  const cache::HistorySnapshot cut = maker.record(5000);
  Case ring{"ring-of-5000", {}, "", {}};
  add(&ring, 0, cut, maker.states());
  Case window{"window", {}, "", {}};
  window.options.window.from_us = record.history.events[7000].time_us;
  window.options.window.to_us = record.history.events[12'345].time_us;
  add(&window, 0, record, maker.states(), 7000, 12'345);
  if (!write(&whole, folder) || !write(&ring, folder) || !write(&window, folder)) return false;

  HistoryMaker longer(4, kBase);
  longer.run(300'000);
  const cache::HistorySnapshot all = longer.record();
  const std::size_t events = all.history.events.size();
  Case most{"300000-events", {}, "", {}};
  most.options.window.events_max = kAll;
  add(&most, 0, all, longer.states());
  Case capped{"as-many-as-viewers-take", {}, "", {}};
  add(&capped, 0, all, longer.states(), events - exchange::ExportWindow().events_max);
  return write(&most, folder) && write(&capped, folder);
}

bool write_other_addresses(const std::string& folder) {
  HistoryMaker high(5, Address{(std::uint64_t{1} << 53) - (std::uint64_t{1} << 36)});
  HistoryMaker low(6, Address{4096});
  HistoryMaker third(7, kBase);
  high.run(4000);
  low.run(3000);
  third.run(5000);
  const cache::HistorySnapshot record = high.record();
  const cache::HistorySnapshot records[] = {low.record(), third.record()};
  Case near{"addresses-near-2-to-the-53", {}, "", {}};
  add(&near, 0, record, high.states());
  Case several{"several-devices", {}, "", {}};
  add(&several, 5, records[1], third.states());
  add(&several, 0, records[0], low.states());
  add(&several, 1, record, high.states());
  return write(&near, folder) && write(&several, folder);
}

/// The caching allocator itself, on three streams that use each other's memory, over this computer's.
bool write_allocator(const std::string& folder, cache::Backing backing, const std::string& name) {
  device::HostDevice host(DeviceId{0}, 64_MiB);
  device::Device* devices[] = {&host};
  cache::Config config;
  config.backing = backing;
  const auto allocator = cache::CachingAllocator::create(devices, config).value();
  std::vector<Stream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(host.create_stream().value());
  cache::HistoryOptions options;
  options.events_max = 1u << 20;
  if (!start_history(*allocator, DeviceId{0}, options).is_ok()) return false;
  std::vector<Address> live;
  std::uint64_t draws = 0;
  const auto draw = [&draws](std::uint64_t below) { return mix(++draws) % below; };
  for (int i = 0; i < 8000; ++i) {
    const Stream& stream = streams[draw(streams.size())];
    if (draw(500) == 0) static_cast<void>(allocator->trim(DeviceId{0}));
    if (live.size() < 60 && draw(5) != 0) {
      const Bytes size{1 + draw(draw(6) == 0 ? 3u << 20 : 40'000)};
      const Result<Address> got = allocator->allocate(size, stream);
      if (got.is_ok()) live.push_back(got.value());
    } else if (!live.empty()) {
      std::swap(live[draw(live.size())], live.back());
      const bool is_used = draw(3) == 0;
      static_cast<void>(is_used ? allocator->free(live.back(), stream)
                                : allocator->free(live.back()));
      live.pop_back();
    }
  }
  cache::HistorySnapshot record;
  if (!history_snapshot(*allocator, DeviceId{0}, &record).is_ok()) return false;
  std::vector<LiveState> states(1);
  for (const cache::HistoryEvent& event : record.history.events) {
    states.push_back(states.back());
    advance(event, &states.back());
  }
  Case made{name, {}, "", {}};
  add(&made, 0, record, states);
  return write(&made, folder);
}

}  // namespace
}  // namespace ashlar::props

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string folder = arguments[1];
  using namespace ashlar::props;
  const bool is_done = write_odd_ones(folder) && write_texts(folder) && write_long_ones(folder) &&
                       write_other_addresses(folder) &&
                       write_allocator(folder, ashlar::Backing::kSegments, "allocator-segments") &&
                       write_allocator(folder, ashlar::Backing::kPages, "allocator-pages");
  return is_done ? 0 : 1;
}
