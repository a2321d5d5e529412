#!/usr/bin/env bash
# Holds every reference from a Markdown page to a file of the project.
#
#   links_test.sh [ROOT]         checks the pages of the tree at ROOT (default: that of this file)
#   links_test.sh --self-test    plants broken and sound references in a small tree and expects
#                                exactly the broken ones to be reported
#
# A link, [text](target) or [name]: target, that names no scheme is relative to its page; its file
# or folder exists, and its #anchor is a heading's (as GitHub writes them), an id, or a line (#L10).
#
# A path in `backticks` is a word that ends in .h .cc .md .sh .ops .cmake .dfy, with or without a
# folder, or a word with a slash whose first folder exists. It exists relative to the root, to the
# page's folder, or to a folder above that; <ashlar/...> relative to src. A bare file name exists in
# some folder. A star, or a part in capitals (TARGET), stands for any name. In a command, only words
# that begin with a folder of the root are paths.
#
# "Exists" means: tracked by git, or new and not ignored; where there is no git, any file that is
# not in a build folder. Not seen: targets with spaces, HTML links, what is between ``` fences.
#
# Imitates: a file is renamed, and a page still sends the reader to the old name. Does not prove
# that the page says what is in the file.
set -euo pipefail

# files ROOT: all files of the tree, as paths from ROOT.
files() {
  if git -C "$1" -c "safe.directory=$1" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    (cd "$1" && git -c "safe.directory=$1" ls-files -co --exclude-standard |
       while IFS= read -r file; do if [[ -e $file ]]; then echo "$file"; fi; done)
  else
    (cd "$1" && find . \( -name 'build*' -o -name .git \) -prune -o -type f -printf '%P\n')
  fi | sort -u
}

# references ROOT PAGE...: `page:line|kind|target` for each reference; kind is link or code.
references() {
  local root=$1
  shift
  (cd "$root" && awk '
    FNR == 1 { fenced = 0 }
    /^[ \t]*(```|~~~)/ { fenced = !fenced; next }
    fenced { next }
    {
      text = $0
      plain = ""
      while (match(text, /`+[^`]+`+/)) {
        code = substr(text, RSTART, RLENGTH)
        gsub(/^`+ ?| ?`+$/, "", code)
        print FILENAME ":" FNR "|code|" code
        plain = plain substr(text, 1, RSTART - 1) "code"
        text = substr(text, RSTART + RLENGTH)
      }
      plain = plain text
      while (match(plain, /\]\([^() \t]+(\([^() \t]*\))?[^() \t]*([ \t]+"[^"]*")?\)/)) {
        target = substr(plain, RSTART + 2, RLENGTH - 3)
        sub(/[ \t].*/, "", target)
        print FILENAME ":" FNR "|link|" target
        plain = substr(plain, RSTART + RLENGTH)
      }
      if (match($0, /^ *\[[^]]+\]:[ \t]+/)) {
        target = substr($0, RSTART + RLENGTH)
        sub(/[ \t].*/, "", target)
        print FILENAME ":" FNR "|link|" target
      }
    }' "$@")
}

# anchors FILE: the anchors of a page, one per line.
anchors() {
  awk '
    /^[ \t]*(```|~~~)/ { fenced = !fenced; next }
    fenced { next }
    {
      text = $0
      while (match(text, /(id|name)="[^"]+"/)) {
        id = substr(text, RSTART, RLENGTH)
        gsub(/^[a-z]+="|"$/, "", id)
        print id
        text = substr(text, RSTART + RLENGTH)
      }
    }
    /^#+ / {
      head = $0
      gsub(/^#+ +| +#*$/, "", head)
      while (match(head, /\]\([^)]*\)/))
        head = substr(head, 1, RSTART - 1) substr(head, RSTART + RLENGTH)
      head = tolower(head)
      gsub(/[][!"#$%&'"'"'()*+,.\/:;<=>?@\\^`{|}~]/, "", head)
      gsub(/ /, "-", head)
      print head (seen[head]++ ? "-" seen[head] - 1 : "")
    }' "$1"
}

# The functions below set a variable instead of printing: a process for each of thousands of
# references would take minutes.

# normal PATH: sets `normal` to PATH without `.`, `x/..` and a slash at the end; fails above the root.
normal() {
  local part parts out=()
  local IFS=/
  read -ra parts <<<"$1"
  for part in ${parts[@]+"${parts[@]}"}; do
    case $part in
      '' | .) ;;
      ..) if (( ${#out[@]} == 0 )); then return 1; fi; unset 'out[-1]' ;;
      *) out+=("$part") ;;
    esac
  done
  normal=${out[*]-}
}

# matches PATTERN: succeeds if a known file or folder matches the pattern.
matches() {
  local one
  for one in "${!known[@]}"; do
    # shellcheck disable=SC2053
    if [[ $one == $1 && ${one//[^\/]/} == "${1//[^\/]/}" ]]; then return 0; fi
  done
  return 1
}

# has PATH: succeeds if PATH exists; a star, or a part in capitals, matches any name.
has() {
  local path pattern
  normal "$1" || return 1
  path=$normal
  if [[ -z $path || -n ${known[$path]-} ]]; then return 0; fi
  if [[ $path != *[A-Z*]* ]]; then return 1; fi
  # A page's name in capitals (README.md) is a name, not a placeholder.
  pattern=$(sed -E '/[A-Z]\.md$/! s#(^|/|_|\.)[A-Z][A-Z0-9]+(/|\.|_|$)#\1*\2#g' <<<"$path")
  [[ $pattern == *'*'* ]] && matches "$pattern"
}

# broken_link PAGE TARGET: sets `why` to the reason if the link is broken.
broken_link() {
  local file=${2%%#*} anchor='' path
  if [[ $2 == *'#'* ]]; then anchor=${2#*#}; fi
  if [[ $file == /* ]]; then why="is absolute"; return; fi
  if [[ -z $file ]]; then
    path=$1
  elif ! normal "${1%"${1##*/}"}$file"; then
    why="leads out of the tree"
    return
  elif path=$normal && [[ -n $path && -z ${known[$path]-} ]]; then
    why="does not exist"
    return
  fi
  if [[ -z $anchor ]]; then return; fi
  if [[ -d $root/$path ]]; then path+=/README.md; fi
  if [[ $anchor =~ ^L([0-9]+)(-L[0-9]+)?$ && -f $root/$path ]]; then
    if (( BASH_REMATCH[1] > $(wc -l <"$root/$path") )); then why="has no such line"; fi
  elif ! [[ -f $root/$path ]] || ! grep -qxF -- "$anchor" <<<"$(anchors "$root/$path")"; then
    why="has no such anchor"
  fi
}

# has_from PAGE PATH: succeeds if PATH exists relative to the root, the page's folder, or a folder
# above that.
has_from() {
  local base=${1%"${1##*/}"}
  while true; do
    if has "$base$2"; then return 0; fi
    if [[ -z $base ]]; then return 1; fi
    base=${base%/}
    base=${base%"${base##*/}"}
  done
}

# has_name NAME: succeeds if a file of some folder has that name, in which a star stands for anything.
has_name() {
  local one
  if [[ $1 != *'*'* ]]; then [[ -n ${named[$1]-} ]]; return; fi
  for one in "${!named[@]}"; do
    # shellcheck disable=SC2053
    if [[ $one == $1 ]]; then return 0; fi
  done
  return 1
}

# broken_code PAGE TEXT: sets `why` to the reason if TEXT is a broken path; not if it is no path, or a
# sound one.
broken_code() {
  local page=$1 text=$2 word
  if [[ $text == *' '* ]]; then  # a command
    for word in $text; do
      if [[ $word == */* && $word =~ ^[A-Za-z0-9_.*/-]+$ && -n ${known[${word%%/*}]-} &&
            $word != build/* ]] && ! has "$word"; then
        why+="${why:+, }($word) does not exist"
      fi
    done
    return
  fi
  if [[ $text =~ ^\<(ashlar/[^\>]*)\>$ ]]; then text=src/${BASH_REMATCH[1]}; fi
  if [[ $text =~ ^\"(.*)\"$ ]]; then text=${BASH_REMATCH[1]}; fi
  text=${text#./}
  if [[ $text =~ ^(.*):[0-9]+$ ]]; then text=${BASH_REMATCH[1]}; fi
  if ! [[ $text =~ ^[A-Za-z0-9_.*/-]+$ ]]; then return; fi
  if [[ $text == [/-]* || $text == .[a-z]* ]]; then return; fi
  if [[ $text != */* ]]; then
    if [[ $text =~ ^[A-Za-z0-9_*-]+\.(h|cc|md|sh|ops|cmake|dfy)$ ]] && ! has_from "$page" "$text" &&
       ! has_name "$text"; then
      why="does not exist in any folder"
    fi
  elif [[ $text =~ \.(h|cc|md|sh|ops|cmake|dfy)$ ]] || has_from "$page" "${text%%/*}"; then
    if ! has_from "$page" "$text"; then why="does not exist"; fi
  fi
}

check() {
  root=$1
  local where kind target why page broken=0 count=0 file
  local -a pages
  unset known named
  declare -gA known=() named=()
  all=$(files "$root")
  mapfile -t pages < <(grep '\.md$' <<<"$all")
  if (( ${#pages[@]} == 0 )); then echo "$root: no page was looked at"; return 1; fi
  while IFS= read -r file; do
    known[$file]=1
    named[${file##*/}]=1
    while [[ $file == */* ]]; do file=${file%/*}; known[$file]=1; done
  done <<<"$all"
  while IFS='|' read -r where kind target; do
    page=${where%:*} why=''
    if [[ $kind == link ]]; then
      if [[ $target =~ ^[a-z][a-z0-9+.-]*: ]]; then continue; fi
      broken_link "$page" "$target"
    else
      broken_code "$page" "$target"
    fi
    count=$((count + 1))
    if [[ -n $why ]]; then
      echo "$where: $target $why"
      broken=$((broken + 1))
    fi
  done < <(references "$root" "${pages[@]}")
  if (( broken > 0 )); then echo "$broken of $count references are broken"; return 1; fi
  echo "$count references of ${#pages[@]} pages hold"
}

# expect BROKEN LINE: a page with that line is refused with one finding if BROKEN is 1, and accepted
# if it is 0.
expect() {
  local said
  printf '# A page\n\n%s\n' "$2" >"$copy/docs/page.md"
  if said=$(check "$copy"); then
    if [[ $1 == 1 ]]; then echo "not noticed: $2"; missed=1; fi
  elif [[ $1 == 0 || $(grep -c '^docs/page.md:3: ' <<<"$said") != 1 ]]; then
    echo "$2: reported: $said"; missed=1
  fi
}

self_test() {
  missed=0
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  mkdir -p "$copy/docs/deep" "$copy/src/ashlar/base" "$copy/ci" "$copy/build"
  printf '# Top\n\n## A `code` head, twice!\n\n## A code head, twice\n\n<a id="here"></a>\n' \
    >"$copy/docs/other.md"
  printf '# Deep\n' >"$copy/docs/deep/README.md"
  touch "$copy/src/ashlar/base/types.h" "$copy/src/ashlar/base/types_test.cc" "$copy/ci/test"
  touch "$copy/build/made.md"
  local broken line
  while IFS=' ' read -r broken line; do expect "$broken" "$line"; done <<'PLANTED'
0 [x](other.md) and [y](deep) and [z](../ci/test), [w](https://example.org/none.md)
0 [x](other.md#a-code-head-twice), [y](other.md#a-code-head-twice-1)
0 [x](other.md#here), [y](#a-page)
0 [x](deep#deep) and [y](other.md#L3) and [z](other.md "title")
0 [name]: ../src/ashlar/base/types.h
0 `src/ashlar/base/types.h`, `types.h`, `<ashlar/base/types.h>`, `ci/test STAGE...`, `other.md`
0 `src/*/base/types_*.cc`, `deep/README.md`, `src/ashlar/base/ROOM_test.cc`, `types.h:12`, `ci/`
0 `and/or`, `-Ici/none`, `a.b`, `/usr/include/none.h`, `std::none`, `ci/test build/none`
1 [x](none.md)
1 [x](../ci/none) beside [y](other.md)
1 [x](../../docs/other.md)
1 [x](/docs/other.md)
1 [x](other.md#no-such-head)
1 [x](#no-such-head)
1 [x](other.md#L99)
1 [x](../build/made.md)
1 [name]: none.md
1 ![picture](none.png)
1 `src/ashlar/base/none.h`
1 `none.h`
1 `none_test.cc` beside `types_test.cc`
1 `<ashlar/base/none.h>`
1 `ci/none`
1 `ci/none STAGE...`
1 `other/folder.md`
1 `src/*/none_*.cc`
1 [`none`](none.md)
PLANTED
  rm -r "${copy:?}"/*
  if check "$copy" >/dev/null; then echo "not noticed: nothing to look at"; missed=1; fi
  return $missed
}

here=$(cd "$(dirname "$0")/../.." && pwd)
if [[ ${1:-} == --self-test ]]; then self_test; else check "$(cd "${1:-$here}" && pwd)"; fi
