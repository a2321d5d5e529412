// The structure of PyTorch's memory snapshot, whatever form it is written in.
//
// Purpose: what torch.cuda.memory._snapshot() returns and its viewer reads (PyTorch 2.1 and later):
//
//   {"segments": [segment...],               device by device, by address
//    "device_traces": [[event...]...],       by device; oldest event first
//    "allocator_settings": {...},
//    "external_annotations": [{...}...]}
//
// Thread safety: one thread at a time.
#pragma once

#include <vector>

#include <ashlar/exchange/document_sink.h>
#include <ashlar/exchange/frame_cache.h>
#include <ashlar/exchange/rewind.h>
#include <ashlar/exchange/torch_snapshot.h>
#include <ashlar/exchange/window.h>

namespace ashlar::inline v0::exchange {

/// One device, ready to be written.
struct TorchDevice {
  DeviceId device;
  const cache::History* history = nullptr;
  WindowedEvents events;
  Rewind at_end;  ///< memory after the last of these events
};

/// Walks over the document of some devices. Throws what the sink and the frame source throw.
class TorchDocument {
 public:
  /// Both outlive the document.
  TorchDocument(DocumentSink* sink, const TorchSnapshotOptions& options)
      : sink_(*sink), options_(options), frames_(options.frames) {}

  void write(const std::vector<TorchDevice>& devices);

 private:
  struct Tile;

  void write_segments(const TorchDevice& device);
  void write_segment(DeviceId device, Address base, const RewoundSegment& segment,
                     const std::vector<Tile>& tiles);
  void write_block(const Tile& tile);
  void write_traces(const std::vector<TorchDevice>& devices);
  void write_event(const cache::History& history, const cache::HistoryEvent& event);
  void write_frames(cache::ContextId context);
  void write_settings(const std::vector<TorchDevice>& devices);
  void write_annotations();
  void write_value(const Value& value);

  DocumentSink& sink_;
  const TorchSnapshotOptions& options_;
  FrameCache frames_;
};

}  // namespace ashlar::inline v0::exchange
