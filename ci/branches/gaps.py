"""Lists the branch sides and the conditions of src/ashlar that no suite reaches, and compares them with the lists of reasons.

  gaps.py --export EXPORT.json --unreachable FOLDER --out FIGURES.json ROOM...
                       EXPORT.json is what `llvm-cov export` writes, with its functions; ROOM is a folder of sources. Prints one
                       line a gap, `file:line: function: condition: what is missing`; writes the figures to FIGURES.json. Exit 1
                       when a gap is not listed, or a listed one is covered or gone; 2 when a line of a list is malformed.
  gaps.py --self-test  judges a small export with one gap of every sort; exit 77 (skipped) where llvm-cxxfilt-19 is missing

Two sorts of gap:
- a side of a branch, "never true" or "never false". A case of a switch is a branch that is true when it is taken;
- "no pair": a condition of && or || whose sides are both reached, but no two runs of the decision differ in this condition and in
  the result while the others are the same or not evaluated (MC/DC, by clang 19's -fcoverage-mcdc). A condition that lacks a side
  has no pair either; that is one gap, the side.

A template, or a function in a header, is compiled many times. A side counts as reached when any copy reaches it. A pair has to be
found within one instantiation; its copies in several programs count together, as llvm-profdata merges them.

What clang finds constant (a condition in `if constexpr`, sizeof(T) == 4 of one T) is no branch. clang 19 measures no pairs in
a decision with a call whose argument is a decision again; such a decision is an error, so that none comes unnoticed. Nor does it in
the condition of a ?: whose value is a class; the conditions of such a decision are gaps until a bool has its value.

A line of a list is `key TAB reason`. A reason that begins with "not reached yet:" says which test is missing; such a gap counts as
`not_yet`, and not as unreachable. The key is file|function|condition|what is missing|n, where n counts the same words within the
function, from 0. It has no line numbers, so that a list survives moved lines.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys

FIELDS = 5  # of a key
# Sorts of regions, as in LLVM's CounterMappingRegion::RegionKind.
EXPANSION = 1
NOT_YET = "not reached yet:"
MCDC_BRANCH = 6  # a branch that is a condition of a measured decision
SIDES = ("never true", "never false")
NO_PAIR = "no pair"


def demangled(names):
    plain = [name.rpartition(":")[2] for name in names]  # a local function's name has its file before it
    shown = subprocess.run(["llvm-cxxfilt-19"], input="\n".join(plain), capture_output=True, text=True, check=True)
    return dict(zip(names, shown.stdout.splitlines()))


def without_brackets(text, opening, closing):
    kept, depth = [], 0
    for c in text:
        depth += c == opening
        if depth == 0:
            kept.append(c)
        depth -= c == closing and depth > 0
    return "".join(kept)


def short_name(name):
    """Class::function of a demangled name; a lambda is function::lambda."""
    name = re.sub(r"\[abi:\w+\]|\(anonymous namespace\)::", "", name)
    name = re.sub(r"'lambda\d*'|\$_\d+", "LAMBDA", name)
    name = re.sub(r"operator(<=>|<<|>>|->|<=|>=|<|>|\(\))", lambda m: "operator" + m[1].translate(
        {ord(c): f"_{i}" for i, c in enumerate("<>()")}), name)
    name = without_brackets(without_brackets(name, "(", ")"), "<", ">")
    name = re.sub(r"( const)?( noexcept)?&*$", "", name.strip())
    parts = name.rsplit(" ", 1)[-1].split("::")
    if "LAMBDA" in parts:
        parts = parts[:parts.index("LAMBDA")] + ["lambda"]
    parts = [p for p in parts if p not in ("ashlar", "v0", "block", "cache", "const")]
    return "::".join(parts[-3 if parts[-1] == "lambda" else -2:])


class Sources:
    """The texts of places. A place is (file, line, column, last line, column, n); n is 0, or counts the conditions of the macro that
    is called there, from 1."""

    def __init__(self, root):
        self.root, self.files = root, {}

    def text(self, place):
        file, line, column, line_end, column_end, n = place
        if file not in self.files:
            with open(os.path.join(self.root, file), encoding="utf-8") as source:
                self.files[file] = source.read().splitlines()
        lines = [text.partition("//")[0] for text in self.files[file]]
        words = " ".join(cut(lines, line - 1, column - 1, line_end - 1, column_end - 1))
        if n > 0:
            words = macro_condition(words + " ".join(cut(lines, line_end - 1, column_end - 1, len(lines) - 1, None)), n)
        return re.sub(r"\s+", " ", words).strip()

    def is_operand(self, place):
        """True if && or || is beside the place."""
        self.text(place)
        lines = [text.partition("//")[0] for text in self.files[place[0]]]
        before = " ".join([*lines[max(0, place[1] - 3):place[1] - 1], lines[place[1] - 1][:place[2] - 1]])
        behind = " ".join([lines[place[3] - 1][place[4] - 1:], *lines[place[3]:place[3] + 2]])
        return bool(re.search(r"(&&|\|\|)[\s(!]*$", before) or re.match(r"[\s)]*(&&|\|\|)", behind))


def cut(lines, line, column, line_end, column_end):
    if line == line_end:
        return [lines[line][column:column_end]]
    return [lines[line][column:], *lines[line + 1:line_end], lines[line_end][:column_end]]


def macro_condition(text, n):
    """NAME(first argument), or `condition n of` it when the argument has && or ||."""
    opened, depth = text.index("("), 0
    for i in range(opened, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0 or (depth == 1 and text[i] == ","):
            words = text[:i].strip() + ")"
            return f"condition {n} of {words}" if re.search(r"&&|\|\|", words) else words
    return text[:opened]


class Coverage:
    """What the functions of an export say about the files of some rooms, by place."""

    def __init__(self, export, root, rooms):
        self.rooms = tuple(r.rstrip("/") + "/" for r in rooms)
        self.sides = collections.defaultdict(lambda: [0, 0])  # place -> how often true, how often false
        self.pairs = {}  # place of a condition -> has a pair in an instantiation
        self.functions = collections.defaultdict(set)  # place -> mangled names
        self.unclear = set()  # places of decisions some of whose conditions are not identified
        self.unmeasured = set()  # places of branches that may be conditions without a record
        decisions = []
        for function in export["data"][0]["functions"]:
            files = [os.path.relpath(f, root) for f in function["filenames"]]
            if any(f.startswith(self.rooms) for f in files):
                decisions += self.add(function, files)
        self.add_decisions(decisions)

    def add(self, function, files):
        """Yields (decision, places of its conditions, which have a pair)."""
        calls = {region[6]: (region[5], *region[:4]) for region in function["regions"] if region[7] == EXPANSION}
        in_file = collections.Counter()
        conditions = collections.defaultdict(list)  # (number of the file, its lines and columns) -> places
        for *span, true, false, number, _, sort in function["branches"]:
            in_file[number] += 1
            place, file = (*span, 0), number
            while file in calls:  # a macro's text is a file by itself, within the one that calls it
                file, place = calls[file][0], (*calls[file][1:], in_file[number])
            place = (files[file], *place)
            if not place[0].startswith(self.rooms):
                continue
            self.sides[place][0] += true
            self.sides[place][1] += false
            self.functions[place].add(function["name"])
            if sort == MCDC_BRANCH:
                conditions[number].append((span, place))
            else:
                self.unmeasured.add(place)
        # A record does not name its file: of records with one span, the first is the first file's.
        used = collections.Counter()
        for *span, _, _, covered in function["mcdc_records"]:
            begin, end = span[:2], span[2:]
            inside = [[p for s, p in conditions[number] if begin <= s[:2] and s[2:] <= end] for number in sorted(conditions)]
            inside = [places for places in inside if places]
            if len(inside) > used[tuple(span)]:
                places = inside[used[tuple(span)]]
                yield (places[0][0], *span, 0), places, covered
            used[tuple(span)] += 1

    def add_decisions(self, decisions):
        # What is constant in one instantiation is missing among its branches, but has an element in `covered`. The elements of a
        # fold expression share a place.
        known = collections.defaultdict(set)
        for decision, places, _ in decisions:
            known[decision].update(places)
        for decision, places, covered in decisions:
            conditions = sorted(known[decision])
            if len(places) == len(covered):
                conditions = places
            elif len(conditions) != len(covered):
                self.unclear.add(decision)
                continue
            for place, has_pair in zip(conditions, covered):
                if place in places:
                    self.pairs[place] = self.pairs.get(place, False) or has_pair

    def gaps(self, sources):
        """(place, function, condition, what is missing), in the order of the sources."""
        names = demangled(sorted({n for names in self.functions.values() for n in names}))
        for place in sorted(self.sides):
            function = min(short_name(names[n]) for n in self.functions[place])
            missing = [side for side, count in zip(SIDES, self.sides[place]) if count == 0]
            if not missing and self.pairs.get(place) is False:
                missing = [NO_PAIR]
            for what in missing:
                yield place, function, sources.text(place), what

    def conditions_without_record(self, sources):
        return sorted(p for p in self.unmeasured if p not in self.pairs and p[5] == 0 and sources.is_operand(p))

    def counts(self, file=None):
        sides = [count > 0 for place, counts in self.sides.items() if file in (None, place[0]) for count in counts]
        pairs = [has_pair for place, has_pair in self.pairs.items() if file in (None, place[0])]
        return {"branches": figure(sides), "mcdc": figure(pairs)}


def figure(reached):
    covered, count = sum(reached), len(reached)
    return {"count": count, "covered": covered, "notcovered": count - covered, "percent": 100.0 * covered / max(1, count)}


def with_keys(gaps):
    seen = collections.Counter()
    for place, function, condition, what in gaps:
        words = f"{place[0]}|{function}|{condition}|{what}"
        yield f"{words}|{seen[words]}", (place, function, condition, what)
        seen[words] += 1


def reasons_of(folder):
    """Key -> (where it is listed, is unreachable). Ends the program when a line is malformed."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".tsv"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                where = f"{folder}/{name}:{number}"
                if not line.strip() or line.startswith("#"):
                    continue
                key, tab, reason = line.rstrip("\n").partition("\t")
                if not tab or not reason.strip() or "\t" in reason or not is_key(key):
                    print(f"{where}: a key (file|function|condition|what is missing|n), a tab and a reason are needed", file=sys.stderr)
                    sys.exit(2)
                if key in found:
                    print(f"{where}: listed before, at {found[key][0]}", file=sys.stderr)
                    sys.exit(2)
                found[key] = where, not reason.startswith(NOT_YET)
    return found


def is_key(key):
    # The condition may have | in it.
    fields = key.split("|")
    return (len(fields) >= FIELDS and all(f.strip() for f in (fields[0], fields[1], fields[2])) and fields[-1].isdigit() and
            fields[-2] in (*SIDES, NO_PAIR))


def judge(coverage, sources, reasons, out):
    """Prints what is not listed, and what the lists have too much. Returns the fields `branches`, `mcdc` and `unreachable`."""
    gaps = dict(with_keys(coverage.gaps(sources)))
    listed = {key: gap for key, gap in gaps.items() if key in reasons}
    for key, (place, function, condition, what) in gaps.items():
        if key not in listed:
            print(f"{place[0]}:{place[1]}: {function}: {condition}: {what}   {key}", file=out)
    gone = sorted(reasons.keys() - gaps.keys())
    for key in gone:
        print(f"{reasons[key][0]}: listed, but reached or no longer there: {key}", file=out)
    for place in sorted(coverage.unclear):
        print(f"{place[0]}:{place[1]}: which conditions are constant is not known: {sources.text(place)}", file=out)
    without_record = coverage.conditions_without_record(sources)
    for place in without_record:
        print(f"{place[0]}:{place[1]}: clang measures no pairs in this decision: {sources.text(place)}", file=out)
    unreachable = {key: gap for key, gap in listed.items() if reasons[key][1]}
    sides = sum(what in SIDES for *_, what in unreachable.values())
    # A condition that lacks a side is excused by the side's line; by both lines, if it lacks both.
    excused = {place for place, *_ in unreachable.values() if coverage.pairs.get(place) is False}
    excused -= {gap[0] for key, gap in gaps.items() if key not in unreachable}
    return {**coverage.counts(),
            "unreachable": {"sides": sides, "conditions": len(excused), "listed": len(unreachable),
                            "not_yet": len(listed) - len(unreachable), "not_listed": len(gaps) - len(listed),
                            "gone": len(gone), "not_measured": len(coverage.unclear) + len(without_record)}}


def is_good(fields):
    return all(fields["unreachable"][name] == 0 for name in ("not_listed", "gone", "not_measured"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--export")
    parser.add_argument("--unreachable")
    parser.add_argument("--out")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("rooms", nargs="*")
    arguments = parser.parse_args()
    if arguments.self_test:
        import gaps_self_test  # imports this file
        return gaps_self_test.self_test()
    with open(arguments.export, encoding="utf-8") as file:
        export = json.load(file)
    coverage = Coverage(export, os.getcwd(), arguments.rooms)
    fields = judge(coverage, Sources(os.getcwd()), reasons_of(arguments.unreachable), sys.stdout)
    files = sorted({place[0] for place in coverage.sides})
    with open(arguments.out, "w", encoding="utf-8") as file:
        json.dump({**fields, "files": {name: coverage.counts(name) for name in files}}, file, indent=2)
    sys.exit(0 if is_good(fields) else 1)


if __name__ == "__main__":
    main()
