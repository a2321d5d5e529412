// The page of the manual: chapters of op_manual() as Markdown tables. See op_manual.h.
#include <ashlar/base/status.h>
#include <ashlar/device/device.h>

#include <sstream>
#include <utility>
#include <vector>

#include "spec/gpu/fault.h"
#include "spec/ops/op_manual.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"

namespace ashlar::spec {

namespace {

constexpr const char* kPageHead =
    R"(# The operations of `.ops` files

<!-- Printed by ops_reference from spec/ops/op_manual.cc: cmake --build build/release --target ops_reference, then
build/release/spec/ops_reference >docs/ops.md. props/ops/op_manual_test.cc compares. -->

A `.ops` file is a case for `ashlar check` and `ashlar reduce`. Its first line says what it drives, and each other line is one
operation: a name, then its operands. [spec/ops](../spec/ops/README.md) explains the language; this page has every operation.

```
ashlar-ops 1 cache            # form 1; the subject: cache, pool or gpu
device d0 64MiB
stream s1 d0
alloc p0 2MiB s1
kernel s1 p0 w                # work on s1 that writes all of p0
free p0
expect ok                     # the outcome of the operation before
```

An operation whose names are not bound when it runs is skipped. A `C` with a number is a clause of
[the contract](../spec/contract.md).
)";

/// For each way to write an operand, the names of the operands that are written so.
std::vector<std::pair<std::string, std::string>> operand_rows() {
  std::vector<std::pair<std::string, std::string>> rows;  // hint, "`n`, `pool`"
  for (const OpChapter& chapter : op_manual()) {
    for (const OpEntry& entry : chapter.entries) {
      std::istringstream names(entry.operands);
      std::string name;
      for (unsigned i = 0; names >> name; ++i) {
        const std::string hint = arg_hint(op_info(entry.slot).args[i]);
        std::size_t row = 0;
        while (row < rows.size() && rows[row].first != hint) ++row;
        if (row == rows.size()) rows.emplace_back(hint, "");
        std::string& known = rows[row].second;
        const std::string quoted = "`" + name + "`";
        if (known.find(quoted) != std::string::npos) continue;
        known += (known.empty() ? "" : ", ") + quoted;
      }
    }
  }
  return rows;
}

/// The names of numbers 0, 1, ... as a list, without those that name nothing.
template <class NameOf>
std::string names_below(unsigned end, NameOf name_of) {
  std::string list;
  for (unsigned i = 0; i < end; ++i) {
    const std::string name = name_of(i);
    if (name != "unknown") list += (list.empty() ? "`" : ", `") + name + "`";
  }
  return list;
}

/// The words that stand for outcomes, driver calls and faults.
std::string page_of_words() {
  const std::string codes =
      names_below(256, [](unsigned i) { return code_name(static_cast<Code>(i)); });
  const std::string calls = names_below(
      device::kCallKinds, [](unsigned i) { return call_name(static_cast<device::CallKind>(i)); });
  const std::string faults =
      names_below(256, [](unsigned i) { return fault_name(static_cast<FaultKind>(i)); });
  return "\n## Words\n\n| for | words |\n|---|---|\n| outcomes: `code` | " + codes +
         " |\n| driver calls: `call` | " + calls + " |\n| faults: `expect-fault` | " + faults +
         " |\n";
}

}  // namespace

std::string ops_page() {
  std::string page = kPageHead;
  page += "\n## Operands\n\n| operand | is written as |\n|---|---|\n";
  for (const auto& [hint, names] : operand_rows()) page += "| " + names + " | " + hint + " |\n";
  for (const OpChapter& chapter : op_manual()) {
    page += std::string("\n## ") + chapter.title + "\n\n" + chapter.preface + "\n\n";
    page += "| operation | what it does | example |\n|---|---|---|\n";
    for (const OpEntry& entry : chapter.entries) {
      page += std::string("| `") + op_info(entry.slot).name;
      if (*entry.operands != '\0') page += std::string(" ") + entry.operands;
      page += std::string("` | ") + entry.meaning + " | `" + entry.example + "` |\n";
    }
  }
  return page + page_of_words();
}

}  // namespace ashlar::spec
