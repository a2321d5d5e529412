#include <algorithm>
#include <string>
#include <vector>

#include "bench/driver/driver_facts.h"
#include "bench/driver/page_batch.h"

namespace ashlar::bench {
namespace {

const char* const kTopic = "Free memory, sizes, addresses";

/// How much less memory is free than before; negative: more.
class FreeBytes {
 public:
  explicit FreeBytes(const DriverSession& session) : session_(session) { start(); }
  void start() { before_ = free_bytes(session_); }
  long long taken() const {
    return static_cast<long long>(before_) - static_cast<long long>(free_bytes(session_));
  }
  std::string text() const { return std::to_string(taken()) + " B"; }

 private:
  const DriverSession& session_;
  std::size_t before_ = 0;
};

std::size_t granularity(const DriverSession& session, CUmemAllocationGranularity_flags which) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = session.device;
  std::size_t bytes = 0;
  session.cu.mem_get_granularity(&bytes, &properties, which);
  return bytes;
}

void find_sizes(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  const std::size_t least = granularity(session, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  const std::size_t best = granularity(session, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  report->fact(kTopic, "", "the granularity, minimum and recommended, is 2 MiB",
               least == kPageSize && best == kPageSize,
               std::to_string(least) + " B, " + std::to_string(best) + " B");
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle page = 0;
  const CUresult odd = create_page(session, 3 * kMiB, &page);
  const CUresult small = cu.mem_address_reserve(&at, kMiB, 0, 0, 0);
  report->fact(kTopic, "43", "a page of 3 MiB and a range of 1 MiB are refused",
               odd != CUDA_SUCCESS && small != CUDA_SUCCESS, names_of(session, {odd, small}));
  if (odd == CUDA_SUCCESS) cu.mem_release(page);
  if (small == CUDA_SUCCESS) cu.mem_address_free(at, kMiB);
  const CUresult nothing = cu.mem_alloc(&at, 0);
  report->fact(kTopic, "37", "a segment of no bytes is refused", nothing != CUDA_SUCCESS,
               names_of(session, {nothing}));
  const CUresult aligned = cu.mem_address_reserve(&at, kPageSize, 64 * kMiB, 0, 0);
  report->fact(kTopic, "", "a range can be reserved with an alignment of 64 MiB",
               aligned == CUDA_SUCCESS && at % (64 * kMiB) == 0, names_of(session, {aligned}));
  if (aligned == CUDA_SUCCESS) cu.mem_address_free(at, kPageSize);
}

void find_charges_of_pages(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  FreeBytes bytes(session);
  CUdeviceptr range = 0;
  cu.mem_address_reserve(&range, 64 * kGiB, 0, 0, 0);
  report->fact(kTopic, "44", "a range of 64 GiB takes no memory", bytes.taken() == 0, bytes.text());
  constexpr std::size_t kSize = 256 * kMiB;
  constexpr auto kExact = static_cast<long long>(kSize);
  CUmemGenericAllocationHandle page = 0;
  bytes.start();
  create_page(session, kSize, &page);
  report->fact(kTopic, "44", "a page of 256 MiB takes as much memory when it is created",
               bytes.taken() == kExact, bytes.text());
  bytes.start();
  cu.mem_map(range, kSize, 0, page, 0);
  give_access(session, range, kSize);
  report->fact(kTopic, "51", "mapping it with access takes none", bytes.taken() == 0, bytes.text());
  bytes.start();
  cu.mem_map(range + kSize, kSize, 0, page, 0);
  give_access(session, range + kSize, kSize);
  report->fact(kTopic, "51", "mapping it at a second address takes none", bytes.taken() == 0,
               bytes.text());
  bytes.start();
  cu.mem_release(page);
  report->fact(kTopic, "52", "releasing the handle while it is mapped gives none back",
               bytes.taken() == 0, bytes.text());
  cu.mem_unmap(range, kSize);
  report->fact(kTopic, "52", "nor does unmapping one of two addresses", bytes.taken() == 0,
               bytes.text());
  cu.mem_unmap(range + kSize, kSize);
  report->fact(kTopic, "52", "unmapping the last address gives all of it back",
               bytes.taken() == -kExact, bytes.text());
  bytes.start();
  create_page(session, kSize, &page);
  cu.mem_map(range, kSize, 0, page, 0);
  cu.mem_unmap(range, kSize);
  report->fact(kTopic, "51", "unmapping gives none back while the handle is held",
               bytes.taken() == kExact, bytes.text());
  cu.mem_release(page);
  report->fact(kTopic, "51", "releasing it then gives all of it back", bytes.taken() == 0,
               bytes.text());
  cu.mem_address_free(range, 64 * kGiB);
}

void find_refusals_of_memory(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  FreeBytes bytes(session);
  const std::size_t too_much = free_bytes(session) / kPageSize * kPageSize + kGiB;
  CUmemGenericAllocationHandle page = 0;
  CUdeviceptr at = 0;
  const CUresult created = create_page(session, too_much, &page);
  report->fact(kTopic, "44",
               "a page of more than is free: out of memory, and as much is free as before",
               created == CUDA_ERROR_OUT_OF_MEMORY && bytes.taken() == 0,
               names_of(session, {created}) + ", " + bytes.text());
  if (created == CUDA_SUCCESS) cu.mem_release(page);
  const CUresult allocated = cu.mem_alloc(&at, too_much);
  report->fact(kTopic, "38", "a segment of more than is free: the same",
               allocated == CUDA_ERROR_OUT_OF_MEMORY && bytes.taken() == 0,
               names_of(session, {allocated}) + ", " + bytes.text());
  if (allocated == CUDA_SUCCESS) cu.mem_free(at);
  std::size_t largest = kGiB;
  CUresult reserved = CUDA_SUCCESS;
  for (std::size_t size = kGiB; size <= std::size_t{1} << 60; size *= 2) {
    reserved = cu.mem_address_reserve(&at, size, 0, 0, 0);
    if (reserved != CUDA_SUCCESS) break;
    cu.mem_address_free(at, size);
    largest = size;
  }
  report->fact(kTopic, "",
               "the largest range that can be reserved, in doublings, and the refusal of the "
               "next",
               FactVerdict::kMeasured,
               std::to_string(largest / kGiB) + " GiB, " + names_of(session, {reserved}));
}

void find_bad_frees(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  CUdeviceptr at = 0;
  cu.mem_alloc(&at, kMiB);
  const CUresult inside = cu.mem_free(at + 512);
  const CUresult whole = cu.mem_free(at);
  const CUresult twice = cu.mem_free(at);
  report->fact(kTopic, "40", "freeing an address inside of a segment is refused",
               inside != CUDA_SUCCESS && whole == CUDA_SUCCESS, names_of(session, {inside, whole}));
  report->fact(kTopic, "39", "freeing a segment twice is refused", twice != CUDA_SUCCESS,
               names_of(session, {twice}));
  void* pinned = nullptr;
  cu.mem_host_alloc(&pinned, 4096, 0);
  const CUresult as_segment = cu.mem_free(reinterpret_cast<CUdeviceptr>(pinned));
  const CUresult as_pinned = cu.mem_free_host(pinned);
  const CUresult again = cu.mem_free_host(pinned);
  report->fact(kTopic, "42", "pinned memory is freed by its own call, once",
               as_segment != CUDA_SUCCESS && as_pinned == CUDA_SUCCESS && again != CUDA_SUCCESS,
               names_of(session, {as_segment, as_pinned, again}));
  PageBatch pages(session, 1, kPageSize);
  pages.map_all();
  const CUresult mapped = cu.mem_free(pages.at(0));
  report->fact(kTopic, "", "freeing a mapped range as a segment is refused", mapped != CUDA_SUCCESS,
               names_of(session, {mapped}));
}

void find_old_contents(const DriverSession& session, DriverReport* report) {
  constexpr unsigned kTries = 20;
  constexpr std::uint32_t kOld = 0x5eed5eed;
  unsigned old = 0, zero = 0;
  for (unsigned i = 0; i < 2 * kTries; ++i) {
    PageBatch page(session, 1, kPageSize);
    page.map_all();
    const std::uint32_t word = read_word(session, page.at(0) + 4096);
    if (i >= kTries) old += word == kOld ? 1 : 0;
    if (i >= kTries) zero += word == 0 ? 1 : 0;
    store(session, session.work, page.at(0) + 4096, kOld);
    session.cu.ctx_synchronize();
  }
  report->fact(
      kTopic, "",
      "what a new page holds, after a page of the same size with other contents was released",
      FactVerdict::kMeasured,
      "of " + std::to_string(kTries) + " words " + std::to_string(zero) + " were zero, " +
          std::to_string(old) + " the old one");
}

void find_segment_sizes(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  std::string charges;
  std::vector<CUdeviceptr> held;
  CUdeviceptr alignment = ~CUdeviceptr{0};
  for (const std::size_t size : {std::size_t{512}, std::size_t{512}, std::size_t{1000}, kMiB, kMiB,
                                 2 * kMiB, 3 * kMiB, 20 * kMiB + 1}) {
    FreeBytes bytes(session);
    CUdeviceptr at = 0;
    if (cu.mem_alloc(&at, size) != CUDA_SUCCESS) continue;
    held.push_back(at);
    alignment = std::min(alignment, at & (~at + 1));
    charges += (charges.empty() ? "" : "; ") + std::to_string(size) + ": " + bytes.text();
  }
  for (const CUdeviceptr at : held) cu.mem_free(at);
  report->fact(kTopic, "",
               "what segments of some sizes in bytes take, one after another; the least "
               "alignment",
               FactVerdict::kMeasured,
               charges + "; aligned to " + std::to_string(alignment) + " B");
}

template <class Handle, class Take, class Free>
void find_reuse(DriverReport* report, const char* what, Take take, Free free) {
  constexpr unsigned kTries = 20;
  unsigned same = 0;
  Handle last{};
  for (unsigned i = 0; i < kTries; ++i) {
    Handle handle{};
    take(&handle);
    if (i > 0 && handle == last) ++same;
    last = handle;
    free(handle);
  }
  report->fact(kTopic, "", std::string("what was freed last comes back first: ") + what,
               FactVerdict::kMeasured,
               std::to_string(same) + " of " + std::to_string(kTries - 1) + " times");
}

void find_reuses(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  find_reuse<CUdeviceptr>(
      report, "the address of a segment of 20 MiB",
      [&](CUdeviceptr* at) { cu.mem_alloc(at, 20 * kMiB); },
      [&](CUdeviceptr at) { cu.mem_free(at); });
  find_reuse<CUdeviceptr>(
      report, "the address of a range",
      [&](CUdeviceptr* at) { cu.mem_address_reserve(at, 20 * kMiB, 0, 0, 0); },
      [&](CUdeviceptr at) { cu.mem_address_free(at, 20 * kMiB); });
  find_reuse<CUmemGenericAllocationHandle>(
      report, "the value of a page's handle",
      [&](CUmemGenericAllocationHandle* page) { create_page(session, kPageSize, page); },
      [&](CUmemGenericAllocationHandle page) { cu.mem_release(page); });
  find_reuse<CUevent>(
      report, "the value of an event's handle",
      [&](CUevent* event) { cu.event_create(event, CU_EVENT_DISABLE_TIMING); },
      [&](CUevent event) { cu.event_destroy(event); });
}

}  // namespace

void find_memory_facts(const DriverSession& session, DriverReport* report) {
  find_sizes(session, report);
  find_charges_of_pages(session, report);
  find_refusals_of_memory(session, report);
  find_bad_frees(session, report);
  find_segment_sizes(session, report);
  find_old_contents(session, report);
  find_reuses(session, report);
}

}  // namespace ashlar::bench
