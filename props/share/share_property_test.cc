// Random exporters and openers against an account of who has what (row DEV-21, D9, D10, C21).
//
// Imitates: processes that export, free, trim, open and close in any order. Does not prove: anything about several threads, or of a
// driver.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "props/share/share_worlds.h"

namespace ashlar::props {
namespace {

using share::ExportedMemory;
using share::MemoryExporter;
using share::MemoryOpener;
using share::OpenedMemory;
using share::ShareHeader;

/// An opened allocation, of whatever opener.
struct Opened {
  Address address;
  std::shared_ptr<void> keeps;
};
using Open = std::function<Opened(const ExportedMemory&)>;
using MakeOpen = std::function<Open(ShareProcess&)>;

/// A part of an exporter's segment, as long as it has that memory.
struct Piece {
  Address segment;
  Bytes offset;
  std::uint64_t generation = 0;
  friend bool operator<(const Piece& a, const Piece& b) {
    return std::tie(a.segment, a.offset, a.generation) <
           std::tie(b.segment, b.offset, b.generation);
  }
};

class World {
 public:
  World(const char* settings, const MakeOpen& make_open, bool is_cuda)
      : from_(ShareProcess::usual(), is_cuda),
        stream_(from_.stream()),
        exporter_(from_.allocator(settings)),
        open_(make_open(to_)) {}

  /// What is wrong after the step, or nothing.
  std::string step(std::uint8_t what, std::uint8_t which) {
    switch (what % 8) {
      case 0:
      case 1: allocate(which); break;
      case 2: free(which); break;
      case 3: static_cast<void>(from_.allocator().trim(DeviceId{0})); break;
      case 4: export_one(which); break;
      case 5: drop(exports_, which); break;
      case 6: open_one(which); break;
      default: drop(opened_, which); break;
    }
    return judge();
  }
  std::string finish() {
    while (!opened_.empty()) drop(opened_, 0);
    while (!exports_.empty()) drop(exports_, 0);
    while (!live_.empty()) free(0);
    from_.end_allocator();
    for (ShareProcess* each : {&from_, &to_}) {
      if (!each->gpu().leak_check()) return "C14: something is still held at the end";
      if (each->gpu().fault_count() > 0) return each->gpu().take_faults().front().text;
    }
    return {};
  }

 private:
  struct Exported {
    ExportedMemory memory;
    ShareHeader header;
  };
  struct Use {
    Opened opened;
    ShareHeader header;
  };

  template <class Of>
  static typename Of::iterator pick(Of& of, std::uint8_t which) {
    return of.begin() + which % of.size();
  }
  template <class Of>
  static void drop(Of& of, std::uint8_t which) {
    if (!of.empty()) of.erase(pick(of, which));
  }
  void allocate(std::uint8_t which) {
    const auto got = from_.allocator().allocate(512_KiB * (1 + which % 12), stream_);
    if (got.is_ok()) live_.push_back(got.value());
  }
  void free(std::uint8_t which) {
    if (live_.empty()) return;
    const auto at = pick(live_, which);
    if (from_.allocator().free(*at).is_ok()) live_.erase(at);
  }
  void export_one(std::uint8_t which) {
    if (live_.empty()) return;
    ExportedMemory memory = exporter_.export_memory(*pick(live_, which)).value();
    ShareHeader header = share::read_header(memory.header()).value();
    exports_.push_back({std::move(memory), std::move(header)});
  }
  void open_one(std::uint8_t which) {
    if (exports_.empty()) return;
    const Exported& from = *pick(exports_, which);
    opened_.push_back({open_(from.memory), from.header});
  }

  static std::map<Piece, Bytes> pieces_of(const ShareHeader& header) {
    std::map<Piece, Bytes> pieces;
    Bytes offset = header.parts_offset;
    for (const share::SharedPart& part : header.parts) {
      pieces[{header.segment, offset, part.generation}] = part.size;
      offset += part.size;
    }
    return pieces;
  }
  std::string judge() {
    std::map<std::vector<Piece>, Address> places;
    std::map<Address, std::pair<Piece, Bytes>> at;
    for (const Use& use : opened_) {
      const Address base = use.opened.address - use.header.offset - use.header.parts_offset;
      std::vector<Piece> all;
      for (const auto& [piece, size] : pieces_of(use.header)) {
        all.push_back(piece);
        const auto [there, is_free] = at.try_emplace(base + piece.offset, piece, size);
        const Piece& other = there->second.first;
        if (!is_free && (other < piece || piece < other))
          return "two pages are opened at one place";
      }
      // A page is at a second place only beside another that has no room at the first.
      const auto [place, is_new] = places.try_emplace(all, base);
      if (place->second != base) return "the same pages are opened at two places";
    }
    Bytes expected;
    for (const auto& [address, piece] : at) expected += piece.second;
    const spec::Ledger held = to_.gpu().ledger();
    const bool is_whole =
        !opened_.empty() && held.opened.bytes > Bytes{} && held.mappings.count == 0;
    const Bytes open = is_whole ? held.opened.bytes : held.mappings.bytes;
    if (open != expected)
      return "D10: " + std::to_string(open.count()) + " bytes are open here, and should be " +
             std::to_string(expected.count());
    for (const Exported& each : exports_) {
      std::vector<cache::PhysicalRange> now;
      if (!cache::physical_ranges(from_.allocator(), each.memory.range(), &now).is_ok() ||
          !std::equal(now.begin(), now.end(), each.header.parts.begin(), each.header.parts.end(),
                      [](const cache::PhysicalRange& range, const share::SharedPart& part) {
                        return range.generation == part.generation && range.size == part.size;
                      }))
        return "C21: other memory is under an exported range";
    }
    return {};
  }

  const DescriptorBalance balance_;
  ShareProcess from_;
  ShareProcess to_;
  Stream stream_;
  MemoryExporter exporter_;
  Open open_;
  std::vector<Address> live_;
  std::vector<Exported> exports_;
  std::vector<Use> opened_;
};

Open right_opener(ShareProcess& process) {
  const auto opener = std::make_shared<MemoryOpener>(process.devices());
  return [opener](const ExportedMemory& memory) {
    auto opened = std::make_shared<OpenedMemory>(opener->open(memory.header()).value());
    return Opened{opened->address(), opened};
  };
}

/// Opens what it has open already without counting that anybody has it again.
Open forgetful_opener(ShareProcess& process) {
  const auto opener = std::make_shared<MemoryOpener>(process.devices());
  const auto known = std::make_shared<std::map<std::string, std::weak_ptr<OpenedMemory>>>();
  return [opener, known](const ExportedMemory& memory) {
    const std::string name(reinterpret_cast<const char*>(memory.header().data()),
                           memory.header().size());
    if (const auto open = (*known)[name].lock(); open != nullptr)
      return Opened{open->address(), {}};
    auto opened = std::make_shared<OpenedMemory>(opener->open(memory.header()).value());
    (*known)[name] = opened;
    return Opened{opened->address(), opened};
  };
}

std::string run(const std::vector<std::array<std::uint8_t, 2>>& steps, const char* settings,
                const MakeOpen& make_open, bool is_cuda) {
  World world(settings, make_open, is_cuda);
  for (const auto& step : steps) {
    const std::string wrong = world.step(step[0], step[1]);
    if (!wrong.empty()) return wrong;
  }
  return world.finish();
}

RC_GTEST_PROP(ShareProperty, PagesAreHadByWhoOpenedThem,
              (const std::vector<std::array<std::uint8_t, 2>>& steps)) {
  for (const bool is_cuda : {false, true})
    RC_ASSERT(run(steps, "backing:pages", right_opener, is_cuda) == "");
}

RC_GTEST_PROP(ShareProperty, SegmentsAreHadByWhoOpenedThem,
              (const std::vector<std::array<std::uint8_t, 2>>& steps)) {
  // A whole segment is the exporter's to keep: nobody drops an export, or frees.
  std::vector<std::array<std::uint8_t, 2>> kept;
  for (const auto& step : steps) {
    if (step[0] % 8 != 5 && step[0] % 8 != 2) kept.push_back(step);
  }
  for (const bool is_cuda : {false, true})
    RC_ASSERT(run(kept, "backing:segments", right_opener, is_cuda) == "");
}

TEST(ShareProperty, FiresOnAnOpenerThatForgetsWhoHasAPage) {
  const std::vector<std::array<std::uint8_t, 2>> steps = {{0, 0}, {4, 0}, {6, 0}, {6, 0}, {7, 0}};
  EXPECT_EQ(run(steps, "backing:pages", right_opener, false), "");
  EXPECT_EQ(run(steps, "backing:pages", forgetful_opener, false),
            "D10: 0 bytes are open here, and should be 2097152");
}

}  // namespace
}  // namespace ashlar::props
