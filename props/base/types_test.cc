// The distinct types: the operations they allow, and (by static_assert) those they reject.
#include <ashlar/base/types.h>

#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

namespace ashlar {
namespace {

// H30: an alignment in bits was used as bytes. Quantities of different kinds cannot be added.
template <class A, class B>
concept Adds = requires(A a, B b) {
  a + b;
};
static_assert(Adds<Bytes, Bytes>);
static_assert(Adds<Address, Bytes>);
static_assert(!Adds<Address, Address>);
static_assert(!Adds<Bytes, std::uint64_t>);
static_assert(!Adds<StreamId, StreamId>);
static_assert(!std::is_convertible_v<std::uint64_t, Bytes>);
static_assert(!std::is_convertible_v<Bytes, std::uint64_t>);
static_assert(!std::is_convertible_v<std::uint64_t, Address>);
static_assert(!std::is_convertible_v<StreamHandle, StreamId>);
static_assert(!std::is_convertible_v<StreamId, StreamHandle>);

TEST(Bytes, CanBeAddedScaledAndDivided) {
  EXPECT_EQ(1_KiB, 1024_B);
  EXPECT_EQ(1_MiB, 1_KiB * 1024);
  EXPECT_EQ(1_GiB, 1_MiB * 1024);
  EXPECT_EQ(3_KiB / 1_KiB, 3u);
  EXPECT_EQ(1030_B % 512_B, 6u);
  Bytes b = 1_KiB;
  b += 1_KiB;
  b -= 512_B;
  EXPECT_EQ(b, 1536_B);
  EXPECT_LT(b, Bytes::max());
}

TEST(Address, OffsetsByBytesAndHasANullValue) {
  const Address a{0x1000};
  EXPECT_EQ((a + 16_B).value(), 0x1010u);
  EXPECT_EQ((a + 16_B) - a, 16_B);
  EXPECT_EQ(a + 16_B - 16_B, a);
  EXPECT_TRUE(Address{}.is_null());
  EXPECT_FALSE(a.is_null());
  int x = 0;
  EXPECT_EQ(Address::of(&x).pointer(), &x);
}

TEST(Ids, CanBeComparedAndHashed) {
  std::unordered_set<StreamId> streams{StreamId{1}, StreamId{2}, StreamId{1}};
  EXPECT_EQ(streams.size(), 2u);
  EXPECT_LT(StreamId{1}, StreamId{2});
  EXPECT_EQ(std::unordered_set<Address>({Address{1}, Address{1}}).size(), 1u);
  EXPECT_EQ(DeviceId{}.value(), 0);
}

TEST(Streams, AreTheSameByIdAndDeviceWhateverTheirHandles) {
  const Stream stream{StreamHandle{1}, StreamId{2}, DeviceId{3}};
  EXPECT_TRUE(is_same_stream(stream, stream));
  EXPECT_TRUE(is_same_stream(stream, {StreamHandle{7}, StreamId{2}, DeviceId{3}, true}));
  EXPECT_FALSE(is_same_stream(stream, {StreamHandle{1}, StreamId{5}, DeviceId{3}}));
  EXPECT_FALSE(is_same_stream(stream, {StreamHandle{1}, StreamId{2}, DeviceId{4}}));
}

#if ASHLAR_ASSERTIONS && GTEST_HAS_DEATH_TEST
TEST(BytesDeathTest, WrappingOrGoingBelowZeroAborts) {
  EXPECT_DEATH(static_cast<void>(Bytes::max() + 1_B), "Bytes wrapped");
  EXPECT_DEATH(static_cast<void>(1_B - 2_B), "Bytes below zero");
  EXPECT_DEATH(static_cast<void>(Bytes::max() * 2), "Bytes wrapped");
}
#endif

}  // namespace
}  // namespace ashlar
