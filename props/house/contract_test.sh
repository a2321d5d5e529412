#!/usr/bin/env bash
# Holds the repository to spec/contract.md, the page that defines every rule's id.
#
#   contract_test.sh [ROOT]        checks the tree at ROOT (default: the one this file is in)
#   contract_test.sh --self-test   plants one violation of every sort in a copy, expects each report
#
# What is checked:
#   (a) every id that is cited is defined in spec/contract.md;
#   (b) no id is defined twice;
#   (c) every row has a known status. A `built` row names, in its last cell, at least one test or
#       stored case; a `part` row says what is missing. Every file, and every test, that a row names
#       exists;
#   (d) docs/clauses.md has one section for each C row that is built or in part, and for no other; each
#       says what is judged, excused and not judged;
#   (e) every label of an invariant, such as "heap(3)", that src uses has a row, and the head of the
#       file that owns it numbers that invariant.
#
# What is an id: C, D, G, H, P, R or S and a number of one or two digits (C12); or DEV-, PIN-, REC-,
# SCH- or TEN- and such a number (DEV-4).
# What is a citation:
#   - an id that stands alone: neither a letter, a digit nor one of _ . $ # % \ - touches it in
#     front, neither a letter, a digit, _, ( nor % behind. So 0xC1, #C10, P1(x), C++20 and H100 are
#     not ids;
#   - a range, C3-C5, C3..C5, C3-5 or DEV-1..4, cites all its members;
#   - after a DEV-, PIN-, ... id a list of bare numbers goes on citing: "DEV-1..6, 12..16, 19 and
#     22's", where a number is followed by punctuation, by "and", or ends the line;
#   - a file name h07-... or h07_... cites H7.
# Where citations are looked for: text files under src, spec, props, fuzz, bench, ci, docs, cmake
# and .github, README.md, CMakeLists.txt and reports/README.md; of C++, C# and Dafny sources only
# comments and string literals, so that a variable P1 is none. Inputs are not read: bench/data,
# fuzz/dict, fuzz/seeds but for .ops files, and this script.
# A language standard is written "C++17", "C 17" or "C99", never as a clause would be.
#
# Does not prove that a named test plants what its row says: that is for the reader.
set -euo pipefail
export LC_ALL=C

page=spec/contract.md
clauses=docs/clauses.md
rooms=(src spec props fuzz bench ci docs cmake .github)

# texts ROOT: the files in which citations are looked for, one per line, relative to ROOT.
texts() {
  (
    cd "$1"
    local there=() one
    for one in "${rooms[@]}" README.md CMakeLists.txt reports/README.md; do
      if [[ -e $one ]]; then there+=("$one"); fi
    done
    find "${there[@]}" -type f ! -path 'bench/data/*.gz' ! -path 'bench/data/*.txt' \
      ! -path props/house/contract_test.sh ! -path 'fuzz/dict/*' \
      ! \( -path 'fuzz/seeds/*' ! -name '*.ops' \) | sort
  )
}

# citations ROOT: `file:line:id` for each citation.
citations() {
  texts "$1" | sed -nE 's|^(.*/)?h0?([0-9]{1,2})[-_][^/]*$|&:1:H\2|p'
  # grep picks the lines that may cite (and no binary file); awk reads them.
  (cd "$1" && texts . | tr '\n' '\0' | xargs -0 grep -IHnE \
    '(^|[^A-Za-z0-9_])([CDGHPRS][0-9]|(DEV|PIN|REC|SCH|TEN)-[0-9])' -- || true) | awk '
    # Comments and string literals of a line of C++; everything else becomes blanks.
    function prose(line,   out, i, c, n, in_text, in_char) {
      if (line ~ /^[ \t]*(\/?\*|\/\/)/) return line
      out = ""; n = length(line); in_text = 0
      for (i = 1; i <= n; ++i) {
        c = substr(line, i, 1)
        if (in_text) {
          if (c == "\\") { out = out "  "; ++i; continue }
          if (c == "\"") in_text = 0
          out = out (in_text ? c : " ")
        } else if (c == "/" && substr(line, i + 1, 1) ~ /[\/*]/) {
          return out " " substr(line, i)
        } else if (c == "\"") {
          in_text = 1; out = out " "
        } else if (c == "\047" && substr(line, i + 1) ~ /^(\\?.)\047/) {
          i += substr(line, i + 1, 1) == "\\" ? 3 : 2; out = out " "
        } else {
          out = out " "
        }
      }
      return out
    }
    function cite(family, first, last,   n) {
      if (last < first) last = first
      for (n = first; n <= last; ++n) print where family n
    }
    # A number, or a range of them, at the front of `rest`: into first and last; rest moves on.
    function take_range(family,   bare) {
      match(rest, /^[0-9][0-9]?/)
      first = last = substr(rest, 1, RLENGTH) + 0
      written = substr(rest, 1, RLENGTH)
      rest = substr(rest, RLENGTH + 1)
      bare = family ~ /-$/ ? "" : family
      if (match(rest, "^(\\.\\.|-)" bare "?[0-9][0-9]?") &&
          substr(rest, RLENGTH + 1) !~ /^[A-Za-z0-9_]/) {
        if (family !~ /-$/ || rest ~ /^\.\./) {
          last = substr(rest, 1, RLENGTH)
          sub(/^(\.\.|-)[A-Z]?/, "", last)
          last += 0
          rest = substr(rest, RLENGTH + 1)
        }
      }
    }
    {
      split($0, part, ":")
      where = part[1] ":" part[2] ":"
      rest = substr($0, length(where) + 1)
      if (part[1] ~ /\.(h|cc|cs|dfy|in)$/) rest = prose(rest)
      before = " "
      while (match(rest, /(DEV|PIN|REC|SCH|TEN)-[0-9][0-9]?|[CDGHPRS][0-9][0-9]?/)) {
        if (RSTART > 1) before = substr(rest, RSTART - 1, 1)
        token = substr(rest, RSTART, RLENGTH)
        after = substr(rest, RSTART + RLENGTH, 1)
        if (before ~ /[A-Za-z0-9_.$#%\\-]/ || after ~ /[A-Za-z0-9_(%]/) {
          before = substr(token, length(token), 1)
          rest = substr(rest, RSTART + RLENGTH)
          continue
        }
        family = token
        sub(/[0-9]+$/, "", family)
        rest = substr(rest, RSTART + length(family))
        take_range(family)
        if (length(written) > 1 && written ~ /^0/) print where family written  # no id is so written
        else cite(family, first, last)
        while (family ~ /-$/ &&
               match(rest, /^(,| and) [0-9][0-9]?(\.\.[0-9][0-9]?)?([,;.:)\047]| and |$)/)) {
          sub(/^(,| and) /, "", rest)
          take_range(family)
          cite(family, first, last)
        }
        before = "0"
      }
    }'
}

# rows ROOT: `id|status|last cell|all cells but the first three` for each row that defines an id.
rows() {
  awk -F'|' '
    $2 ~ /^ *([CDGHPRS][0-9]+|(DEV|PIN|REC|SCH|TEN)-[0-9]+) *$/ {
      for (i = 2; i <= NF; ++i) { gsub(/^ +| +$/, "", $i) }
      all = ""
      for (i = 5; i < NF; ++i) all = all " " $i
      print $2 "|" $4 "|" $(NF - 1) "|" all
    }' "$1/$page"
}

# tests ROOT: `path:Suite.Name` for each test in the tree, however its line is broken.
tests() {
  (cd "$1" && find props bench -name '*_test.cc' -print0 | xargs -0 awk '
    held != "" { held = held " " $0 }
    /^ *(TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(/ { held = $0 }
    held ~ /\( *[A-Za-z0-9_]+ *, *[A-Za-z0-9_]+ *[,)]/ {
      sub(/^[^(]*\( */, "", held)
      split(held, name, /[ ,)]+/)
      print FILENAME ":" name[1] "." name[2]
      held = ""
    }')
}

# check_rows ROOT: (b) and (c).
check_rows() {
  local root=$1
  rows "$root" | cut -d'|' -f1 | sort | uniq -d | sed "s|^|$page: defined twice: |"
  awk -F'|' -v page="$page" '
    # Files and tests are known by their paths and by their bare names.
    FILENAME == ARGV[1] { known[$0] = 1; sub(/.*\//, ""); known[$0] = 1; next }
    {
      id = $1; status = $2; cases = $3; all = $4
      if (status == "built") {
        if (cases !~ /`[^`]+(\.cc: [A-Za-z0-9_]+\.[A-Za-z0-9_]+|\.ops|\.dfy)`/) {
          print page ": " id " is built, and names no test"
        }
      } else if (status != "next" && status !~ /^part: [^ ]/) {
        print page ": " id " has the status \047" status "\047"
      }
      n = split(all, part, "`")
      for (i = 2; i <= n; i += 2) {
        file = name = part[i]
        sub(/: .*/, "", file)
        if (file !~ /^[A-Za-z0-9_.\/-]+\.[a-z]+$/) continue
        if (!(file in known)) { print page ": " id " names " file ", which is not there"; continue }
        if (!sub(/^[^:]*: /, "", name)) continue
        if (!((file ":" name) in known)) {
          print page ": " id " names " name ", which " file " does not have"
        }
      }
    }' <(cd "$root" && find src spec props fuzz bench ci -type f; tests "$root") <(rows "$root")
}

# check_clauses ROOT: (d).
check_clauses() {
  local root=$1
  awk -F'|' -v page="$clauses" '
    FILENAME == ARGV[1] { if ($1 ~ /^C[0-9]+$/ && $2 != "next") must[$1] = 1; next }
    function end_section() {
      if (id != "" && parts != "judged excused not-judged ")
        print page ": " id " does not say what is judged, excused and not judged, in this order"
    }
    /^### / {
      end_section()
      split($0, word, " "); id = word[2]; parts = ""
      if (id in seen) print page ": two sections of " id
      seen[id] = 1
      if (!(id in must)) print page ": a section of " id ", which is no clause that is built"
    }
    /^- \*\*Judged:\*\* ./ { parts = parts "judged " }
    /^- \*\*Excused:\*\* ./ { parts = parts "excused " }
    /^- \*\*Not judged:\*\* ./ { parts = parts "not-judged " }
    END { end_section(); for (id in must) if (!(id in seen)) print page ": no section of " id }
  ' <(rows "$root") "$root/$clauses"
}

# check_labels ROOT: (e).
check_labels() {
  local root=$1 label number owner file
  declare -A owner_of=()
  while IFS='|' read -r label owner; do
    owner_of[$label]=$owner
  done < <(sed -nE 's/^\| ([A-Za-z ]+)\(N\) \| `([^`]+)` \|.*/\1|\2/p' "$root/$page")
  while IFS='|' read -r label number; do
    owner=${owner_of[$label]:-}
    if [[ -z $owner ]]; then
      echo "$page: no row for the label $label($number)"
      continue
    fi
    file=$(find "$root/src" -name "$owner" | head -n 1)
    if [[ -z $file ]]; then
      echo "$page: the label $label names $owner, which is not there"
    elif ! grep -qE "^// +\($number\)" "$file"; then
      echo "${file#"$root"/}: no invariant ($number), which an assertion cites as $label($number)"
    fi
  done < <(grep -rhoE --include='*.h' --include='*.cc' '"[A-Za-z]+( [a-z]+)?\([0-9]\)[": ]' \
             "$root/src" | sed -nE 's/^"([A-Za-z ]+)\(([0-9])\).*/\1|\2/p' | sort -u)
}

check() {
  local root=$1 broken cited defined count
  if [[ ! -f $root/$page ]]; then echo "no $page"; return 1; fi
  if [[ ! -f $root/$clauses ]]; then echo "no $clauses"; return 1; fi
  defined=$(rows "$root" | cut -d'|' -f1 | sort -u)
  cited=$(citations "$root")
  broken=$(
    awk -F: 'NR == FNR { known[$1] = 1; next }
             !($3 in known) { print $1 ":" $2 ": cites " $3 ", which is not in the contract" }' \
      <(echo "$defined") <(echo "$cited")
    check_rows "$root"
    check_clauses "$root"
    check_labels "$root"
  )
  if [[ -z $defined || -z $cited ]]; then echo "no id was looked at"; return 1; fi
  if [[ -n $broken ]]; then echo "$broken"; echo "$(wc -l <<<"$broken") violations"; return 1; fi
  count=$(cut -d: -f3 <<<"$cited" | sort -u | wc -l)
  echo "$(wc -l <<<"$cited") citations of $count ids; $(wc -l <<<"$defined") ids are defined"
}

# self_test ROOT COPY: all violations are planted at once, since each is reported by itself; each
# has a place of its own. What is no violation must not be reported.
self_test() {
  local root=$1 copy=$2 missed=0 planted what file change expected report
  (cd "$root" && { texts . ; find src spec props fuzz bench ci -type f ! -path '*.gz'; } |
    sort -u | tar cf - -T -) | tar xf - -C "$copy"
  if ! report=$(check "$copy"); then echo "the copy is not sound: $report"; return 1; fi
  planted=$(planted)
  while IFS='~' read -r what file change expected; do
    mkdir -p "$copy/$(dirname "$file")"
    touch "$copy/$file"
    cp "$copy/$file" "$copy/.before"
    if [[ $change == +* ]]; then echo "${change#+}" >>"$copy/$file"
    else sed -i -E "$change" "$copy/$file"; fi
    if cmp -s "$copy/.before" "$copy/$file"; then echo "nothing was planted: $what"; missed=1; fi
  done <<<"$planted"
  if report=$(check "$copy"); then echo "nothing was reported"; return 1; fi
  while IFS='~' read -r what file change expected; do
    if [[ $expected == none ]]; then
      if [[ $report == *"$file"* ]]; then echo "reported, and no violation: $what"; missed=1; fi
    elif [[ $report != *"$expected"* ]]; then
      echo "not noticed: $what"; missed=1
    fi
  done <<<"$planted"
  if (( missed != 0 )); then echo "$report"; fi
  return "$missed"
}

# planted: `what~file~+a line for its end, or a sed script~the report, or none` for each plant.
planted() {
  cat <<'PLANTED'
an unknown clause in a comment~src/a.h~+int x;  // keeps C77~src/a.h:1: cites C77,
one in a message~src/b.cc~+  REQUIRE(x, "C78: broken");~src/b.cc:1: cites C78,
one after a char literal~src/c.cc~+  f('"'); g("D79");~src/c.cc:1: cites D79,
one in a block comment~src/d.h~+ * Keeps C76.~src/d.h:1: cites C76,
one in prose~spec/e.md~+Kept by R80 alone.~spec/e.md:1: cites R80,
one in a script~ci/f~+# keeps P81~ci/f:1: cites P81,
one in the README~README.md~+See G82.~: cites G82,
one in the reports~reports/README.md~+See S83.~: cites S83,
one in a proof~spec/g.dfy~+// keeps C84.~spec/g.dfy:1: cites C84,
one beside a known id~docs/h.md~+See C6/C85.~docs/h.md:1: cites C85,
the end of a range~docs/i.md~+See C30-C33.~docs/i.md:1: cites C33,
the end of a short range~docs/j.md~+See C30..33.~docs/j.md:1: cites C33,
an unknown row~docs/k.md~+See DEV-86.~docs/k.md:1: cites DEV-86,
a row in a range~docs/l.md~+See DEV-20..25.~docs/l.md:1: cites DEV-25,
a row in a list~docs/m.md~+Rows DEV-1..4, 12, 87 and 2's.~docs/m.md:1: cites DEV-87,
a list's last row~docs/n.md~+Rows DEV-1..4, 12 and 88's.~docs/n.md:1: cites DEV-88,
a zero in front~docs/o.md~+See C07.~docs/o.md:1: cites C07,
a stored case of no bug~props/regressions/h96-p.ops~+# nothing~h96-p.ops:1: cites H96,
a definition that is gone~spec/contract.md~/^\| C12 \|/d~cites C12,
a definition twice~spec/contract.md~s/^\| C31 \|/| C30 |/~defined twice: C30
an unknown status~spec/contract.md~/^\| C19 \|/s/ next / soon /~C19 has the status 'soon'
a part without a lack~spec/contract.md~/^\| C29 \|/s/ part: [^|]*/ part /~C29 has the status 'part'
built without a test~spec/contract.md~/^\| H9 \|/s/ next / built /~H9 is built, and names no test
a renamed test~props/cache/checkers_map_test.cc~s/, C2Fires/, C2Fired/~C2 names Checkers.C2FiresWhen
another's suite~spec/contract.md~/^\| C24 \|/s/Checkers\.C/Damaged.C/~C24 names Damaged.C24Fires
a case that is gone~spec/contract.md~/^\| H40 \|/s/h40-two/h40-six/~H40 names h40-six-streams
a checker that is gone~spec/contract.md~/^\| C15 \|/s/clause_accounted/clause_sum/~C15 names clause_sum.cc,
a clause that is not explained~docs/clauses.md~/^### C26 /d~no section of C26
a section of what is not built~docs/clauses.md~s/^### C23 /### S1 /~a section of S1,
a section that excuses nothing~docs/clauses.md~/^### C28/,/^### C29/{/^- \*\*Excused/d}~C28 does not say what is judged
a label without a row~spec/contract.md~/^\| slab\(N\)/d~no row for the label slab(
an invariant that is not there~src/r.cc~+  ASSERT(x, "heap(9): p");~no invariant (9), which
a variable~src/s.cc~+  int C91 = P92 + R93; f(D94);~none
a hexadecimal number, a colour~docs/t.md~+0xC95 and #C96, H100, D97x, P98(x), C++20.~none
a name~src/u.cc~+// F.C91 and x_C92 and C93FiresOn~none
PLANTED
}

here=$(cd "$(dirname "$0")/../.." && pwd)
if [[ ${1:-} == --self-test ]]; then
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  self_test "$here" "$copy"
else
  check "${1:-$here}"
fi
