#include <vector>

#include "bench/driver/driver_facts.h"
#include "bench/driver/page_batch.h"

namespace ashlar::bench {
namespace {

const char* const kTopic = "Pages and mappings";
constexpr unsigned kAddresses = 5;
constexpr unsigned kRounds = 1000;

/// One page at several addresses.
struct AliasedPage {
  explicit AliasedPage(const DriverSession& on) : session(on) {
    const CudaDriver& cu = session.cu;
    cu.mem_address_reserve(&base, kAddresses * kPageSize, 0, 0, 0);
    create_page(session, kPageSize, &page);
    for (unsigned i = 0; i < kAddresses; ++i) {
      const CUresult result = cu.mem_map(at(i), kPageSize, 0, page, 0);
      if (result != CUDA_SUCCESS) mapped = result;
    }
    access = give_access(session, base, kAddresses * kPageSize);
  }
  ~AliasedPage() {
    session.cu.mem_unmap(base, kAddresses * kPageSize);
    session.cu.mem_release(page);
    session.cu.mem_address_free(base, kAddresses * kPageSize);
  }
  AliasedPage(const AliasedPage&) = delete;
  AliasedPage& operator=(const AliasedPage&) = delete;
  CUdeviceptr at(unsigned i) const { return base + i * kPageSize; }

  const DriverSession& session;
  CUdeviceptr base = 0;
  CUmemGenericAllocationHandle page = 0;
  CUresult mapped = CUDA_SUCCESS;
  CUresult access = CUDA_SUCCESS;
};

/// Words that a kernel read wrong through one address after another kernel had written them through
/// another; `reader` runs behind `writer`.
unsigned stale_words(const DriverSession& session, const AliasedPage& page, CUstream writer,
                     CUstream reader) {
  const CudaDriver& cu = session.cu;
  constexpr unsigned kReads = kAddresses - 1;
  CUdeviceptr seen = 0;
  cu.mem_alloc(&seen, kRounds * kReads * 4);
  CUevent written = nullptr, read = nullptr;
  cu.event_create(&written, CU_EVENT_DISABLE_TIMING);
  cu.event_create(&read, CU_EVENT_DISABLE_TIMING);
  for (unsigned round = 0; round < kRounds; ++round) {
    store(session, writer, page.at(round % kAddresses), round + 1);
    if (writer != reader) {
      cu.event_record(written, writer);
      cu.stream_wait_event(reader, written, 0);
    }
    for (unsigned i = 0; i < kReads; ++i)
      copy(session, reader, seen + (round * kReads + i) * 4, page.at((round + 1 + i) % kAddresses));
    if (writer != reader) {
      cu.event_record(read, reader);
      cu.stream_wait_event(writer, read, 0);
    }
  }
  std::vector<std::uint32_t> words(kRounds * kReads, 0);
  cu.ctx_synchronize();
  cu.memcpy_to_host(words.data(), seen, words.size() * 4);
  unsigned wrong = 0;
  for (unsigned i = 0; i < words.size(); ++i) wrong += words[i] == i / kReads + 1 ? 0 : 1;
  cu.event_destroy(written);
  cu.event_destroy(read);
  cu.mem_free(seen);
  return wrong;
}

unsigned stale_bulk_words(const DriverSession& session, const AliasedPage& page) {
  std::vector<std::uint32_t> words(kPageSize / 4, 0);
  unsigned wrong = 0;
  for (unsigned i = 0; i < kAddresses; ++i) {
    session.cu.memset_d32_async(page.at(i), 0x1000 + i, words.size(), session.work);
    session.cu.stream_synchronize(session.work);
    session.cu.memcpy_to_host(words.data(), page.at((i + 2) % kAddresses), kPageSize);
    for (const std::uint32_t word : words) wrong += word == 0x1000 + i ? 0 : 1;
  }
  return wrong;
}

void find_aliases(const DriverSession& session, DriverReport* report) {
  AliasedPage page(session);
  const bool is_mapped = page.mapped == CUDA_SUCCESS && page.access == CUDA_SUCCESS;
  report->fact(kTopic, "51", "one handle can be mapped at five addresses at once", is_mapped,
               names_of(session, {page.mapped, page.access}));
  if (!is_mapped) return;
  const std::string of = " of " + std::to_string(kRounds * (kAddresses - 1)) + " words stale";
  const unsigned same = stale_words(session, page, session.work, session.work);
  report->fact(kTopic, "",
               "a later kernel of the same stream reads through one address what was written "
               "through another",
               same == 0, std::to_string(same) + of);
  const unsigned other = stale_words(session, page, session.work, session.side);
  report->fact(kTopic, "", "a kernel of another stream that waits for an event reads it too",
               other == 0, std::to_string(other) + of);
  const unsigned bulk = stale_bulk_words(session, page);
  report->fact(kTopic, "",
               "a memset of a page through one address is read by a copy through another",
               bulk == 0, std::to_string(bulk) + " words stale");
}

void find_unmap_facts(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  {
    PageBatch page(session, 1, 2 * kPageSize);
    page.map_all();
    const CUresult first = cu.mem_unmap(page.at(0), kPageSize);
    const CUresult second = cu.mem_unmap(page.at(0) + kPageSize, kPageSize);
    const CUresult whole = page.unmap(0, 1);
    const CUresult again = cu.mem_unmap(page.at(0), 2 * kPageSize);
    report->fact(kTopic, "48", "unmapping a part of a mapping is refused, and then the whole works",
                 first != CUDA_SUCCESS && second != CUDA_SUCCESS && whole == CUDA_SUCCESS,
                 names_of(session, {first, second, whole}));
    report->fact(kTopic, "48", "unmapping what is not mapped is refused", again != CUDA_SUCCESS,
                 names_of(session, {again}));
  }
  PageBatch pages(session, 6, kPageSize);
  pages.map_all();
  const CUresult run = pages.unmap(0, 2);
  report->fact(kTopic, "48", "one call unmaps a run of whole mappings", run == CUDA_SUCCESS,
               names_of(session, {run}));
  pages.unmap(4, 1);  // mapped: 2, 3, 5
  const CUresult hole = cu.mem_unmap(pages.at(2), 4 * kPageSize);
  const CUresult third = pages.unmap(2, 1), last = pages.unmap(5, 1);
  report->fact(
      kTopic, "48", "unmapping a range with a hole is refused and changes nothing",
      hole != CUDA_SUCCESS && third == CUDA_SUCCESS && last == CUDA_SUCCESS,
      names_of(session, {hole}) + "; each alone afterwards: " + names_of(session, {third, last}));
}

void find_access_facts(const DriverSession& session, DriverReport* report) {
  PageBatch pages(session, 4, 2 * kPageSize);
  for (const std::size_t i : {0u, 1u, 3u}) {
    pages.create(i);
    pages.map(i);
  }
  const CUresult run = pages.access(0, 2);
  const CUresult again = pages.access(0, 2);
  const CUresult hole = pages.access(0, 4);
  const CUresult part = give_access(session, pages.at(1), kPageSize);
  const CUresult across = give_access(session, pages.at(0) + kPageSize, 2 * kPageSize);
  const CUresult unmapped = pages.access(2, 1);
  report->fact(kTopic, "47", "one call gives access to a run of handles", run == CUDA_SUCCESS,
               names_of(session, {run}));
  report->fact(kTopic, "", "access can be given again", again == CUDA_SUCCESS,
               names_of(session, {again}));
  report->fact(kTopic, "47", "access to a range with a hole is refused", hole != CUDA_SUCCESS,
               names_of(session, {hole}));
  report->fact(kTopic, "47", "access to an unmapped range is refused", unmapped != CUDA_SUCCESS,
               names_of(session, {unmapped}));
  report->fact(kTopic, "", "access to a part of a mapping is refused", part != CUDA_SUCCESS,
               names_of(session, {part}));
  report->fact(kTopic, "", "access to the end of one mapping and the start of the next is refused",
               across != CUDA_SUCCESS, names_of(session, {across}));
}

/// Access of device 0 at that address as cuMemGetAccess has it, or an error.
std::string access_at(const DriverSession& session, CUdeviceptr at) {
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = session.device;
  unsigned long long flags = 0;
  const CUresult result = session.cu.mem_get_access(&flags, &location, at);
  if (result != CUDA_SUCCESS) return names_of(session, {result});
  if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) return "none";
  return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? "read-write" : "read";
}

void find_access_of_new_mappings(const DriverSession& session, DriverReport* report) {
  PageBatch pages(session, 3, kPageSize);
  pages.create_all();
  pages.map(0);
  pages.map(2);
  const std::string fresh = access_at(session, pages.at(0));
  report->fact(kTopic, "45", "a new mapping has no access", fresh == "none", fresh);
  const CUresult given = pages.access(0, 3);
  const std::string below = access_at(session, pages.at(0)),
                    above = access_at(session, pages.at(2));
  report->fact(kTopic, "47",
               "where access to a range with a hole is refused, no mapping of it gets any",
               below == "none" && above == "none",
               names_of(session, {given}) + "; below the hole " + below + ", above it " + above);
  pages.map(1);
  const std::string in_hole = access_at(session, pages.at(1));
  report->fact(kTopic, "47",
               "a mapping made in a hole after access was given to the range has none",
               in_hole == "none", in_hole);
  pages.unmap(0, 1);
  pages.map(0);
  const std::string again = access_at(session, pages.at(0));
  report->fact(kTopic, "46", "a mapping made where an earlier one had access has none",
               again == "none", again);
}

void find_map_facts(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  PageBatch pages(session, 4, 2 * kPageSize);
  pages.create_all();
  pages.map(0);
  const CUmemGenericAllocationHandle page = pages.handle(1);
  const CUresult over = cu.mem_map(pages.at(0), 2 * kPageSize, 0, page, 0);
  const CUresult overlap = cu.mem_map(pages.at(0) + kPageSize, 2 * kPageSize, 0, page, 0);
  report->fact(kTopic, "50", "mapping over a mapping is refused, overlapping it too",
               over != CUDA_SUCCESS && overlap != CUDA_SUCCESS, names_of(session, {over, overlap}));
  const auto refused = [&](const char* rule, const char* statement, CUdeviceptr at,
                           std::size_t size, std::size_t offset) {
    const CUresult result = cu.mem_map(at, size, offset, page, 0);
    report->fact(kTopic, rule, statement, result != CUDA_SUCCESS, names_of(session, {result}));
    if (result == CUDA_SUCCESS) cu.mem_unmap(at, size);
  };
  refused("49", "mapping a part of a handle is refused", pages.at(1), kPageSize, 0);
  refused("49", "mapping a handle from an offset is refused", pages.at(1), kPageSize, kPageSize);
  refused("49", "mapping more than the handle is refused", pages.at(1), 4 * kPageSize, 0);
  refused("", "mapping at an address that is not aligned is refused", pages.at(1) + kMiB,
          2 * kPageSize, 0);
  refused("49", "mapping beyond the end of a reservation is refused", pages.at(3) + kPageSize,
          2 * kPageSize, 0);
}

void find_range_facts(const DriverSession& session, DriverReport* report) {
  const CudaDriver& cu = session.cu;
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle page = 0;
  cu.mem_address_reserve(&range, 2 * kPageSize, 0, 0, 0);
  create_page(session, kPageSize, &page);
  cu.mem_map(range, kPageSize, 0, page, 0);
  const CUresult mapped = cu.mem_address_free(range, 2 * kPageSize);
  report->fact(kTopic, "54", "freeing a range with a mapping in it is refused",
               mapped != CUDA_SUCCESS, names_of(session, {mapped}));
  const CUresult unmapped = cu.mem_unmap(range, kPageSize);
  const CUresult part = cu.mem_address_free(range, kPageSize);
  const CUresult rest = part == CUDA_SUCCESS ? cu.mem_address_free(range + kPageSize, kPageSize)
                                             : cu.mem_address_free(range, 2 * kPageSize);
  report->fact(kTopic, "54", "freeing a part of a range is refused, and then the whole works",
               unmapped == CUDA_SUCCESS && part != CUDA_SUCCESS && rest == CUDA_SUCCESS,
               names_of(session, {unmapped, part, rest}));
  const CUresult twice = cu.mem_address_free(range, 2 * kPageSize);
  report->fact(kTopic, "54", "freeing a range twice is refused", twice != CUDA_SUCCESS,
               names_of(session, {twice}));
  cu.mem_release(page);
  create_page(session, kPageSize, &page);
  const CUresult nowhere = cu.mem_map(range, kPageSize, 0, page, 0);
  report->fact(kTopic, "49", "mapping where a reservation was freed is refused",
               nowhere != CUDA_SUCCESS, names_of(session, {nowhere}));
  if (nowhere == CUDA_SUCCESS) cu.mem_unmap(range, kPageSize);
  cu.mem_release(page);
  CUdeviceptr low = 0, high = 0;
  cu.mem_address_reserve(&low, 2 * kPageSize, 0, 0, 0);
  cu.mem_address_free(low, 2 * kPageSize);
  const CUresult first = cu.mem_address_reserve(&low, kPageSize, 0, low, 0);
  const CUresult second = cu.mem_address_reserve(&high, kPageSize, 0, low + kPageSize, 0);
  if (first == CUDA_SUCCESS && second == CUDA_SUCCESS && high == low + kPageSize) {
    create_page(session, 2 * kPageSize, &page);
    const CUresult across = cu.mem_map(low, 2 * kPageSize, 0, page, 0);
    report->fact(kTopic, "49", "mapping across two adjacent reservations is refused",
                 across != CUDA_SUCCESS, names_of(session, {across}));
    if (across == CUDA_SUCCESS) cu.mem_unmap(low, 2 * kPageSize);
    cu.mem_release(page);
  }
  if (first == CUDA_SUCCESS) cu.mem_address_free(low, kPageSize);
  if (second == CUDA_SUCCESS) cu.mem_address_free(high, kPageSize);
}

}  // namespace

void find_mapping_facts(const DriverSession& session, DriverReport* report) {
  find_aliases(session, report);
  find_unmap_facts(session, report);
  find_access_facts(session, report);
  find_access_of_new_mappings(session, report);
  find_map_facts(session, report);
  find_range_facts(session, report);
}

}  // namespace ashlar::bench
