// Fabric handles that a host permits by halves: pages are made with them only after one was exported and imported (row DEV-21).
//
// Imitates: a device that makes such pages and refuses to export or to import them, once or for a while. Does not prove: what a
// host without a fabric's daemon answers.
#include <gtest/gtest.h>

#include "props/share/share_worlds.h"

namespace ashlar::props {
namespace {

using device::CallKind;
using device::ShareKind;

class FabricHandlesTest : public ::testing::Test {
 protected:
  /// The kind of the handles that a page which is made now has.
  ShareKind kind_of_a_page() {
    const PageHandle page = process_.shareable().page_create(2_MiB).value();
    const ShareKind kind = process_.device().sharing()->page_export(page).value().kind;
    EXPECT_TRUE(process_.shareable().page_release(page).is_ok());
    return kind;
  }
  std::uint64_t calls(CallKind kind) { return process_.gpu().account().of(kind).calls; }

  ShareProcess process_;
};

TEST_F(FabricHandlesTest, TheFirstPageShowsThatTheyWork) {
  EXPECT_EQ(kind_of_a_page(), ShareKind::kFabric);
  EXPECT_EQ(calls(CallKind::kPageImport), 1u);
  EXPECT_EQ(kind_of_a_page(), ShareKind::kFabric);
  EXPECT_EQ(calls(CallKind::kPageImport), 1u) << "it is known";
  EXPECT_TRUE(process_.gpu().ledger().nothing_held());
}

TEST_F(FabricHandlesTest, WhereTheyAreNotExportedOrImportedPagesHaveDescriptors) {
  for (const CallKind kind : {CallKind::kPageExport, CallKind::kPageImport}) {
    for (const Code code : {Code::kUnsupported, Code::kInvalidArgument, Code::kDriverError}) {
      ShareProcess process;
      process.gpu().fail(kind, 1, spec::FailMode::kOnce, code);
      const PageHandle page = process.shareable().page_create(2_MiB).value();
      EXPECT_EQ(process.shareable().page_kind(), ShareKind::kDescriptor);
      EXPECT_EQ(process.device().sharing()->page_export(page).value().kind, ShareKind::kDescriptor);
      EXPECT_TRUE(process.shareable().page_release(page).is_ok());
      EXPECT_TRUE(process.gpu().ledger().nothing_held());
    }
  }
}

TEST_F(FabricHandlesTest, AShortageSaysNothingOfThem) {
  process_.gpu().fail(CallKind::kPageImport, 1, spec::FailMode::kOnce, Code::kOutOfMemory);
  EXPECT_EQ(process_.shareable().page_create(2_MiB).code(), Code::kOutOfMemory);
  EXPECT_TRUE(process_.gpu().ledger().nothing_held());
  EXPECT_EQ(kind_of_a_page(), ShareKind::kFabric);
}

}  // namespace
}  // namespace ashlar::props
