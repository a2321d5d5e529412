// Inference by 16 workers, each with a stream of its own (the per-thread default stream's pattern).
//
// A request runs three to eight layers on its worker's stream, with a scratch block each. One
// result in four goes on to another worker, whose stream waits for it; it is freed there, by the
// receiver. Which worker does its next piece of work is drawn at random: the interleaving of
// threads, in one fixed order.
#include <optional>
#include <vector>

#include "bench/generators/workloads.h"

namespace ashlar::bench {
namespace {

constexpr unsigned kWorkers = 16;

struct Worker {
  unsigned stream = 0;
  std::uint32_t layers_left = 0;
  std::uint64_t width = 0;
  std::optional<Block> current;  ///< the layer's input
  std::vector<Block> inbox;
};

/// 4 KiB .. 8 MiB, log-uniform over powers of two with a remainder: request shapes are rarely
/// round.
std::uint64_t draw_bytes(spec::Random& random) {
  const std::uint64_t base = std::uint64_t{4096} << random.below(11);
  return base + random.below(base);
}

void begin_request(WorkloadRecorder& recorder, Worker& worker) {
  worker.layers_left = static_cast<std::uint32_t>(3 + recorder.random().below(6));
  worker.width = draw_bytes(recorder.random());
  worker.current = recorder.allocate(worker.width, worker.stream);
  if (worker.inbox.empty()) return;
  const Block received = worker.inbox.back();
  worker.inbox.pop_back();
  recorder.kernel(worker.stream, received, KernelTouch::kRead);
  recorder.free_on(received, worker.stream);
}

void run_layer(WorkloadRecorder& recorder, Worker& worker) {
  const Block scratch = recorder.allocate(worker.width / 2 + 1, worker.stream);
  const Block output = recorder.allocate(worker.width, worker.stream);
  recorder.kernel(worker.stream, *worker.current, KernelTouch::kRead);
  recorder.kernel(worker.stream, scratch, KernelTouch::kReadWrite);
  recorder.kernel(worker.stream, output, KernelTouch::kWrite);
  recorder.free(scratch);
  recorder.free(*worker.current);
  worker.current = output;
  --worker.layers_left;
}

void end_request(WorkloadRecorder& recorder, Worker& worker, std::vector<Worker>& workers) {
  Worker& receiver = workers[recorder.random().below(kWorkers)];
  if (&receiver == &worker || !recorder.random().one_in(4)) {
    recorder.free(*worker.current);
  } else {
    recorder.order(worker.stream, receiver.stream);
    receiver.inbox.push_back(*worker.current);
  }
  worker.current.reset();
}

}  // namespace

void generate_workers(WorkloadRecorder& recorder, std::uint32_t steps) {
  std::vector<Worker> workers(kWorkers);
  for (Worker& worker : workers) worker.stream = recorder.new_stream();
  for (std::uint32_t step = 0; step < steps; ++step) {
    Worker& worker = workers[recorder.random().below(kWorkers)];
    if (!worker.current) {
      begin_request(recorder, worker);
    } else if (worker.layers_left > 0) {
      run_layer(recorder, worker);
    } else {
      end_request(recorder, worker, workers);
    }
    if (step % 8 == 7) recorder.progress();
  }
  for (Worker& worker : workers) {
    if (worker.current) recorder.free(*worker.current);
    for (const Block& received : worker.inbox) recorder.free(received);
  }
}

}  // namespace ashlar::bench
