#!/usr/bin/env bash
# Holds every C++ file to .clang-format.
#
#   format_test.sh [ROOT]         checks the tree at ROOT (default: the tree this file is in)
#   format_test.sh --self-test    breaks the format in a copy in several ways and expects each to be
#                                 reported
#
# All .h and .cc files that git tracks are checked, or all outside of build folders where the tree
# is not a git checkout. Two major versions of clang-format lay out the same file differently, so
# one version decides: that of Debian 12. Exit 77 (skipped) where it is missing.
#
# Imitates: a change formatted by hand or by another tool. Does not prove that names or comments
# keep the style.
set -euo pipefail

version=14

# formatter: prints the command of clang-format with that major version; fails if there is none.
formatter() {
  local command
  for command in "clang-format-$version" clang-format; do
    if command -v "$command" >/dev/null &&
       [[ $("$command" --version) == *"version $version."* ]]; then
      echo "$command"
      return
    fi
  done
  return 1
}

# sources ROOT: the C++ files, each ended by a NUL, as paths from ROOT.
sources() {
  if git -C "$1" -c "safe.directory=$1" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    # A file that was deleted but not yet committed is still in the list.
    (cd "$1" && git -c "safe.directory=$1" ls-files -z -- '*.h' '*.cc' |
       while IFS= read -r -d '' file; do if [[ -f $file ]]; then printf '%s\0' "$file"; fi; done)
  else
    (cd "$1" && find . \( -name 'build*' -o -name '.?*' \) -prune -o \
       \( -name '*.h' -o -name '*.cc' \) -type f -printf '%P\0')
  fi
}

check() {
  local root=$1 count said
  if [[ ! -f $root/.clang-format ]]; then echo ".clang-format: missing"; return 1; fi
  count=$(sources "$root" | tr -dc '\0' | wc -c)
  if (( count == 0 )); then echo "$root: no C++ file was looked at"; return 1; fi
  # What is wrong with .clang-format itself is an `error` as well.
  if ! said=$(cd "$root" && sources "$root" | xargs -0 -n 40 -P "$(nproc)" \
       "$format" --style=file --fallback-style=none --dry-run -Werror 2>&1) || [[ -n $said ]]; then
    sed -nE 's/: error: .*clang-format-violations\]$/: not formatted/; /not formatted|rror/p' \
      <<<"$said" | sort -u
    echo "of $count files some are not formatted; to mend one: $format -i FILE"
    return 1
  fi
  echo "$count files are formatted"
}

# expect NAME TEXT: the copy is refused, and what is said contains TEXT.
expect() {
  local said
  if said=$(check "$copy"); then
    echo "not noticed: $1"; missed=1
  elif [[ $said != *"$2"* ]]; then
    echo "$1: reported, but not as $2: $said"; missed=1
  fi
}

self_test() {
  missed=0
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  printf 'BasedOnStyle: Google\nColumnLimit: 100\n' >"$copy/.clang-format"
  mkdir -p "$copy/src/build_up" "$copy/build"
  echo "int x;" >"$copy/src/good.h"
  echo "int  x  ;" >"$copy/build/generated.h"
  if ! check "$copy" >/dev/null; then echo "a formatted tree is refused"; missed=1; fi

  echo "int  two_spaces;" >"$copy/src/planted.h"
  expect "two spaces" "src/planted.h:1:"
  printf 'void f() {\n      return;\n}\n' >"$copy/src/planted.h"
  expect "indentation" "src/planted.h:1:"
  rm "$copy/src/planted.h"
  printf '#include <b>\n#include <a>\n' >"$copy/src/planted.cc"
  expect "the order of includes" "src/planted.cc:1:"
  rm "$copy/src/planted.cc"
  if git init -q "$copy" 2>/dev/null; then
    git -C "$copy" add src
    echo "int  untracked;" >"$copy/src/untracked.h"
    if ! check "$copy" >/dev/null; then echo "an untracked file is looked at"; missed=1; fi
    git -C "$copy" add src
    expect "a tracked file" "src/untracked.h:1:"
    rm "$copy/src/untracked.h"
    if ! check "$copy" >/dev/null; then echo "a deleted file is looked at"; missed=1; fi
    rm -rf "$copy/.git"
  fi
  echo "NoSuchOption: 1" >>"$copy/.clang-format"
  expect "a bad configuration" "NoSuchOption"
  rm "$copy/.clang-format"
  expect "no configuration" ".clang-format: missing"
  echo "BasedOnStyle: Google" >"$copy/.clang-format"
  rm -r "$copy/src"
  expect "nothing to look at" "no C++ file"
  return $missed
}

if ! format=$(formatter); then echo "clang-format $version is missing"; exit 77; fi
here=$(cd "$(dirname "$0")/../.." && pwd)
if [[ ${1:-} == --self-test ]]; then self_test; else check "$(cd "${1:-$here}" && pwd)"; fi
