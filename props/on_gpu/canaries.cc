#include "props/on_gpu/canaries.h"

#include <algorithm>
#include <utility>

#include "props/on_gpu/canary_image.h"

namespace ashlar::props {
namespace {

constexpr unsigned kBlocksMax = 32;  // leaves room on a GPU for other streams' kernels
/// On the host, where a word takes a nanosecond and a page of the host's a microsecond, larger ranges are looked at here and there.
constexpr Bytes kDenseMax = 64_KiB, kGranulesMax = 1_MiB;

std::uint64_t host_stride(Bytes size) {
  if (size <= kDenseMax) return kCanaryWord;
  return size <= kGranulesMax ? 512 : 16384;
}

}  // namespace

Canaries::Canaries(GpuSession& session, cuda::Kernel kernel, Address results, const Stream& own)
    : session_(session),
      kernel_(kernel),
      results_(results),
      own_(own),
      uses_(kSlots, SlotUse::kFree),
      host_(kSlots) {
  session_.copy(results_, Address::of(host_.data()), Bytes{kSlots * sizeof(CanaryResult)}, own_);
  session_.synchronize(own_);
}

Canaries::~Canaries() {
  static_cast<void>(session_.device().segment_free(results_));
  session_.destroy_stream(own_);
}

Result<std::unique_ptr<Canaries>> Canaries::create(GpuSession& session) {
  const Result<cuda::Kernel> kernel = session.load_kernel(canary_image(), kCanaryName);
  if (!kernel.is_ok()) return kernel.status();
  const Result<Address> results =
      session.device().segment_alloc(Bytes{kSlots * sizeof(CanaryResult)});
  if (!results.is_ok()) return results.status();
  return std::unique_ptr<Canaries>(
      new Canaries(session, kernel.value(), results.value(), session.create_stream()));
}

bool Canaries::launch(const CanaryRange& range, spec::Access access, const Stream& on,
                      std::uint64_t spin_ticks, CanaryResult* result) {
  CanaryCall call;
  call.begin = range.at.value();
  call.bytes = range.size.count();
  if (session_.is_simulated()) call.stride = host_stride(range.size);
  call.owner = range.owner;
  call.tag = range.tag;
  call.group = range.group;
  call.spin_ticks = spin_ticks;
  call.result = result;
  call.access = static_cast<std::uint32_t>(access);
  const std::uint64_t words = call.bytes / call.stride;
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::uint64_t>(words / GpuSession::kBlockThreads, 1, kBlocksMax));
  void* parameters[] = {&call};
  return session_.launch(kernel_, blocks, on, parameters);
}

bool Canaries::fill(const CanaryRange& range, const Stream& on, std::uint64_t spin_ticks) {
  return launch(range, spec::Access::kWrite, on, spin_ticks, nullptr);
}

bool Canaries::check(const CanaryRange& range, const Stream& on, std::uint64_t spin_ticks,
                     Slot slot, bool writes) {
  return launch(range, writes ? spec::Access::kReadWrite : spec::Access::kRead, on, spin_ticks,
                static_cast<CanaryResult*>(result_of(slot).pointer()));
}

std::optional<Canaries::Slot> Canaries::take_slot(bool is_kept) {
  for (Slot looked = 0; looked < kSlots; ++looked) {
    const Slot slot = next_;
    next_ = (next_ + 1) % kSlots;
    if (uses_[slot] != SlotUse::kFree) continue;
    uses_[slot] = is_kept ? SlotUse::kKept : SlotUse::kOnce;
    return slot;
  }
  return std::nullopt;
}

void Canaries::give_back(Slot slot) { uses_[slot] = SlotUse::kFree; }

std::optional<std::vector<Canaries::Finding>> Canaries::collect() {
  if (!session_.device().synchronize().is_ok()) return std::nullopt;
  const Bytes size{kSlots * sizeof(CanaryResult)};
  session_.copy(Address::of(host_.data()), results_, size, own_);
  session_.synchronize(own_);
  std::vector<Finding> found;
  for (Slot slot = 0; slot < kSlots; ++slot) {
    if (host_[slot].mismatches != 0) found.push_back({slot, host_[slot]});
    if (uses_[slot] == SlotUse::kOnce) uses_[slot] = SlotUse::kFree;
  }
  if (found.empty()) return found;
  std::fill(host_.begin(), host_.end(), CanaryResult{});
  session_.copy(results_, Address::of(host_.data()), size, own_);
  session_.synchronize(own_);
  return found;
}

}  // namespace ashlar::props
