// See configurations.h.
#include "props/sequences/configurations.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>

namespace ashlar::props {
namespace {

constexpr const char* kUsual[] = {"",
                                  "backing:segments",
                                  "backing:segments,reuse:own",
                                  "backing:segments,reuse:ordered",
                                  "backing:segments,wait_ms:0",
                                  "expandable_segments:False,reuse:own,wait_ms:0",
                                  "max_split_size_mb:21",
                                  "max_split_size_mb:64,reuse:ordered",
                                  "roundup_power2_divisions:4",
                                  "roundup_power2_divisions:[1:2,2:4,64:8,>:1]",
                                  "per_process_memory_fraction:0.5",
                                  "garbage_collection_threshold:0.4",
                                  "headroom_mb:12",
                                  "cache:off",
                                  "cache:off,reuse:own,wait_ms:0",
                                  "cache:off,reuse:ordered,per_process_memory_fraction:0.5",
                                  "backend:cudaMallocAsync",
                                  "backend:cudaMallocAsync,reuse:own,wait_ms:0",
                                  "backend:cudaMallocAsync,per_process_memory_fraction:0.5",
                                  "expandable_segments:True",
                                  "move:eager",
                                  "first_growth_mb:4",
                                  "page_handles_max:8,move:eager",
                                  "backing:pages,move:never",
                                  "backing:pages,reuse:own",
                                  "backing:pages,wait_ms:0"};

class ConfigurationWriter {
 public:
  explicit ConfigurationWriter(spec::Random& random) : random_(random) {}

  std::string write() {
    // A size sets the least of the next, so that all of them are consistent.
    const auto granule = among<std::uint64_t>({16, 64, 128, 256, 512, 512, 512});
    if (granule != 512) put("granule", granule);
    const auto small_request_kb = among<std::uint64_t>({64, 256, 512, 1024, 1024, 1024, 3072});
    if (small_request_kb != 1024) put("small_request_kb", small_request_kb);
    const std::uint64_t small_mib = (small_request_kb + 1023) / 1024;
    std::uint64_t small_segment = 2;
    if (small_mib > 2 || random_.one_in(4)) {
      small_segment = std::max<std::uint64_t>(small_mib, 2 + random_.below(5));
      put("small_segment_mb", small_segment);
    }
    std::uint64_t large_request = 10;
    if (random_.one_in(3)) put("large_request_mb", large_request = small_mib + random_.below(20));
    std::uint64_t large_segment = 20;
    if (large_request > large_segment || random_.one_in(3)) {
      large_segment = std::max<std::uint64_t>(large_request, 2) + random_.below(20);
      put("large_segment_mb", large_segment);
    }
    if (random_.one_in(3)) put("round_segment_mb", 2 + random_.below(40));
    put_backing(std::max(small_segment, large_segment));
    if (large_segment > 20 || random_.one_in(6))
      put("max_non_split_rounding_mb", large_segment + random_.below(20));
    put_rounding();
    if (random_.one_in(3)) put("reuse", among({"own", "completed", "ordered"}));
    if (random_.one_in(2))
      put("wait_ms", among({"0", "never", "1", "5", "50", "4294967294", "forever"}));
    if (random_.one_in(6))
      put("per_process_memory_fraction", among({"0.3", "0.5", "0.75", "0.999", "1"}));
    if (random_.one_in(4))
      put("garbage_collection_threshold", among({"0.01", "0.3", "0.5", "0.8", "0"}));
    if (random_.one_in(6)) put("headroom_mb", 1 + random_.below(30));
    return text_;
  }

 private:
  template <class T>
  T among(std::initializer_list<T> values) {
    return values.begin()[random_.below(values.size())];
  }
  void put(const char* key, const std::string& value) {
    if (!text_.empty()) text_ += ',';
    text_ += key + (':' + value);
  }
  void put(const char* key, std::uint64_t value) { put(key, std::to_string(value)); }
  void put(const char* key, const char* value) { put(key, std::string(value)); }

  void put_backing(std::uint64_t largest_segment) {
    const bool is_paged = random_.one_in(3);
    const bool keeps_whole = !is_paged && random_.one_in(3);
    if (is_paged && random_.one_in(2)) put("backing", among({"auto", "pages"}));
    if (is_paged && random_.one_in(2)) put("move", among({"never", "eager", "eager"}));
    if (is_paged && random_.one_in(4)) put("move_us_max", among({"0", "64", "640"}));
    if (is_paged && random_.one_in(4)) put("first_growth_mb", 2 + random_.below(14));
    if (is_paged && random_.one_in(4)) put("page_handles_max", 1 + random_.below(12));
    if (!is_paged && (!keeps_whole || random_.one_in(2))) put("backing", "segments");
    if (!is_paged && random_.one_in(10)) put("cache", "off");
    else if (!is_paged && random_.one_in(20)) put("backend", "cudaMallocAsync");
    if (keeps_whole) put("max_split_size_mb", largest_segment + 1 + random_.below(40));
  }

  std::string divisions() { return std::to_string(std::uint64_t{1} << random_.below(11)); }
  void put_rounding() {
    if (!random_.one_in(3)) return;
    if (random_.one_in(2)) return put("roundup_power2_divisions", divisions());
    std::string list;
    for (std::uint64_t row = random_.below(4); row < 16; row += 1 + random_.below(8))
      list += std::to_string(std::uint64_t{1} << row) + ":" + divisions() + ",";
    put("roundup_power2_divisions", "[" + list + ">:" + divisions() + "]");
  }

  spec::Random& random_;
  std::string text_;
};

}  // namespace

std::string random_configuration(spec::Random& random) {
  if (random.one_in(3)) return kUsual[random.below(std::size(kUsual))];
  return ConfigurationWriter(random).write();
}

}  // namespace ashlar::props
