"""The self-test of gaps.py: judges a small export with one gap of every sort, and lists that do not fit it.

Exit 77 (skipped) where llvm-cxxfilt-19 is missing.
"""
import contextlib
import io
import os
import shutil
import sys
import tempfile

from gaps import EXPANSION, Coverage, Sources, is_good, judge, reasons_of

SELF_TEST_SOURCE = """\
int f(int a, int b) {
  if (a < 1 && b < 1) return 1;  // both sides of each, a < 1 without a pair
  if (a == 7) return 2;
  CHECK(a > 2,
        "why");
  return a < 9 ? 3 : 4;
}
"""


def self_test_export(root, more=()):
    def function(name, branches, records):
        return {"name": name, "filenames": [f"{root}/room/f.cc", f"{root}/check.h"], "branches": branches,
                "regions": [[4, 3, 4, 8, 1, 0, 1, EXPANSION]], "mcdc_records": records}

    return {"data": [{"functions": [
        function("_Z1fIiEvT_", [[2, 7, 2, 12, 3, 2, 0, 0, 6], [2, 16, 2, 21, 2, 1, 0, 0, 6], [3, 7, 3, 13, 0, 4, 0, 0, 4],
                                [9, 7, 9, 11, 0, 4, 1, 0, 4], [6, 10, 6, 15, 1, 0, 0, 0, 4]],
                 [[2, 7, 2, 21, 0, 5, [False, False]]]),
        function("_Z1fIcEvT_", [[2, 7, 2, 12, 3, 2, 0, 0, 6], [2, 16, 2, 21, 2, 1, 0, 0, 6], [6, 10, 6, 15, 0, 1, 0, 0, 4]],
                 [[2, 7, 2, 21, 0, 5, [False, True]]]),
        *more]}]}


def self_test():
    if shutil.which("llvm-cxxfilt-19") is None:
        print("gaps.py: skipped, no llvm-cxxfilt-19")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(f"{root}/room")
        os.makedirs(f"{root}/lists")
        with open(f"{root}/room/f.cc", "w", encoding="utf-8") as file:
            file.write(SELF_TEST_SOURCE)

        def outcome(lines, export=None):
            with open(f"{root}/lists/room.tsv", "w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
            printed = io.StringIO()
            try:
                with contextlib.redirect_stderr(printed):
                    coverage = Coverage(export or self_test_export(root), root, ["room"])
                    fields = judge(coverage, Sources(root), reasons_of(f"{root}/lists"), printed)
            except SystemExit as end:
                return f"exit {end.code}", printed.getvalue()
            return fields, printed.getvalue()

        def expect(is_so, what):
            if not is_so:
                sys.exit(f"gaps.py --self-test: {what}")

        gaps = ["room/f.cc|f|a < 1|no pair|0", "room/f.cc|f|a == 7|never true|0", "room/f.cc|f|CHECK(a > 2)|never true|0"]
        fields, printed = outcome([])
        expect([line.split("   ")[1] for line in printed.splitlines()] == gaps, f"other gaps are found:\n{printed}")
        expect(printed.startswith("room/f.cc:2: f: a < 1: no pair"), f"another line is named:\n{printed}")
        expect(fields["branches"]["count"] == 10 and fields["branches"]["notcovered"] == 2, f"{fields}")
        expect(fields["mcdc"]["count"] == 2 and fields["mcdc"]["notcovered"] == 1 and not is_good(fields), f"{fields}")
        rows = ["# a comment", *(f"{gap}\tbecause" for gap in gaps)]
        fields, printed = outcome(rows)
        expect(is_good(fields) and not printed, f"a complete list is refused: {fields}\n{printed}")
        expect(fields["unreachable"]["sides"] == 2 and fields["unreachable"]["conditions"] == 1, f"{fields}")
        fields, printed = outcome([*rows[:2], *(f"{gap}\tnot reached yet: a test of it" for gap in gaps[1:])])
        counts = fields["unreachable"]
        expect(is_good(fields) and counts["not_yet"] == 2 and counts["listed"] == 1 and counts["sides"] == 0, f"{fields}")
        fields, printed = outcome([rows[0], f"{gaps[0]}\tnot reached yet: a test of it", *rows[2:]])
        expect(fields["unreachable"]["conditions"] == 0, f"what is not reached yet is excused: {fields}")
        fields, printed = outcome(rows[:-1])
        expect(not is_good(fields) and gaps[-1] in printed, "a gap that is not listed passes")
        for stale in ("room/f.cc|f|a == 7|never false|0", "room/f.cc|f|a == 7|never true|1", "room/g.cc|g|x|no pair|0"):
            fields, printed = outcome([*rows, f"{stale}\tbecause"])
            expect(not is_good(fields) and stale in printed, f"a line of something reached or gone passes: {stale}")
        for malformed in (gaps[0], f"{gaps[0]}\t ", "room/f.cc|f|a == 7|never|0\tbecause", "room/f.cc|f|never true|0\tbecause",
                          f"{gaps[0][:-2]}\tbecause", rows[1]):
            expect(outcome([*rows, malformed])[0] == "exit 2", f"a malformed or repeated line passes: {malformed}")
        nested = {"name": "_Z1fi", "filenames": [f"{root}/room/f.cc"], "regions": [], "branches": [[2, 7, 2, 12, 1, 1, 0, 0, 4]],
                  "mcdc_records": []}
        other = {"data": [{"functions": [nested]}]}
        expect(not is_good(outcome([], other)[0]), "a condition without a record passes")
        constant = dict(nested, branches=[[2, 7, 2, 12, 1, 1, 0, 0, 6]], mcdc_records=[[2, 7, 2, 21, 0, 5, [True, False]]])
        other = {"data": [{"functions": [constant]}]}
        expect(not is_good(outcome([], other)[0]), "a decision with an unknown constant passes")
        full = self_test_export(root, [constant])
        expect(is_good(outcome(rows[2:], full)[0]), "a pair of an instantiation with a constant is not counted")
