// CaptureSession: a capture that is begun, asked, and ended whatever happened to it.
//
// Thread safety: none.
#pragma once

#include "bench/driver/driver_session.h"

namespace ashlar::bench {

class CaptureSession {
 public:
  CaptureSession(const DriverSession& session, CUstream stream, CUstreamCaptureMode mode)
      : session_(session), stream_(stream) {
    begun_ = session_.cu.stream_begin_capture(stream_, mode);
  }
  ~CaptureSession() {
    end();
    if (graph_ != nullptr) session_.cu.graph_destroy(graph_);
  }
  CaptureSession(const CaptureSession&) = delete;
  CaptureSession& operator=(const CaptureSession&) = delete;

  CUresult begun() const { return begun_; }
  bool is_invalidated() const {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    session_.cu.stream_is_capturing(stream_, &status);
    return status == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  }
  /// Ends it on its own stream and on this thread. A second call answers as the first.
  CUresult end() {
    if (!is_ended_) ended_ = session_.cu.stream_end_capture(stream_, &graph_);
    is_ended_ = true;
    return ended_;
  }
  /// The graph, once it is ended; null if there is none.
  CUgraph graph() const { return graph_; }

 private:
  const DriverSession& session_;
  CUstream stream_;
  CUgraph graph_ = nullptr;
  CUresult begun_ = CUDA_SUCCESS;
  CUresult ended_ = CUDA_SUCCESS;
  bool is_ended_ = false;
};

}  // namespace ashlar::bench
