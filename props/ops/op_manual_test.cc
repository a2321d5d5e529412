// The manual of the operations, and the page that is printed from it.
// Imitates: an operation is added, or its arguments are described, and the page stays as it was.
// Does not prove: that a sentence says what the operation does.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "spec/ops/op_manual.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"

namespace ashlar::spec {
namespace {

unsigned words_of(const char* text) {
  std::istringstream words(text);
  return static_cast<unsigned>(std::distance(std::istream_iterator<std::string>(words),
                                             std::istream_iterator<std::string>()));
}

unsigned args_of(const OpInfo& info) {
  unsigned count = 0;
  while (count < kArgsMax && info.args[count] != ArgKind::kNone) ++count;
  return count;
}

TEST(OpManual, EveryOperationHasOneEntry) {
  std::multiset<unsigned> entries;
  for (const OpChapter& chapter : op_manual()) {
    for (const OpEntry& entry : chapter.entries) entries.insert(entry.slot);
  }
  for (unsigned s = 0; s < 256; ++s) {
    const auto number = static_cast<std::uint8_t>(s);
    const bool is_operation = op_info(number).slot == number;
    EXPECT_EQ(entries.count(s), is_operation ? 1u : 0u)
        << "slot " << s << ": " << op_info(number).name;
  }
}

TEST(OpManual, OperandsAreNamedAsTheTableHasThem) {
  std::map<std::string, std::string> hints;  // by operand
  for (const OpChapter& chapter : op_manual()) {
    for (const OpEntry& entry : chapter.entries) {
      const OpInfo& info = op_info(entry.slot);
      EXPECT_EQ(words_of(entry.operands), args_of(info)) << info.name;
      std::istringstream names(entry.operands);
      std::string name;
      for (unsigned i = 0; names >> name && i < kArgsMax; ++i) {
        const auto [known, is_new] = hints.emplace(name, arg_hint(info.args[i]));
        EXPECT_TRUE(is_new || known->second == arg_hint(info.args[i]))
            << info.name << ": " << name << " is another kind of operand elsewhere";
      }
    }
  }
}

TEST(OpManual, EveryExampleIsALineOfItsOperation) {
  for (const OpChapter& chapter : op_manual()) {
    for (const OpEntry& entry : chapter.entries) {
      Op op;
      std::string reason;
      ASSERT_EQ(parse_op(entry.example, &op, &reason), 1) << entry.example << ": " << reason;
      EXPECT_EQ(op.slot, entry.slot) << entry.example;
    }
  }
}

TEST(OpManual, MeaningsAreSentences) {
  for (const OpChapter& chapter : op_manual()) {
    for (const OpEntry& entry : chapter.entries) {
      const std::string meaning = entry.meaning;
      EXPECT_GT(meaning.size(), 8u) << entry.example;
      EXPECT_EQ(meaning.back(), '.') << entry.example;
      EXPECT_EQ(meaning.find('|'), std::string::npos) << "breaks the table: " << meaning;
    }
  }
}

TEST(OpManual, TheCommittedPageIsThePrintedOne) {
  std::ifstream file(ASHLAR_OPS_PAGE, std::ios::binary);
  ASSERT_TRUE(file.is_open()) << ASHLAR_OPS_PAGE;
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(page, ops_page()) << "write it again: ops_reference >docs/ops.md";
}

}  // namespace
}  // namespace ashlar::spec
