#!/usr/bin/env bash
# Holds the scripts of ci/ and bench/ to what a caller expects of arguments.
#
#   scripts_test.sh [ROOT]         runs copies of the scripts of the tree at ROOT (default: that of this file)
#   scripts_test.sh --self-test    plants the faults that these rules had, and expects each to be reported
#
#   (a) ci/test refuses a stage that it does not have before it builds or installs anything, whatever stands before it;
#   (b) a relative path is the caller's: ci/demo, ci/fuzz, ci/tidy, ci/chroot, bench/stalls;
#   (c) ci/demo refuses a trace that cannot be read before it builds anything;
#   (d) a build's progress is a line that is drawn over on a terminal, and in a log neither that nor a control character.
#   (e) ci/test and ci/demo say how long they took, and whether their build was cold or warm.
#
# The scripts run in a copy of ci/ and bench/ where the compilers, ci/setup and the programs are stand-ins that note how they
# were called. Exit 77 (skipped) where `script`, which makes a terminal, is missing.
#
# Imitates: ci/test release asna, which built for minutes and then ended in "command not found"; ci/demo ../my.trace, which
# looked in the project's folder. Does not prove that the real programs read what they are given.
set -euo pipefail

command -v script >/dev/null || { echo "script (bsdutils) is missing"; exit 77; }

# stand_in PATH BODY: a script that notes its call in $CALLS and then does BODY.
stand_in() {
  mkdir -p "$(dirname "$1")"
  printf '#!/usr/bin/env bash\necho "%s $*" >>"$CALLS"\n%s\n' "$(basename "$1")" "$2" >"$1"
  chmod +x "$1"
}

# lay_out ROOT: the copy, in $there/tree, and the stand-ins; the caller's folder is $there/caller.
lay_out() {
  rm -rf "${there:?}"/*
  mkdir -p "$there/tree/build" "$there/caller/in" "$there/bin"
  cp -r "$1/ci" "$1/bench" "$1/fuzz" "$there/tree/"
  : >"$CALLS"
  : >"$there/caller/mine.trace"
  stand_in "$there/tree/ci/setup" ""
  stand_in "$there/bin/cmake" 'for n in 1 2; do echo "[$n/2] Building CXX object"; done'
  stand_in "$there/bin/git" 'exit 1'
  stand_in "$there/bin/ctest" ""
  # 90 of 100 compilations between its first call and its second are answered.
  stand_in "$there/bin/ccache" 'calls=$(grep -c "^ccache" "$CALLS"); echo "direct_cache_hit $((calls * 90))"; echo "cache_miss $((calls * 10))"'
  stand_in "$there/tree/ci/docs" ""
  stand_in "$there/bin/clang-tidy-19" ""
  stand_in "$there/tree/build/demo/ashlar" ""
  stand_in "$there/tree/build/fuzz/fuzz/plan_file" ""
  stand_in "$there/tree/build/bench/bench/ashlar_stalls" ""
}

# called SCRIPT ARGUMENT...: runs the copy's script from the caller's folder; its output is in $there/said, its status in $code.
called() {
  : >"$CALLS"
  code=0
  (cd "$there/caller" && PATH="$there/bin:$PATH" "$there/tree/$1" "${@:2}") >"$there/said" 2>&1 </dev/null || code=$?
}

wrong=0
report() { echo "$1"; wrong=1; }
# was_called WORDS WHAT: whether a stand-in was called with these words.
was_called() { grep -qF -- "$1" "$CALLS" || report "$2: no call with $1"; }

check() {
  local root=$1 stage first target line words
  wrong=0
  lay_out "$root"
  for first in "" release; do
    for stage in asna "release asan" ""; do
      called ci/test ${first:+"$first"} "$stage"
      if (( code != 2 )); then report "ci/test $first '$stage': exit $code, not 2"; fi
      if [[ -s $CALLS ]]; then report "ci/test $first '$stage': began to work"; fi
      if ! grep -q "no stage $stage; the stages: release asan" "$there/said"; then report "ci/test $first '$stage': says nothing"; fi
    done
  done

  for line in "ci/test docs" "ci/demo mine.trace"; do
    read -ra words <<<"$line"
    called "${words[@]}"
    if ! grep -qE '^time: [0-9]+ min [0-9]+ s on [0-9]+ cores, warm: 90 of 100 compilations from ccache$' "$there/said"; then
      report "$line: does not say how long it took"
    fi
  done
  called ci/test docs
  if [[ $(tail -n 1 "$there/said") != "1 passed, 0 failed, 0 skipped" ]]; then report "ci/test docs: another last line"; fi

  called ci/demo mine.trace
  was_called "$there/caller/mine.trace" "ci/demo mine.trace"
  if grep -q $'\r\|\e' "$there/said"; then report "ci/demo: control characters in a log"; fi
  called ci/demo none.trace
  if (( code != 3 )); then report "ci/demo none.trace: exit $code, not 3"; fi
  if [[ -s $CALLS ]]; then report "ci/demo none.trace: began to work"; fi
  (cd "$there/caller" && PATH="$there/bin:$PATH" TERM=xterm \
    script -qec "$there/tree/ci/demo mine.trace" /dev/null >"$there/said" </dev/null) || report "ci/demo: fails on a terminal"
  if ! grep -qF '[2/2] building the ashlar command' "$there/said"; then report "ci/demo: no progress on a terminal"; fi

  target=plan_file
  called ci/fuzz $target 1 corpus -dict=my.dict
  was_called "$there/caller/corpus -dict=$there/caller/my.dict" "ci/fuzz $target 1 corpus -dict=my.dict"
  called bench/stalls --rows=mine.rows
  was_called "--rows=$there/caller/mine.rows" "bench/stalls --rows=mine.rows"
  called ci/chroot --base in true
  if (( EUID == 0 )) && ! grep -qF "$there/caller/in" "$there/said"; then report "ci/chroot --base in: not the caller's"; fi
  mkdir -p "$there/tree/src" "$there/tree/build/tidy"
  echo '{"file": "elsewhere"}' >"$there/tree/build/tidy/compile_commands.json"
  called ci/tidy ../tree/src/a.cc
  if ! grep -q 'src/a.cc: not compiled' "$there/said" || grep -q '\.\./tree' "$there/said"; then
    report "ci/tidy ../tree/src/a.cc: not the caller's"
  fi
  if (( wrong == 0 )); then echo "arguments are read as their caller means them"; fi
  return $wrong
}

# planted WHAT FILE SED: the tree with one fault must be reported.
planted() {
  local copy=$faulty
  rm -rf "${copy:?}"/*
  cp -r "$here/ci" "$here/bench" "$here/fuzz" "$copy/"
  sed -i -E "$3" "$copy/$2"
  if cmp -s "$copy/$2" "$here/$2"; then echo "$1: the plant does not apply"; return 1; fi
  if (check "$copy") >/dev/null; then echo "not noticed: $1"; return 1; fi
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
there=$(mktemp -d)
faulty=$(mktemp -d)
export CALLS=$there.calls
trap 'rm -rf "$there" "$faulty" "$CALLS"' EXIT
case ${1:-} in
  --self-test)
    missed=0
    planted "stages are not checked" ci/test 's/^  if ! grep -qxF.*/  if false; then true; fi/' || missed=1
    planted "stages are checked after the setup" ci/test 's/^all=/ci\/setup; all=/' || missed=1
    planted "the time is not said" ci/lib.sh '/^  echo "time: /d' || missed=1
    planted "paths are the root's" ci/lib.sh 's/echo "\$caller\/\$1"/echo "$PWD\/$1"/' || missed=1
    planted "ci/demo does not look at its traces" ci/demo 's/^  if \[\[ ! -r .*/  true/' || missed=1
    planted "ci/fuzz keeps a flag's path" ci/fuzz 's/dict artifact_prefix/artifact_prefix/' || missed=1
    planted "progress in a log" ci/lib.sh 's/^is_terminal\(\) .*/is_terminal() { true; }/' || missed=1
    planted "no progress on a terminal" ci/lib.sh 's/^is_terminal\(\) .*/is_terminal() { false; }/' || missed=1
    if (( missed == 0 )); then echo "every planted fault is reported"; fi
    exit $missed ;;
  *) check "$(cd "${1:-$here}" && pwd)" ;;
esac
