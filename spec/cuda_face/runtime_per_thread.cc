// The names that a program compiled for per-thread default streams calls: stream 0 is the calling thread's own there.
//
// Thread safety: any thread.
// Source: "CUDA Runtime API", version 13.0, chapter 2 ("API synchronization behavior") and 3 ("Stream synchronization behavior").
#include "spec/cuda_face/runtime_calls.h"

namespace ashlar::spec {
namespace [[gnu::visibility("default")]] cuda_runtime {
namespace {

StreamPointer own(StreamPointer stream) {
  return stream != nullptr ? stream : reinterpret_cast<StreamPointer>(kStreamPerThread);
}

}  // namespace

namespace per_thread {

CallResult memcpy(void* to, const void* from, std::size_t size, int kind) asm("cudaMemcpy_ptds");
CallResult memcpy_async(void* to, const void* from, std::size_t size, int kind,
                        StreamPointer stream) asm("cudaMemcpyAsync_ptsz");
CallResult memset(void* at, int value, std::size_t size) asm("cudaMemset_ptds");
CallResult memset_async(void* at, int value, std::size_t size,
                        StreamPointer stream) asm("cudaMemsetAsync_ptsz");
CallResult malloc_async(void** base, std::size_t size,
                        StreamPointer stream) asm("cudaMallocAsync_ptsz");
CallResult malloc_from_pool_async(void** base, std::size_t size, MemoryPool pool,
                                  StreamPointer stream) asm("cudaMallocFromPoolAsync_ptsz");
CallResult free_async(void* base, StreamPointer stream) asm("cudaFreeAsync_ptsz");
CallResult stream_query(StreamPointer stream) asm("cudaStreamQuery_ptsz");
CallResult stream_synchronize(StreamPointer stream) asm("cudaStreamSynchronize_ptsz");
CallResult stream_wait_event(StreamPointer stream, EventPointer event,
                             unsigned flags) asm("cudaStreamWaitEvent_ptsz");
CallResult stream_get_id(StreamPointer stream, unsigned long long* id) asm("cudaStreamGetId_ptsz");
CallResult stream_is_capturing(StreamPointer stream, int* status) asm("cudaStreamIsCapturing_ptsz");
CallResult stream_begin_capture(StreamPointer stream, int mode) asm("cudaStreamBeginCapture_ptsz");
CallResult stream_end_capture(StreamPointer stream, Graph* graph) asm("cudaStreamEndCapture_ptsz");
CallResult event_record(EventPointer event, StreamPointer stream) asm("cudaEventRecord_ptsz");
CallResult event_record_with_flags(EventPointer event, StreamPointer stream,
                                   unsigned flags) asm("cudaEventRecordWithFlags_ptsz");

CallResult memcpy(void* to, const void* from, std::size_t size, int kind) {
  return copy(to, from, size, kind, own(nullptr), true);
}
CallResult memcpy_async(void* to, const void* from, std::size_t size, int kind,
                        StreamPointer stream) {
  return cudaMemcpyAsync(to, from, size, kind, own(stream));
}
CallResult memset(void* at, int value, std::size_t size) {
  return fill(at, value, size, own(nullptr), false);
}
CallResult memset_async(void* at, int value, std::size_t size, StreamPointer stream) {
  return cudaMemsetAsync(at, value, size, own(stream));
}
CallResult malloc_async(void** base, std::size_t size, StreamPointer stream) {
  return cudaMallocAsync(base, size, own(stream));
}
CallResult malloc_from_pool_async(void** base, std::size_t size, MemoryPool pool,
                                  StreamPointer stream) {
  return cudaMallocFromPoolAsync(base, size, pool, own(stream));
}
CallResult free_async(void* base, StreamPointer stream) { return cudaFreeAsync(base, own(stream)); }
CallResult stream_query(StreamPointer stream) { return cudaStreamQuery(own(stream)); }
CallResult stream_synchronize(StreamPointer stream) { return cudaStreamSynchronize(own(stream)); }
CallResult stream_wait_event(StreamPointer stream, EventPointer event, unsigned flags) {
  return cudaStreamWaitEvent(own(stream), event, flags);
}
CallResult stream_get_id(StreamPointer stream, unsigned long long* id) {
  return cudaStreamGetId(own(stream), id);
}
CallResult stream_is_capturing(StreamPointer stream, int* status) {
  return cudaStreamIsCapturing(own(stream), status);
}
CallResult stream_begin_capture(StreamPointer stream, int mode) {
  return cudaStreamBeginCapture(own(stream), mode);
}
CallResult stream_end_capture(StreamPointer stream, Graph* graph) {
  return cudaStreamEndCapture(own(stream), graph);
}
CallResult event_record(EventPointer event, StreamPointer stream) {
  return cudaEventRecord(event, own(stream));
}
CallResult event_record_with_flags(EventPointer event, StreamPointer stream, unsigned flags) {
  return cudaEventRecordWithFlags(event, own(stream), flags);
}

}  // namespace per_thread
}  // namespace cuda_runtime
}  // namespace ashlar::spec
