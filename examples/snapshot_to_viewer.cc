// The memory of a program in PyTorch's snapshot viewer.
//
// Shows: a device's history, with labels of the program's parts, and its snapshot, written as the pickle that
// https://pytorch.org/memory_viz opens (drop the file on the page), and as JSON.
// Prints:
//   snapshot.pickle: 3 blocks live, 11 events, ... bytes
//   snapshot.json: 3 blocks live, 11 events, ... bytes
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ashlar/ashlar.h>
#include <ashlar/exchange.h>

using namespace ashlar;

namespace {

bool write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  return static_cast<bool>(file);
}

}  // namespace

int main() {
  exchange::LabelContexts labels;
  HostDevice device;
  Device* const devices[] = {&device};
  auto created = CachingAllocator::create(devices, Config{});
  if (!created.is_ok()) return 1;
  const std::unique_ptr<CachingAllocator> allocator = std::move(created).value();
  const DeviceId id = device.traits().id;
  const Stream stream = device.identify(HostDevice::kDefaultStream).value();

  HistoryOptions history;
  history.recorder = &labels;
  if (!start_history(*allocator, id, history).is_ok()) return 1;

  // A program that has some memory, and has freed some.
  std::vector<Address> live;
  for (const Bytes size : {8_MiB, 3_MiB, 64_KiB, 4_MiB}) {
    const exchange::LabelScope part(labels, size > 1_MiB ? "weights" : "scratch");
    const Result<Address> block = allocator->allocate(size, stream);
    if (!block.is_ok()) return 1;
    live.push_back(block.value());
  }
  if (!allocator->free(live[1]).is_ok()) return 1;
  live.erase(live.begin() + 1);

  // Every segment and block of the device at this moment, and what has happened until then.
  HistorySnapshot record;
  if (!history_snapshot(*allocator, id, &record).is_ok()) return 1;
  std::size_t blocks_live = 0;
  for (const SnapshotBlock& block : record.snapshot.blocks)
    blocks_live += block.state == BlockState::kLive ? 1 : 0;

  exchange::TorchSnapshotOptions options;
  options.settings = {{"program", std::string("snapshot_to_viewer")}};
  options.frames = labels.frames();
  for (const bool is_pickle : {true, false}) {
    options.format = is_pickle ? exchange::TorchFormat::kPickle : exchange::TorchFormat::kJson;
    std::string bytes;
    const Status written =
        exchange::write_torch_snapshot({{id, &record}}, options, exchange::string_sink(&bytes));
    const std::string path = is_pickle ? "snapshot.pickle" : "snapshot.json";
    if (!written.is_ok() || !write(path, bytes)) {
      std::cerr << path << ": " << written.why() << '\n';
      return 1;
    }
    std::cout << path << ": " << blocks_live << " blocks live, " << record.history.events.size()
              << " events, " << bytes.size() << " bytes\n";
  }

  bool is_done = true;
  for (const Address block : live) is_done = allocator->free(block).is_ok() && is_done;
  return is_done ? 0 : 1;
}
