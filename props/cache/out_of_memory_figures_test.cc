// The out-of-memory message's figures and advice, against a formatter and rules written anew.
//
// Imitates: accounts with figures on the edges of their units, and with settings of every kind. Does
// not prove: that the words help.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include <ashlar/cache/out_of_memory.h>
#include <ashlar/device/device.h>

namespace ashlar::cache {
namespace {

/// The largest unit that the rounded figure reaches, found from above.
std::string figure(std::uint64_t bytes) {
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  for (int unit = 5; unit >= 0; --unit) {
    const double value = std::ldexp(static_cast<double>(bytes), -10 * (unit + 1));
    if (value < 1) continue;
    char text[100];
    std::snprintf(text, sizeof text, "%.2f ", value);
    return text + std::string(units[unit]) + " (" + std::to_string(bytes) + " bytes)";
  }
  return std::to_string(bytes) + " bytes";
}

TEST(OutOfMemoryFiguresTest, EveryFigureIsInItsUnit) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    for (const std::uint64_t size : {power - 1, power, power + 1, power + power / 2,
                                     power + power / 1024 * 1023, power - power / 2048}) {
      OutOfMemory o;
      o.requested = Bytes{size};
      const std::string begin =
          "Out of memory on device 0: " + figure(size) +
          " requested, 0 bytes after rounding, 0 bytes asked of the driver.\n";
      EXPECT_EQ(o.message().substr(0, begin.size()), begin);
    }
  }
  OutOfMemory o;
  o.requested = Bytes::max();
  EXPECT_NE(o.message().find("16.00 EiB (18446744073709551615 bytes) requested"),
            std::string::npos);
}

TEST(OutOfMemoryFiguresTest, EveryFieldIsShownWhereItBelongs) {
  OutOfMemory o;
  Bytes* const fields[] = {&o.requested,         &o.rounded,     &o.segment,
                           &o.reserved,          &o.allocated,   &o.pending,
                           &o.in_transfer,       &o.free_cached, &o.largest_free,
                           &o.largest_reachable, &o.limit,       &o.device_memory.total,
                           &o.device_memory.free};
  std::uint64_t next = 1000;
  for (Bytes* field : fields) *field = Bytes{next += 1001};
  o.device = DeviceId{7};
  o.largest_free = Bytes{2002};
  o.free_cached = Bytes{8008};
  o.reserved = Bytes{500};
  const auto f = [](Bytes b) { return figure(b.count()); };
  const std::uint64_t others = o.device_memory.total.count() - 500;
  const auto text = [&](const std::string& machine) {
    return "Out of memory on device 7: " + f(o.requested) + " requested, " + f(o.rounded) +
           " after rounding, " + f(o.segment) + " asked of the driver.\n" + machine +
           "The memory limit in force is " + f(o.limit) +
           ".\nThis allocator holds 500 bytes: " + f(o.allocated) + " allocated, " + f(o.pending) +
           " freed but still in use by other streams, " + f(o.in_transfer) + " in transfer, " +
           f(o.free_cached) + " free.\nThe largest free block is " + f(o.largest_free) +
           "; the largest that this stream may be given now is " + f(o.largest_reachable) +
           "; fragmentation of what is free: 75.0 %.\n";
  };
  const auto machine = [&](const std::string& used) {
    return "The device has " + f(o.device_memory.total) + ", of which " + f(o.device_memory.free) +
           " free and " + used + " in use outside this allocator.\n" +
           (o.rounded > o.device_memory.total
                ? "The request alone is larger than the device: no setting can make it fit.\n"
                : "");
  };
  // More free than there is: of another moment.
  EXPECT_EQ(o.message(), text(machine("0 bytes")));
  o.device_memory.free = 0_B;
  EXPECT_EQ(o.message(), text(machine(figure(others))));
  o.device_memory.total = 499_B;
  EXPECT_EQ(o.message(), text(machine("0 bytes")));
  o.device_memory.total = 501_B;
  EXPECT_EQ(o.message(), text(machine("1 bytes")));
}

/// The rules of advice, by name, in the order in which they are shown.
unsigned advice_of(const OutOfMemory& o) {
  bool has_divisions = false;
  for (const std::uint32_t divisions : o.config.roundup_divisions)
    has_divisions |= divisions != 0 && divisions != 1;
  const bool has_limit = o.limit != Bytes::max();
  const std::uint64_t room = o.reserved < o.limit ? (o.limit - o.reserved).count() : 0;
  const bool is_at_limit = has_limit && o.segment.count() > room;
  const bool never = o.config.wait_ms == 0, forever = o.config.wait_ms == device::kWaitForever;
  const bool in_pieces = !o.capturing && o.config.backing == Backing::kSegments &&
                         o.rounded > o.config.small_request_max && o.largest_free < o.rounded &&
                         o.free_splits >= o.rounded &&
                         2 * o.largest_free.count() <= o.free_cached.count() && o.free_cached > 0_B;
  const bool elsewhere = !o.capturing && o.fits_elsewhere > 0_B;
  const bool waits = !o.capturing && (o.wait_ran_out || o.pending > 0_B);
  const bool splits_all = o.config.max_split_size == Bytes::max();
  const bool rules[] = {o.capturing,
                        is_at_limit && o.device_memory.free >= o.segment,
                        waits && never,
                        !o.capturing && o.wait_ran_out && !never && !forever,
                        elsewhere && o.config.reuse == Reuse::kOwn,
                        elsewhere && o.config.reuse == Reuse::kCompleted,
                        in_pieces && splits_all,
                        in_pieces && !splits_all && !has_divisions,
                        !is_at_limit && o.device_memory.free >= o.segment &&
                            o.device_memory.free < o.segment + o.config.headroom};
  unsigned bits = 0;
  if (o.device_memory.total > 0_B && o.device_memory.total < o.rounded) return bits;
  for (unsigned i = 0; i < 9; ++i) bits |= static_cast<unsigned>(rules[i]) << i;
  return bits;
}

TEST(OutOfMemoryFiguresTest, AdviceFollowsItsRulesInEveryAccount) {
  std::uint64_t state = 1;
  const auto pick = [&state](std::initializer_list<std::uint64_t> from) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return from.begin()[(state >> 33) % from.size()];
  };
  unsigned seen = 0;
  for (int round = 0; round < 40'000; ++round) {
    OutOfMemory o;
    o.config.backing = pick({0, 0, 1}) == 0 ? Backing::kSegments : Backing::kPages;
    const auto bytes = [&] { return Bytes{pick({0, 1, 2, 3, 4, 5, 6, 8, 12}) << 19}; };
    o.rounded = bytes();
    o.segment = bytes();
    o.reserved = bytes();
    o.limit = pick({0, 1}) == 0 ? Bytes::max() : bytes();
    o.device_memory.free = bytes();
    o.device_memory.total = bytes();
    o.pending = bytes() * pick({0, 1});
    o.largest_free = bytes();
    o.free_cached = bytes();
    o.free_splits = bytes();
    o.fits_elsewhere = Bytes{pick({0, 0, 1, 512})};
    o.wait_ran_out = pick({0, 1}) == 1;
    o.capturing = pick({0, 0, 0, 1}) == 1;
    o.config.wait_ms = static_cast<std::uint32_t>(pick({0, 1, 1000, device::kWaitForever}));
    o.config.headroom = bytes() * pick({0, 1});
    o.config.reuse = static_cast<Reuse>(pick({0, 1, 2}));
    o.config.max_split_size = pick({0, 1}) == 0 ? Bytes::max() : 64_MiB;
    o.config.roundup_divisions[pick({0, 7, 15})] = static_cast<std::uint32_t>(pick({0, 1, 2, 4}));
    o.advise();
    const unsigned expected = advice_of(o);
    ASSERT_EQ(o.advice, expected) << round;
    seen |= expected;
    const std::string message = o.message();
    std::size_t lines = 0;
    for (std::size_t at = 0; (at = message.find("Advice: ", at)) != std::string::npos; ++at)
      ++lines;
    ASSERT_EQ(lines, static_cast<std::size_t>(__builtin_popcount(expected)));
    ASSERT_EQ(message.find("larger than the device") != std::string::npos,
              o.device_memory.total > 0_B && o.rounded > o.device_memory.total);
    for (unsigned i = 0; i < 9; ++i)
      ASSERT_EQ(o.advises(static_cast<Advice>(i)), (expected >> i & 1) != 0);
    const bool says_wait_ended = message.find("The permitted wait of ") != std::string::npos;
    ASSERT_EQ(says_wait_ended,
              o.wait_ran_out && o.config.wait_ms != 0 && o.config.wait_ms != device::kWaitForever);
    ASSERT_EQ(message.find("The device refused to wait") != std::string::npos,
              o.wait_ran_out && o.config.wait_ms == device::kWaitForever);
    ASSERT_EQ(message.find("Unfinished work still uses") != std::string::npos,
              o.wait_ran_out && o.config.wait_ms == 0);
  }
  EXPECT_EQ(seen, 511u) << "every advice was due at some time";
}

}  // namespace
}  // namespace ashlar::cache
