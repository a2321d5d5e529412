// The GPU as a backend: its kernels, its copies, its order, a transformer from end to end, alone and beside the processor.
//
// Imitates: inference on a GPU, on two streams of it, and over a GPU and the host.
// Does not prove: anything about devices that it is not run on. Over the simulated GPU each launch, copy and product runs as late as
// it may, in the memory that it was told; the lanes of a warp together run on a GPU only.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "props/graph/model_run.h"
#include "props/graph/node_runs.h"
#include "props/on_gpu/gpu_session.h"
#include "spec/cuda_face/cuda_face.h"
#include "src/cpu_backend/cpu_backend.h"
#include "src/cuda_backend/cuda_backend.h"

namespace ashlar {
namespace {

using cuda_backend::CudaBackend;
using cuda_backend::CudaGpu;
using graph::ElementType;
using graph::Graph;
using graph::Operation;
using graph::TensorId;
using graph::TensorSpec;
using props::GpuSession;
using props::MadeGraph;
using props::ModelGraph;
using props::ModelRun;

constexpr std::byte kNoImage[8] = {};  // the simulated driver does not read it

class BackendGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    session_.enter();
    gpu_ = open(true);
    if (gpu_ != nullptr) backend_ = make("gpu");
  }
  void TearDown() override {
    backend_.reset();
    gpu_.reset();
    EXPECT_EQ(session_.take_faults(), "");
    session_.leave();
  }

  /// A GPU, with cuBLAS or without. Null, and the test is skipped: this build has no kernels.
  std::shared_ptr<CudaGpu> open(bool has_blas) {
    cuda_backend::GpuOptions options;
    options.driver = session_.library();
    if (session_.is_simulated()) {
      static_cast<void>(spec::cuda_face::blas_products());
      options.blas = cuda_backend::load_blas(nullptr);
      options.image = kNoImage;
      EXPECT_TRUE(options.blas->is_there());
    }
    if (!has_blas) options.blas = cuda_backend::BlasFunctions{};
    auto opened = CudaGpu::open(options);
    if (!opened.is_ok()) ADD_FAILURE() << opened.status().why();
    return opened.is_ok() ? std::move(opened).value() : nullptr;
  }
  std::unique_ptr<CudaBackend> make(const char* name,
                                    const std::shared_ptr<CudaGpu>& gpu = nullptr) {
    return CudaBackend::create(gpu == nullptr ? gpu_ : gpu, name).value();
  }
  static std::vector<std::byte> numbers(std::size_t count, unsigned from) {
    std::vector<std::byte> bytes(count);
    for (std::size_t k = 0; k < count; ++k) bytes[k] = static_cast<std::byte>(from + k * 7);
    return bytes;
  }

  GpuSession& session_ = GpuSession::get();
  std::shared_ptr<CudaGpu> gpu_;
  std::unique_ptr<CudaBackend> backend_;
};

/// A graph's tensors on the host, with a buffer on the GPU for each root: a node is computed there.
class Mirror {
 public:
  Mirror(CudaBackend& backend, const Graph& graph) : backend_(backend), graph_(graph) {
    for (std::uint32_t t = 0; t < graph.tensors().size(); ++t) {
      const graph::Tensor& tensor = graph.tensors()[t];
      const bool is_root = tensor.root.value() == t;
      there_.push_back(is_root ? backend.make_buffer(std::max(tensor.extent, Bytes{1})).value()
                               : there_[tensor.root.value()] + tensor.view_offset);
    }
  }
  ~Mirror() {
    for (std::uint32_t t = 0; t < there_.size(); ++t) {
      if (graph_.tensors()[t].root.value() != t) continue;
      EXPECT_TRUE(backend_.release_buffer(there_[t]).is_ok());
    }
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  Status compute(TensorId node, const std::vector<Address>& here) {
    for (std::uint32_t t = 0; t < there_.size(); ++t) {
      if (graph_.tensors()[t].root.value() != t) continue;
      const Status status = backend_.set_async(there_[t], bytes(TensorId{t}, here));
      if (!status.is_ok()) return status;
    }
    Status status = backend_.compute(graph_, std::span(&node, 1), there_);
    if (!status.is_ok()) return status;
    for (std::uint32_t t = 0; t < there_.size(); ++t) {
      if (graph_.tensors()[t].root.value() != t) continue;
      status = backend_.get_async(bytes(TensorId{t}, here), there_[t]);
      if (!status.is_ok()) return status;
    }
    return backend_.synchronize();
  }

 private:
  std::span<std::byte> bytes(TensorId root, const std::vector<Address>& here) const {
    return {static_cast<std::byte*>(here[root.value()].pointer()), graph_[root].extent.count()};
  }

  CudaBackend& backend_;
  const Graph& graph_;
  std::vector<Address> there_;
};

/// The first node of random graphs whose values are others than the reference's.
std::string compare_kernels(CudaBackend& backend, std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto data = props::random_bytes(seed + 9000, 64 + seed % 5 * 60);
    props::ByteSource source(data);
    const MadeGraph made = make_graph(source, {12, false, true});
    cpu::CpuBackend processor("cpu", std::make_shared<cpu::HostBuffers>());
    Mirror mirror(backend, made.graph);
    const auto compute = [&](const Graph& graph, TensorId node,
                             const std::vector<Address>& addresses) {
      if (!backend.supports(graph, node))
        return processor.compute(graph, std::span(&node, 1), addresses);
      return mirror.compute(node, addresses);
    };
    const std::string found = props::NodeRuns(made, seed).run(compute);
    if (!found.empty()) return found + ", seed " + std::to_string(seed);
  }
  return "";
}

TEST_F(BackendGpuTest, ComputesWhatTheReferenceComputes) {
  ASSERT_NE(backend_, nullptr);
  EXPECT_EQ(compare_kernels(*backend_, 300), "");
}

TEST_F(BackendGpuTest, ComputesTheSameWithoutBlas) {
  const std::shared_ptr<CudaGpu> plain = open(false);
  ASSERT_NE(plain, nullptr);
  const std::unique_ptr<CudaBackend> backend = make("plain", plain);
  EXPECT_FALSE(backend->has_blas());
  EXPECT_EQ(compare_kernels(*backend, 100), "");
}

/// A product of a weight of that type with `rows` rows of floats, in batches; `shared` of the second source use one
/// matrix of the first.
MadeGraph product_graph(ElementType weights, std::uint64_t rows, std::uint64_t shared) {
  MadeGraph made;
  TensorSpec a, b, out;
  a.type = weights;
  a.shape = {256, 5, 2, 1};
  a.flags = graph::kInput;
  b.shape = {256, rows, 2 * shared, 2};
  b.flags = graph::kInput;
  const TensorId left = made.graph.add(a).value(), right = made.graph.add(b).value();
  out.operation = Operation::kMulMat;
  out.shape = {5, rows, 2 * shared, 2};
  out.sources = {left, right};
  static_cast<void>(made.graph.add(out).value());
  return made;
}

TEST_F(BackendGpuTest, MultipliesByBlasWhatItTakes) {
  ASSERT_NE(backend_, nullptr);
  if (!backend_->has_blas()) GTEST_SKIP() << "cuBLAS was not found";
  struct Case {
    ElementType weights;
    std::uint64_t rows, shared;
    int products;  // of cuBLAS
  };
  const Case cases[] = {{ElementType::kF32, 1, 1, 2},   {ElementType::kF32, 40, 1, 2},
                        {ElementType::kF32, 3, 3, 4},   {ElementType::kF16, 31, 1, 0},
                        {ElementType::kF16, 32, 1, 2},  {ElementType::kQ4_0, 31, 1, 0},
                        {ElementType::kQ4_0, 40, 2, 4}, {ElementType::kQ6_K, 33, 1, 2}};
  for (const Case& one : cases) {
    const MadeGraph made = product_graph(one.weights, one.rows, one.shared);
    Mirror mirror(*backend_, made.graph);
    const int before = spec::cuda_face::blas_products();
    const auto compute = [&](const Graph&, TensorId node, const std::vector<Address>& addresses) {
      return mirror.compute(node, addresses);
    };
    EXPECT_EQ(props::NodeRuns(made, one.rows).run(compute), "") << one.rows << " " << one.shared;
    if (!session_.is_simulated()) continue;
    EXPECT_EQ(spec::cuda_face::blas_products() - before, one.products) << one.rows;
  }
}

TEST_F(BackendGpuTest, KeepsTheOrderOfItsQueue) {
  ASSERT_NE(backend_, nullptr);
  constexpr std::size_t kBytes = 1 << 20;
  const Address at = backend_->make_buffer(Bytes{kBytes}).value();
  const auto first = numbers(kBytes, 1), second = numbers(kBytes, 100);
  std::vector<std::byte> one(kBytes), two(kBytes);
  EXPECT_TRUE(backend_->set_async(at, first).is_ok());
  EXPECT_TRUE(backend_->get_async(one, at).is_ok());
  EXPECT_TRUE(backend_->set_async(at, second).is_ok());
  EXPECT_TRUE(backend_->get_async(two, at).is_ok());
  EXPECT_TRUE(backend_->synchronize().is_ok());
  EXPECT_EQ(one, first);
  EXPECT_EQ(two, second);
  EXPECT_TRUE(backend_->release_buffer(at).is_ok());
}

TEST_F(BackendGpuTest, LetsAnEventHoldBackAnotherStream) {
  ASSERT_NE(backend_, nullptr);
  const std::unique_ptr<CudaBackend> other = make("other");
  EXPECT_EQ(other->memory(), backend_->memory());
  constexpr std::size_t kBytes = 8 << 20;
  const Address from = backend_->make_buffer(Bytes{kBytes}).value();
  const Address to = other->make_buffer(Bytes{kBytes}).value();
  const auto values = numbers(kBytes, 3);
  std::vector<std::byte> got(kBytes);
  const auto copied = backend_->make_event().value();
  EXPECT_TRUE(backend_->set_async(from, values).is_ok());
  EXPECT_TRUE(backend_->copy_async(from, *other, to, Bytes{kBytes}).is_ok());
  EXPECT_TRUE(backend_->record(*copied).is_ok());
  EXPECT_TRUE(other->wait(*copied).is_ok());
  EXPECT_TRUE(other->get_async(got, to).is_ok());
  EXPECT_TRUE(other->synchronize().is_ok());
  EXPECT_EQ(got, values);
  EXPECT_TRUE(backend_->synchronize(*copied).is_ok());
  EXPECT_TRUE(backend_->synchronize().is_ok());
  EXPECT_TRUE(backend_->release_buffer(from).is_ok());
  EXPECT_TRUE(other->release_buffer(to).is_ok());
}

TEST_F(BackendGpuTest, CopiesToTheProcessorAndBack) {
  ASSERT_NE(backend_, nullptr);
  cpu::CpuBackend processor("cpu", std::make_shared<cpu::HostBuffers>());
  constexpr std::size_t kBytes = 3 << 20;
  const Address there = backend_->make_buffer(Bytes{kBytes}).value();
  const Address here = processor.make_buffer(Bytes{kBytes}).value();
  const auto values = numbers(kBytes, 9);
  std::memcpy(here.pointer(), values.data(), kBytes);
  EXPECT_TRUE(copy_between(processor, here, *backend_, there, Bytes{kBytes}).is_ok());
  std::memset(here.pointer(), 0, kBytes);
  EXPECT_TRUE(backend_->copy_async(there, processor, here, Bytes{kBytes}).is_ok());
  EXPECT_TRUE(backend_->synchronize().is_ok());
  EXPECT_EQ(std::memcmp(here.pointer(), values.data(), kBytes), 0);
  EXPECT_EQ(backend_->copy_async(there + Bytes{1}, processor, here, Bytes{kBytes}).code(),
            Code::kWrongDevice);
  EXPECT_TRUE(backend_->release_buffer(there).is_ok());
}

TEST_F(BackendGpuTest, RefusesBuffersAndEventsOfOthers) {
  ASSERT_NE(backend_, nullptr);
  const std::unique_ptr<CudaBackend> stranger = make("stranger", open(true));
  EXPECT_NE(stranger->memory(), backend_->memory());
  const Address at = stranger->make_buffer(4_KiB).value();
  std::byte bytes[64] = {};
  EXPECT_EQ(backend_->set_async(at, bytes).code(), Code::kWrongDevice);
  EXPECT_EQ(backend_->get_async(bytes, at).code(), Code::kWrongDevice);
  EXPECT_EQ(backend_->copy_async(at, *stranger, at, 64_B).code(), Code::kWrongDevice);
  EXPECT_EQ(backend_->release_buffer(at).code(), Code::kUnknownPointer);
  EXPECT_FALSE(backend_->can_read(stranger->memory()));
  const auto event = stranger->make_event().value();
  EXPECT_EQ(backend_->record(*event).code(), Code::kWrongDevice);
  EXPECT_EQ(backend_->synchronize(*event).code(), Code::kWrongDevice);
  EXPECT_TRUE(backend_->wait(*event).is_ok()) << "an event of another GPU can be waited for";
  struct Foreign final : sched::BackendEvent {
    using BackendEvent::BackendEvent;
  } const foreign(*stranger);
  EXPECT_EQ(backend_->wait(foreign).code(), Code::kWrongDevice);
  EXPECT_TRUE(stranger->release_buffer(at).is_ok());
  EXPECT_EQ(stranger->release_buffer(at).code(), Code::kUnknownPointer);
}

TEST_F(BackendGpuTest, AdoptsMemoryOfTheCaller) {
  ASSERT_NE(backend_, nullptr);
  const Address segment = session_.device().segment_alloc(2_MiB).value();
  const Address mine = segment + 128_B;
  EXPECT_EQ(backend_->adopt_buffer((segment + 4_B).pointer(), 64_B).code(), Code::kInvalidArgument);
  EXPECT_EQ(backend_->adopt_buffer(nullptr, 64_B).code(), Code::kInvalidArgument);
  EXPECT_EQ(backend_->adopt_buffer(mine.pointer(), 4_KiB).value(), mine);
  EXPECT_EQ(backend_->adopt_buffer(mine.pointer(), 4_KiB).code(), Code::kInvalidArgument);
  const auto values = numbers(4096, 5);
  std::vector<std::byte> got(4096);
  EXPECT_TRUE(backend_->set(mine, values).is_ok());
  EXPECT_TRUE(backend_->get(got, mine).is_ok());
  EXPECT_EQ(got, values);
  EXPECT_TRUE(backend_->release_buffer(mine).is_ok());
  EXPECT_TRUE(session_.device().segment_free(segment).is_ok())
      << "the memory is still the caller's";
}

TEST_F(BackendGpuTest, ReportsAnIndexOutOfRangeOnce) {
  ASSERT_NE(backend_, nullptr);
  MadeGraph made;
  TensorSpec table, rows, out;
  table.shape = {4, 3, 1, 1};
  rows.type = ElementType::kI32;
  rows.shape = {2, 1, 1, 1};
  const TensorId from = made.graph.add(table).value(), which = made.graph.add(rows).value();
  out.operation = Operation::kGetRows;
  out.shape = {4, 2, 1, 1};
  out.sources = {from, which};
  const TensorId node = made.graph.add(out).value();
  std::vector<float> values(12, 1.5f), got(8, 0);
  std::int32_t indices[2] = {2, 3};
  const std::vector<Address> here{Address::of(values.data()), Address::of(indices),
                                  Address::of(got.data())};
  Mirror mirror(*backend_, made.graph);
  EXPECT_EQ(mirror.compute(node, here).code(), Code::kInvalidArgument);
  EXPECT_TRUE(backend_->synchronize().is_ok());
  indices[1] = 0;
  EXPECT_TRUE(mirror.compute(node, here).is_ok());
  EXPECT_EQ(got, std::vector<float>(8, 1.5f));
}

TEST_F(BackendGpuTest, RunsATransformerFromEndToEnd) {
  ASSERT_NE(backend_, nullptr);
  for (const bool has_one_attention : {false, true}) {
    for (const std::uint64_t experts : {std::uint64_t{0}, std::uint64_t{4}}) {
      props::TransformerShape shape;
      shape.has_one_attention = has_one_attention;
      shape.experts = experts;
      const ModelGraph model = transformer(shape);
      const std::unique_ptr<CudaBackend> other = make("other");
      cpu::CpuBackend processor("cpu", std::make_shared<cpu::HostBuffers>(), 2);
      ModelRun alone(model, {backend_.get()}), beside(model, {backend_.get(), &processor});
      ModelRun behind(model, {&processor, backend_.get()});
      ModelRun streams(model, {backend_.get(), other.get()});
      EXPECT_LE(alone.difference(), props::kEndToEnd) << model.name;
      EXPECT_LE(beside.difference(), props::kEndToEnd) << model.name;
      EXPECT_LE(behind.difference(), props::kEndToEnd) << model.name;
      EXPECT_LE(streams.difference(), props::kEndToEnd) << model.name;
      EXPECT_EQ(alone.splits(), 1u);
      EXPECT_GE(beside.splits(), 2u);
      EXPECT_GE(behind.splits(), 2u);
    }
  }
}

TEST_F(BackendGpuTest, RunsEverySmallModel) {
  ASSERT_NE(backend_, nullptr);
  for (const ModelGraph& model : props::small_models()) {
    ASSERT_FALSE(model.outputs.empty()) << model.name;
    ModelRun alone(model, {backend_.get()});
    EXPECT_LE(alone.difference(), props::kEndToEnd) << model.name;
  }
}

}  // namespace
}  // namespace ashlar
