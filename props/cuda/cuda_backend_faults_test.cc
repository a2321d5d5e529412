// The GPU's backend when the driver refuses: each call fails once, by a want of memory or by an error that stays.
//
// Imitates: a GPU whose memory others have taken, a kernel that was killed, a build without kernels, a machine without cuBLAS.
// Does not prove: which calls of a real driver fail together.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "props/on_gpu/simulated_bytes.h"
#include "props/on_gpu/simulated_kernels.h"
#include "spec/cuda_face/cuda_face.h"
#include "spec/gpu/sim_gpu.h"
#include "src/cuda_backend/cuda_backend.h"

namespace ashlar {
namespace {

using cuda_backend::CudaBackend;
using cuda_backend::CudaGpu;
using graph::ElementType;
using graph::TensorId;
namespace face = spec::cuda_face;

constexpr std::byte kImage[8] = {};  // the simulated driver does not read it
constexpr std::uint64_t kLength = 64, kRows = 40, kColumns = 8;

/// A machine of its own for each test and each failing call.
class World {
 public:
  explicit World(const props::SimulatedBytes& bytes) : gpu_(bytes.machine()) {
    face::attach(&gpu_);
    face::give_bytes(bytes.begin(), bytes.size());
    face::make_current(0);
    props::provide_simulated_kernels();
    static_cast<void>(face::blas_products());
  }
  ~World() {
    face::make_current(-1);
    face::attach(nullptr);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  static cuda_backend::GpuOptions options() {
    cuda_backend::GpuOptions options;
    options.driver = nullptr;
    options.blas = cuda_backend::load_blas(nullptr);
    options.image = kImage;
    return options;
  }
  spec::SimGpu& gpu() { return gpu_; }
  /// The machine's complaints, and what is still held.
  std::string faults() {
    static_cast<void>(gpu_.leak_check(true));
    std::string text;
    for (const spec::Fault& fault : gpu_.take_faults()) text += fault.text + '\n';
    return text;
  }

 private:
  spec::SimGpu gpu_;
};

/// A product of halves with rows enough for cuBLAS, so that memory for an unpacked source is needed.
graph::Graph product_of_halves() {
  graph::Graph graph;
  graph::TensorSpec a, b, out;
  a.type = ElementType::kF16;
  a.shape = {kLength, kColumns, 1, 1};
  b.shape = {kLength, kRows, 1, 1};
  const TensorId left = graph.add(a).value(), right = graph.add(b).value();
  out.operation = graph::Operation::kMulMat;
  out.shape = {kColumns, kRows, 1, 1};
  out.sources = {left, right};
  static_cast<void>(graph.add(out).value());
  return graph;
}

/// What is copied to the GPU and back. It outlives every machine: after a wait that failed a copy may still be to come.
struct Values {
  std::vector<std::uint16_t> halves;
  std::vector<float> floats, got;
};
Values& values_of_all() {
  static Values values;
  values = {std::vector<std::uint16_t>(kLength * kColumns, 0x3c00),  // ones
            std::vector<float>(kLength * kRows, 2.0f), std::vector<float>(kColumns * kRows, 0.0f)};
  return values;
}

/// What an application does with two streams of a GPU; ends at the first error.
class Application {
 public:
  explicit Application(const cuda_backend::GpuOptions& options) {
    auto gpu = CudaGpu::open(options);
    if (!note(gpu.status())) return;
    gpu_ = std::move(gpu).value();
    for (auto* const backend : {&one_, &two_}) {
      auto made = CudaBackend::create(gpu_, "gpu");
      if (!note(made.status())) return;
      *backend = std::move(made).value();
    }
  }

  Status run() {
    if (!status_.is_ok()) return status_;
    const graph::Graph graph = product_of_halves();
    Values& values = values_of_all();
    std::vector<Address> at;
    for (const graph::Tensor& tensor : graph.tensors()) {
      const Result<Address> made = one_->make_buffer(tensor.extent);
      if (!note(made.status())) return status_;
      buffers_.push_back(made.value());
      at.push_back(made.value());
    }
    const TensorId node{2};
    auto event = one_->make_event();
    if (!note(event.status())) return status_;
    event_ = std::move(event).value();
    static_cast<void>(note(one_->set_async(at[0], std::as_bytes(std::span(values.halves)))) &&
                      note(one_->set_async(at[1], std::as_bytes(std::span(values.floats)))) &&
                      note(one_->compute(graph, std::span(&node, 1), at)) &&
                      note(one_->record(*event_)) && note(two_->wait(*event_)) &&
                      note(two_->get_async(std::as_writable_bytes(std::span(values.got)), at[2])) &&
                      note(one_->synchronize(*event_)) && note(two_->synchronize()));
    if (!status_.is_ok()) return status_;
    EXPECT_EQ(values.got, std::vector<float>(kColumns * kRows, 2.0f * kLength));
    return status_;
  }
  /// What stays is the program's fault, if no call fails from here on.
  void release() {
    event_.reset();
    for (const Address buffer : buffers_) static_cast<void>(one_->release_buffer(buffer));
    buffers_.clear();
  }

 private:
  bool note(const Status& status) {
    if (status_.is_ok()) status_ = status;
    return status.is_ok();
  }

  Status status_;
  std::shared_ptr<CudaGpu> gpu_;
  std::unique_ptr<CudaBackend> one_, two_;
  std::unique_ptr<sched::BackendEvent> event_;
  std::vector<Address> buffers_;
};

TEST(CudaBackendFaults, EachCallMayFailOnceForWantOfMemory) {
  const props::SimulatedBytes bytes;
  ASSERT_TRUE(bytes.is_there());
  int failed = 0;
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 1000) << "the calls never end";
    World world(bytes);
    bool is_over = false, was_before_release = true;
    {
      face::answer_next(cuda::kErrorOutOfMemory, n);
      Application application(World::options());
      const Status ran = application.run();
      was_before_release = !face::is_answer_due();
      EXPECT_TRUE(ran.is_ok() || ran.code() == Code::kOutOfMemory ||
                  ran.code() == Code::kDriverError)
          << n << ": " << ran.why();
      failed += ran.is_ok() ? 0 : 1;
      application.release();
    }
    is_over = face::is_answer_due();
    face::answer_next(cuda::kSuccess);
    // A call that gives something back, and is refused, leaves it.
    const std::string faults = world.faults();
    if (was_before_release) {
      EXPECT_EQ(faults, "") << "call " << n;
    }
    if (is_over) break;
  }
  EXPECT_GT(failed, 20);
}

TEST(CudaBackendFaults, AnErrorThatStaysIsPassedOnAndEndsWithoutAWait) {
  const props::SimulatedBytes bytes;
  ASSERT_TRUE(bytes.is_there());
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 1000) << "the calls never end";
    World world(bytes);
    face::answer_next(cuda::kErrorLaunchFailed, n);
    {
      Application application(World::options());
      const Status ran = application.run();
      const bool is_typed = ran.is_ok() || ran.code() == Code::kDeviceLost ||
                            ran.code() == Code::kDriverError;  // cuBLAS does not say which
      EXPECT_TRUE(is_typed) << n << ": " << ran.why();
    }
    if (face::is_answer_due()) break;
  }
}

TEST(CudaBackendFaults, SaysWhatABuildOrAMachineLacks) {
  const props::SimulatedBytes bytes;
  World world(bytes);
  cuda_backend::GpuOptions options = World::options();
  options.image = {};
  EXPECT_EQ(CudaGpu::open(options).status(),
            (Status{Code::kUnsupported,
                    "this build has no kernels for a GPU: no nvcc from CUDA 12 on was found"}));
  options.image = kImage;
  options.ordinal = 3;
  EXPECT_EQ(CudaGpu::open(options).code(), Code::kNotFound);
  options.ordinal = 0;
  face::hide("cuLaunchKernel");
  EXPECT_EQ(CudaGpu::open(options).status(),
            (Status{Code::kUnsupported, "the CUDA driver lacks cuLaunchKernel"}));
  face::hide("");
  options.blas = cuda_backend::load_blas("libno-such-library.so.1");
  EXPECT_FALSE(options.blas->is_there());
  {
    Application application(options);
    EXPECT_TRUE(application.run().is_ok());
    application.release();
  }
  EXPECT_EQ(world.faults(), "");
}

TEST(CudaBackendFaults, ACublasThatGivesNoHandleIsDoneWithout) {
  const props::SimulatedBytes bytes;
  World world(bytes);
  cuda_backend::GpuOptions options = World::options();
  constexpr cuda_backend::BlasResult kNotInitialized = 1;
  options.blas->create = [](cuda_backend::BlasHandle*) { return kNotInitialized; };
  const int before = face::blas_products();
  {
    Application application(options);
    EXPECT_TRUE(application.run().is_ok());
    application.release();
  }
  EXPECT_EQ(face::blas_products(), before) << "by our own kernels";
  options.blas->create = [](cuda_backend::BlasHandle*) { return cuda_backend::kBlasAllocFailed; };
  EXPECT_TRUE(CudaGpu::open(options).value()->blas().is_there()) << "it only lacks memory now";
  EXPECT_EQ(world.faults(), "");
}

TEST(CudaBackendFaults, ARealDriverThatIsMissingIsNamed) {
  cuda_backend::GpuOptions options = World::options();
  options.driver = "libno-such-driver.so.1";
  EXPECT_EQ(CudaGpu::open(options).status(),
            (Status{Code::kNotFound, "no CUDA driver: libcuda was not found, or is no library"}));
}

TEST(CudaBackendFaults, WhatIsNotReleasedGoesWithTheGpu) {
  const props::SimulatedBytes bytes;
  World world(bytes);
  {
    Application application(World::options());
    EXPECT_TRUE(application.run().is_ok());
  }
  EXPECT_EQ(world.faults(), "");
}

TEST(CudaBackendFaults, MemoryThatIsMissingIsAnErrorAndOneCanGoOn) {
  const props::SimulatedBytes bytes;
  World world(bytes);
  {
    const auto gpu = CudaGpu::open(World::options()).value();
    const auto backend = CudaBackend::create(gpu, "gpu").value();
    EXPECT_EQ(backend->make_buffer(2_GiB).code(), Code::kOutOfMemory);
    const Address at = backend->make_buffer(4_KiB).value();
    EXPECT_EQ(at.value() % CudaGpu::kAlignment.count(), 0u);
    EXPECT_TRUE(backend->holds(at, 4_KiB));
    EXPECT_FALSE(backend->holds(at, 4_KiB + 1_B));
    EXPECT_TRUE(backend->release_buffer(at).is_ok());
    EXPECT_FALSE(backend->holds(at, 1_B));
  }
  EXPECT_EQ(world.faults(), "");
}

TEST(CudaBackendFaults, ProductsOfManyRowsAreWorthTheCopyOfTheirWeight) {
  const props::SimulatedBytes bytes;
  World world(bytes);
  {
    const auto gpu = CudaGpu::open(World::options()).value();
    const auto backend = CudaBackend::create(gpu, "gpu").value();
    for (const std::uint64_t rows : {std::uint64_t{31}, std::uint64_t{32}}) {
      graph::Graph graph;
      graph::TensorSpec a, b, product, sum;
      a.shape = {8, 4, 1, 1};
      b.shape = {8, rows, 1, 1};
      const TensorId left = graph.add(a).value(), right = graph.add(b).value();
      product.operation = graph::Operation::kMulMat;
      product.shape = {4, rows, 1, 1};
      product.sources = {left, right};
      const TensorId multiplied = graph.add(product).value();
      sum.operation = graph::Operation::kAdd;
      sum.shape = product.shape;
      sum.sources = {multiplied, multiplied};
      const TensorId added = graph.add(sum).value();
      EXPECT_EQ(backend->prefers(graph, multiplied), rows == 32);
      EXPECT_FALSE(backend->prefers(graph, added));
      EXPECT_TRUE(backend->supports(graph, added));
    }
  }
  EXPECT_EQ(world.faults(), "");
}

TEST(CudaBackendFaults, SaysByTheDriversNumberWhyKernelsAreRefused) {
  const props::SimulatedBytes bytes;
  World world(bytes);
  // Of each error's n-th call the text, where it is of the kernels.
  const auto texts = [](cuda::CallResult answer) {
    std::string all;
    for (int n = 0;; ++n) {
      face::answer_next(answer, n);
      const auto opened = CudaGpu::open(World::options());
      if (face::is_answer_due()) break;
      if (opened.code() == Code::kUnsupported) all += std::string(opened.status().why()) + '\n';
    }
    face::answer_next(cuda::kSuccess);
    return all;
  };
  for (const cuda::CallResult answer : {200, 209, 218, 222, 500}) {
    const std::string number = "(CUDA error " + std::to_string(answer) + ")";
    EXPECT_NE(texts(answer).find(number), std::string::npos) << texts(answer);
  }
  EXPECT_NE(texts(999).find("the GPU cannot run the kernels of this build\n"), std::string::npos);
}

}  // namespace
}  // namespace ashlar
