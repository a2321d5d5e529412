#!/usr/bin/env bash
# Holds the library's headers to what an installed library needs:
#   (a) every header under src/ashlar compiles by itself and begins with #pragma once. A source of
#       the library that includes its own header first is compiled by the build and shows the
#       former, so only the other headers are compiled here;
#   (b) the headers that <ashlar/ashlar.h>, <ashlar/exchange.h>, <ashlar/plan.h>, <ashlar/graph.h>
#       and <ashlar/sched.h> include, directly or not, are exactly those of the list ASHLAR_PUBLIC_HEADERS, which is what gets installed;
#   (c) no public header belongs to an internal room or names one: a room without a public header,
#       and what `internal` below lists;
#   (d) the shared library exports nothing but names of namespace ashlar that a public header
#       declares: no instantiation of std templates, no internal class;
#   (e) <ashlar/ashlar.h> names in namespace ashlar each type that a public header declares in a room
#       of which it names any.
#
#   headers_test.sh [OPTION...] [ROOT]    checks the tree at ROOT (default: that of this file)
#     --cxx COMPILER      default: $CXX, or c++
#     --include FOLDER    where the generated <ashlar/base/export.h> and version.h are; without it
#                         the test makes empty ones
#     --library FILE      a shared library for (d), which is left out without one; may be repeated
#   headers_test.sh --public [ROOT]        prints the list, as paths from src/ashlar
#   headers_test.sh --self-test    plants one violation of every sort in a small tree and expects
#                                  each to be reported
#
# The list may be in src/ashlar/CMakeLists.txt or src/CMakeLists.txt, its entries relative to
# src/ashlar or to src. Generated headers are not in the list; they are installed by name.
#
# Imitates: a user who includes one header of an installed library; a change that makes an internal
# header part of the interface. Does not prove that the interface is stable.
set -euo pipefail

entries=(ashlar.h exchange.h share.h plan.h graph.h sched.h)
internal=(block/ base/spin_lock.h)

compiler=${CXX:-c++}
generated=
libraries=()

# public_list ROOT: the entries of ASHLAR_PUBLIC_HEADERS, as paths from src/ashlar, one per line.
public_list() {
  local file
  for file in "$1/src/ashlar/CMakeLists.txt" "$1/src/CMakeLists.txt"; do
    if [[ -f $file ]]; then
      sed -e 's/#.*//' "$file" | tr '\n' ' ' |
        sed -nE 's/.*set\( *ASHLAR_PUBLIC_HEADERS ([^)]*)\).*/\1/p' | tr -s ' ' '\n' |
        sed -E '/^$/d; s/^(src\/)?(ashlar\/)?//'
    fi
  done | sort -u
}

# code FILE: the file without its comments.
code() { sed -E 's/\/\/.*//' "$1"; }

# reached ROOT: the headers under src/ashlar that the entries include, as paths from src/ashlar.
reached() {
  local entry
  for entry in "${entries[@]}"; do echo "#include <ashlar/$entry>"; done >"$scratch/entries.cc"
  "$compiler" -std=c++20 -MM "-I$1/src" "-I$generated" "$scratch/entries.cc" |
    tr -d '\\' | tr -s ' ' '\n' | sed -nE "s|^$1/src/ashlar/||p" | sort -u
}

# included_first ROOT: the headers that a source of the library includes before anything else.
included_first() {
  (cd "$1/src/ashlar" && find . -name '*.cc' -exec grep -hm 1 '^#include' {} +) |
    sed -nE 's|^#include <ashlar/([^>]*)>.*|\1|p' | sort -u
}

# alone ROOT: (a). One line for each header that does not compile, and the compiler's first errors.
alone() {
  local root=$1 header
  rm -rf "${scratch:?}/alone"
  mkdir "$scratch/alone"
  # block_pool_inl.h is the second half of block_pool.h, which includes it at its end: checked there.
  (cd "$root/src/ashlar" && find . -name '*.h' ! -path ./block/block_pool_inl.h -printf '%P\n') |
    sort >"$scratch/headers"
  while read -r header; do
    if [[ $(code "$root/src/ashlar/$header" | grep -m 1 .) != '#pragma once' ]]; then
      echo "src/ashlar/$header: its first line of code is not #pragma once"
    fi
  done <"$scratch/headers"
  comm -23 "$scratch/headers" <(included_first "$root") >"$scratch/compiled"
  # shellcheck disable=SC2016
  compiler=$compiler root=$root scratch=$scratch generated=$generated \
    xargs -a "$scratch/compiled" -n 1 -P "$(nproc)" bash -c '
      name=$scratch/alone/${1//\//.}
      printf "#include <ashlar/%s>\n" "$1" >"$name.cc"
      if ! "$compiler" -std=c++20 -fsyntax-only "-I$root/src" "-I$generated" "$name.cc" \
             >"$name.log" 2>&1; then
        { echo "src/ashlar/$1: does not compile by itself"
          grep -m 3 error "$name.log" | sed "s/^/    /"; } >"$name.said"
      fi' header
  cat "$scratch"/alone/*.said 2>/dev/null || true
}

# compared ROOT: (b).
compared() {
  local root=$1 header by
  if ! reached "$root" >"$scratch/reached"; then
    echo "<ashlar/${entries[0]}>: its includes cannot be read"
    return
  fi
  comm -13 "$scratch/public" "$scratch/reached" | while read -r header; do
    by=$(cd "$root/src/ashlar" &&
           xargs -a "$scratch/reached" grep -lF "<ashlar/$header>" | head -n 3 | tr '\n' ' ')
    echo "src/ashlar/$header: not installed, but included by $by"
  done
  comm -23 "$scratch/public" "$scratch/reached" | while read -r header; do
    if [[ ! -f $root/src/ashlar/$header ]]; then
      echo "src/ashlar/$header: in ASHLAR_PUBLIC_HEADERS, but there is no such file"
    else
      echo "src/ashlar/$header: installed, but not included by <ashlar/${entries[*]}>"
    fi
  done
}

# named ROOT: (c).
named() {
  local root=$1 room header one stem
  local -a rooms names
  for one in "${internal[@]}"; do
    while read -r header; do
      if [[ $header == "$one"* ]]; then echo "src/ashlar/$header: public, but $one is internal"; fi
    done <"$scratch/public"
    if [[ $one == *.h ]]; then  # spin_lock.h -> SpinLock
      stem=$(basename "$one" .h)
      names+=("\\b$(sed -E 's/(^|_)([a-z])/\U\2/g' <<<"$stem")\\b")
    fi
  done
  while read -r room; do
    if ! grep -q "^$room/" "$scratch/public" || [[ " ${internal[*]} " == *" $room/ "* ]]; then
      rooms+=("$room")
      names+=("\\b$room::" "namespace ([a-z0-9_]+::)*$room\\b" "<ashlar/$room/")
    fi
  done < <(cd "$root/src/ashlar" && find . -mindepth 1 -maxdepth 1 -type d -printf '%P\n' | sort)
  if (( ${#names[@]} == 0 )); then return; fi
  while read -r header; do
    if [[ ! -f $root/src/ashlar/$header || " ${internal[*]} " == *" $header "* ]]; then continue; fi
    code "$root/src/ashlar/$header" | grep -nE "$(IFS='|'; echo "${names[*]}")" |
      sed -E "s|^([0-9]+):[[:space:]]*(.*)|src/ashlar/$header:\1: names an internal: \2|" || true
  done <"$scratch/public"
}

# exported ROOT: (d). The name of a symbol is what comes before its parameters; each part of it has
# to be a word of a public header's code. The linker's own symbols (_end, _edata, ...) and names of
# a C interface (ashlar_...) pass.
exported() {
  local root=$1 library=$2 header
  while read -r header; do
    if [[ -f $root/src/ashlar/$header ]]; then code "$root/src/ashlar/$header"; fi
  done <"$scratch/public" | grep -oE '[A-Za-z_][A-Za-z_0-9]*' | sort -u >"$scratch/words"
  nm -D --defined-only "$library" | awk '{ print $NF }' | sort -u >"$scratch/symbols"
  cat "$scratch/symbols" >>"$scratch/exported"
  if [[ ! -s $scratch/symbols ]]; then echo "$library: exports nothing"; return; fi
  paste "$scratch/symbols" <(c++filt <"$scratch/symbols") |
    awk -F '\t' -v words="$scratch/words" '
      BEGIN { while ((getline word < words) > 0) known[word] = 1 }
      $1 ~ /^(_init|_fini|_edata|_end|__bss_start)$/ || $1 ~ /^ashlar_[a-z0-9_]+$/ { next }
      $1 !~ /^_Z(T[VIST]|GV|GR|Th[n0-9]+_|Tv[n0-9]+_[n0-9]+_)?Z?N[KVRO]*6ashlar/ {
        print "exported, but not of namespace ashlar: " $2
        next
      }
      {
        name = $2
        sub(/^.* (for|to) /, "", name)
        gsub(/\[abi:[a-z0-9]+\]/, "", name)
        sub(/::operator.*/, "", name)
        sub(/\(.*/, "", name)
        while (gsub(/<[^<>]*>/, "", name)) {}
        sub(/^.* /, "", name)
        count = split(name, part, /::~?/)
        for (i = 1; i <= count; i++)
          if (!(part[i] in known)) {
            print "exported, but no public header names " part[i] ": " $2
            next
          }
      }' | cut -c 1-200
}

# unnamed ROOT: (e).
unnamed() {
  local root=$1 room header type
  code "$root/src/ashlar/ashlar.h" | sed -nE 's/^using ([a-z_]+)::.*/\1/p' | sort -u >"$scratch/named_rooms"
  while read -r header; do
    room=${header%/*}
    if [[ ! -f $root/src/ashlar/$header ]] || ! grep -qx "$room" "$scratch/named_rooms"; then continue; fi
    code "$root/src/ashlar/$header" |
      sed -nE 's/^(struct|class|enum class|using) (ASHLAR_API )?([A-Z][A-Za-z0-9]*)( final)?( :.*| =.*| \{.*)$/\3/p' |
      while read -r type; do
        if ! grep -q "^using $room::$type;" "$root/src/ashlar/ashlar.h"; then
          echo "src/ashlar/$header: <ashlar/ashlar.h> does not name $type"
        fi
      done
  done <"$scratch/public"
}

check() {
  local root=$1 library said
  if [[ ! -d $root/src/ashlar ]]; then echo "$root/src/ashlar: no such folder"; return 1; fi
  public_list "$root" >"$scratch/public"
  if [[ ! -s $scratch/public ]]; then
    echo "ASHLAR_PUBLIC_HEADERS: not found, or empty"
    return 1
  fi
  rm -f "$scratch/exported"
  said=$(alone "$root"; compared "$root"; named "$root"; unnamed "$root"
         for library in ${libraries[@]+"${libraries[@]}"}; do exported "$root" "$library"; done)
  if [[ -n $said ]]; then
    echo "$said"
    echo "$(grep -vc '^    ' <<<"$said") findings"
    return 1
  fi
  echo "$(wc -l <"$scratch/compiled") headers compile by themselves, of $(wc -l <"$scratch/headers")"
  echo "$(wc -l <"$scratch/public") are public"
  if (( ${#libraries[@]} > 0 )); then echo "$(sort -u "$scratch/exported" | wc -l) symbols are exported"; fi
}

# plant FILE: writes a file of the small tree from standard input.
plant() {
  mkdir -p "$copy/src/ashlar/$(dirname "$1")"
  cat >"$copy/src/ashlar/$1"
}

# sound_tree: a small tree without a violation.
sound_tree() {
  local header
  rm -rf "${copy:?}/src"
  plant ashlar.h <<<$'#pragma once\n#include <ashlar/base/types.h>'
  plant plan.h <<<$'#pragma once\n#include <ashlar/plan/plan.h>'
  plant base/types.h <<<$'#pragma once\n#include <ashlar/base/export.h>
namespace ashlar { struct Bytes { int value; }; int size(); }'
  plant base/spin_lock.h <<<$'#pragma once\nnamespace ashlar { class SpinLock {}; }'
  for header in ashlar plan base/types base/spin_lock plan/plan block/pool; do
    plant "$header.cc" <<<"#include <ashlar/$header.h>"  # so that only what is planted is compiled
  done
  plant plan/plan.h <<<$'#pragma once\n// Uses no block:: and no SpinLock.
#include <ashlar/base/types.h>\nnamespace ashlar::plan { class Plan { Bytes peak(); }; }'
  plant block/pool.h <<<$'#pragma once\nnamespace ashlar::block { class Pool {}; }'
  plant CMakeLists.txt <<<$'set(ASHLAR_PUBLIC_HEADERS\n  ashlar.h  # all of it\n  plan.h
  base/types.h\n  plan/plan.h)'
}

# shared SOURCE: a shared library with the small tree's symbols and those of SOURCE.
shared() {
  { echo '#include <ashlar/ashlar.h>'; echo '#include <vector>'; echo '#include <ashlar/plan.h>'
    echo 'int ashlar::size() { return 1; } ashlar::Bytes ashlar::plan::Plan::peak() { return {}; }'
    echo "$1"; } >"$scratch/library.cc"
  "$compiler" -std=c++20 -shared -fPIC -O0 "-I$copy/src" "-I$generated" "$scratch/library.cc" \
    -o "$scratch/library.so"
  libraries=("$scratch/library.so")
}

# expect NAME TEXT: the small tree is refused with one finding, which contains TEXT.
expect() {
  local said
  if said=$(check "$copy"); then
    echo "not noticed: $1"; missed=1
  elif [[ $said != *"$2"* || $said != *$'\n'"1 findings" ]]; then
    echo "$1: expected '$2', reported: $said"; missed=1
  fi
  sound_tree
  libraries=()
}

self_test() {
  missed=0
  copy=$scratch/tree
  mkdir "$copy"
  sound_tree
  shared ''
  if ! check "$copy"; then echo "a sound tree is refused"; missed=1; fi
  cp "$scratch/library.so" "$scratch/sound.so"
  shared 'int helper() { return 1; }'
  libraries=("$scratch/sound.so" "$scratch/library.so")
  expect "a symbol of the second library" "not of namespace ashlar: helper()"
  plant base/late.h <<<$'#pragma once\nnamespace ashlar { std::string name(); }'
  expect "a header that lacks an include" "src/ashlar/base/late.h: does not compile"
  plant base/twice.h <<<$'namespace ashlar { struct Twice {}; }'
  expect "a header without a guard" "src/ashlar/base/twice.h: its first line of code is not"
  plant base/late.cc <<<$'#include <string>\n#include <ashlar/base/late.h>'
  plant base/late.h <<<$'#pragma once\nnamespace ashlar { std::string name(); }'
  expect "a header that its source includes late" "src/ashlar/base/late.h: does not compile"
  plant base/extra.h <<<$'#pragma once'
  plant plan/plan.h <<<$'#pragma once\n#include <ashlar/base/extra.h>
#include <ashlar/base/types.h>'
  expect "a public header's include" "base/extra.h: not installed, but included by plan/plan.h"
  plant base/extra.h <<<$'#pragma once'
  sed -i 's/base\/types.h/& base\/extra.h/' "$copy/src/ashlar/CMakeLists.txt"
  expect "a header nobody includes" "base/extra.h: installed, but not included"
  sed -i 's/base\/types.h/& base\/gone.h/' "$copy/src/ashlar/CMakeLists.txt"
  expect "a header that is gone" "base/gone.h: in ASHLAR_PUBLIC_HEADERS, but there is no such file"
  sed -i 's/base\/types.h/& base\/spin_lock.h/' "$copy/src/ashlar/CMakeLists.txt"
  echo '#include <ashlar/base/spin_lock.h>' >>"$copy/src/ashlar/plan/plan.h"
  expect "an internal header" "base/spin_lock.h: public, but base/spin_lock.h is internal"
  echo 'namespace ashlar::block { class Pool; }' >>"$copy/src/ashlar/plan/plan.h"
  expect "an internal class declared again" "src/ashlar/plan/plan.h:5: names an internal"
  echo '#define POOL ashlar::block::Pool' >>"$copy/src/ashlar/plan/plan.h"
  expect "an internal room" "src/ashlar/plan/plan.h:5: names an internal"
  echo 'namespace ashlar { class SpinLock; }' >>"$copy/src/ashlar/ashlar.h"
  expect "an internal class by its header" "src/ashlar/ashlar.h:3: names an internal"
  plant hidden/room.h <<<$'#pragma once'
  echo 'namespace ashlar { namespace hidden { class Room; } }' >>"$copy/src/ashlar/ashlar.h"
  expect "a room without a public header" "src/ashlar/ashlar.h:3: names an internal"
  echo 'using plan::Planner;' >>"$copy/src/ashlar/ashlar.h"
  printf '%s\n' 'namespace ashlar::plan {' 'class Planner final {};' 'struct Spare {' '};' '}' >>"$copy/src/ashlar/plan/plan.h"
  sed -i 's/^#include.*types.h>/&\n#include <ashlar\/plan\/plan.h>/' "$copy/src/ashlar/ashlar.h"
  expect "a type that the main header does not name" "src/ashlar/plan/plan.h: <ashlar/ashlar.h> does not name Spare"
  shared 'int helper() { return 1; }'
  expect "a symbol of the global namespace" "not of namespace ashlar: helper()"
  shared 'extern "C" int helper() { return 1; }'
  expect "a C symbol" "not of namespace ashlar: helper"
  shared 'namespace { struct Own {}; } template class std::vector<int>;'
  if check "$copy" >"$scratch/said" || ! grep -q 'namespace ashlar: std::' "$scratch/said"; then
    echo "not noticed: instantiations of std templates"; missed=1
  fi
  shared 'namespace ashlar::block { int merge(Bytes) { return 1; } }'
  expect "a function of an internal room" "no public header names block: ashlar::block::merge(ashl"
  shared 'namespace ashlar { struct Cache { int f(); }; int Cache::f() { return 1; } }'
  expect "an internal class" "no public header names Cache: ashlar::Cache::f()"
  echo "set(ASHLAR_PUBLIC_HEADERS)" >"$copy/src/ashlar/CMakeLists.txt"
  if check "$copy" >/dev/null; then echo "not noticed: an empty list"; missed=1; fi
  return $missed
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$(cd "$(dirname "$0")/../.." && pwd)
does=check
while (( $# > 0 )); do
  case $1 in
    --cxx) compiler=$2; shift ;;
    --include) generated=$2; shift ;;
    --library) libraries+=("$2"); shift ;;
    --public) does=public_list ;;
    --self-test) does=self_test ;;
    *) root=$(cd "$1" && pwd) ;;
  esac
  shift
done
if [[ -z $generated ]]; then
  generated=$scratch/generated
  mkdir -p "$generated/ashlar/base"
  printf '#pragma once\n#define ASHLAR_API\n' >"$generated/ashlar/base/export.h"
  printf '#pragma once\n' >"$generated/ashlar/base/version.h"
fi
"$does" "$root"
