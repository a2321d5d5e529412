"""Runs the suites of a mutated tree against its mutants. DIR has mutants.json, of rewrite.py.

  run.py record DIR BUILD                     which case reaches which mutant, and how long it takes: DIR/reach.json
  run.py kill DIR [--share ROOM=0.5,...] [--budget SECONDS] [--only FILE.jsonl] [--apart]
                                              appends one line a mutant to DIR/results.jsonl; goes on where it was cut
  run.py forget DIR [--share ROOM=0.5,...]    takes the survivors of these rooms out of DIR/results.jsonl, so that kill runs them
                                              again; default: of all rooms
  run.py report DIR --equivalent FOLDER --commit ID [--apart]
                                              the figures per room to reports/rows, the survivors to DIR/survivors.txt
A case is one GoogleTest case, or one whole program that is none. Cases that fail or are over 30 s without a mutant are left out and
named. A mutant is killed by a case that fails, dies, or takes ten times as long. Cases are tried in the order of (kills a second so
far) times (the part of all that the case reaches which lies in the mutant's file: the file's own tests come before those that
reach everything), until the mutant is dead or `budget` seconds of cases (as they take without a mutant) are spent.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import os
import resource
import subprocess
import sys
import threading
import time

from map_bytes import MAP_BYTES

SUITES_LEFT_OUT = ("consumer_", "bench_", "headers", "house_", "contract", "format", "layers", "links", "locks", "names", "readme",
                   "sizes")
CASE_SECONDS_MAX = 30.0
KILLED_PERCENT_MIN = 95.0
RUNS_WITHOUT_MUTANT = 3


def limit():
    # A mutant may allocate without end; reservations of addresses are not counted by RLIMIT_DATA.
    resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.setsid()


def run(case, mutant, seconds):
    """Exit status, or "hang"."""
    environment = dict(os.environ, ASHLAR_MUTANT=str(mutant), **case.get("environment", {}))
    process = subprocess.Popen(case["command"], env=environment, cwd=case["folder"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit)
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return "hang"
    finally:
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass
        process.wait()


def cases_of(build):
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    for test in json.loads(listing.stdout)["tests"]:
        if test["name"].startswith(SUITES_LEFT_OUT) or not test.get("command"):
            continue
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        base = {"suite": test["name"], "folder": properties.get("WORKING_DIRECTORY", build),
                "environment": dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))}
        names = []
        if test["command"][0].startswith(build) and "/fuzz/" not in test["command"][0]:
            shown = subprocess.run([test["command"][0], "--gtest_list_tests"], capture_output=True, text=True, timeout=60)
            group = ""
            for line in shown.stdout.splitlines() if shown.returncode == 0 else []:
                word = line.split("#")[0].rstrip()
                if line.startswith("  ") and group:
                    names.append(group + word.strip())
                elif word.endswith(".") and " " not in word:
                    group = word
        for name in names or [""]:
            command = [*test["command"], f"--gtest_filter={name}"] if name else test["command"]
            yield dict(base, name=f"{test['name']}:{name}" if name else test["name"], command=command)


def record(folder, build):
    found, left_out = [], []
    path = f"{folder}/reach.bin"

    def one(case, slot):
        file = f"{path}.{slot}"
        with open(file, "wb") as out:
            out.write(bytes(MAP_BYTES))
        begin = time.monotonic()
        status = run(case, f"record:{file}", 2 * CASE_SECONDS_MAX)
        case["seconds"] = round(time.monotonic() - begin, 3)
        if status not in (0,) or case["seconds"] > CASE_SECONDS_MAX:
            left_out.append(f"{case['name']}: {status}, {case['seconds']} s")
            return
        with open(file, "rb") as reach:
            case["reaches"] = [i for i, byte in enumerate(reach.read()) if byte]
        os.remove(file)
        found.append(case)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, *zip(*[(case, i) for i, case in enumerate(cases_of(build))])))
    with open(f"{folder}/reach.json", "w", encoding="utf-8") as file:
        json.dump(found, file)
    print(f"{len(found)} cases, {sum(c['seconds'] for c in found):.0f} s; left out: {'; '.join(left_out) or 'none'}")


def key_of(mutant):
    return "|".join(str(mutant[k]) for k in ("file", "function", "sort", "old", "new", "nth"))


def number_alike(mutants):
    """Mutants with the same words in one function are told apart by their order: the key survives moved lines."""
    seen = collections.Counter()
    for m in mutants:
        words = (m["file"], m["function"], m["sort"], m["old"], m["new"])
        m["nth"] = seen[words]
        seen[words] += 1


def room_of(mutant):
    return mutant["file"].split("/")[2]


class Killer:
    def __init__(self, folder, budget):
        with open(f"{folder}/reach.json", encoding="utf-8") as file:
            self.cases = json.load(file)
        self.budget, self.lock = budget, threading.Lock()
        self.spent, self.kills = collections.Counter(), collections.Counter()
        self.by_mutant = collections.defaultdict(list)
        with open(f"{folder}/mutants.json", encoding="utf-8") as file:
            file_of = {m["id"]: m["file"] for m in json.load(file)}
        for case in self.cases:
            case["files"] = collections.Counter(file_of[id_] for id_ in case["reaches"])
            for id_ in case["reaches"]:
                self.by_mutant[id_].append(case)

    def ordered(self, mutant):
        room = room_of(mutant)
        with self.lock:
            def worth(case):
                kills, spent = self.kills[room, case["name"]], self.spent[room, case["name"]]
                focus = case["files"][mutant["file"]] / len(case["reaches"])
                return (kills + 0.3) / (spent + 3 * case["seconds"] + 0.05) * (0.02 + focus)
            return sorted(self.by_mutant[mutant["id"]], key=worth, reverse=True)

    def judge(self, mutant):
        left, tried, room = self.budget, 0, room_of(mutant)
        for case in self.ordered(mutant):
            if case["seconds"] > left:
                continue
            left -= case["seconds"]
            tried += 1
            begin = time.monotonic()
            status = run(case, mutant["id"], 10 * case["seconds"] + 10)
            with self.lock:
                self.spent[room, case["name"]] += time.monotonic() - begin
                self.kills[room, case["name"]] += status != 0
            if status != 0:
                return dict(mutant, verdict="killed", by=case["name"], status=status, tried=tried)
        return dict(mutant, verdict="survived" if self.by_mutant[mutant["id"]] else "unreached", tried=tried)


def kill(arguments):
    folder = arguments.folder
    with open(f"{folder}/mutants.json", encoding="utf-8") as file:
        mutants = json.load(file)
    number_alike(mutants)
    share = parts_of(arguments.share)
    chosen = [m for m in mutants if m["apart"] == arguments.apart and
              place_of(m, arguments.salt) < share.get(room_of(m), 0 if share else 1)]
    if arguments.only:
        with open(arguments.only, encoding="utf-8") as file:
            keys = {key_of(json.loads(line)) for line in file}
        chosen = [m for m in mutants if key_of(m) in keys]
    chosen.sort(key=lambda m: hashlib.sha256(key_of(m).encode()).hexdigest())
    out_path, done = arguments.out or f"{folder}/results.jsonl", set()
    if os.path.exists(out_path):
        with open(out_path, encoding="utf-8") as file:
            done = {key_of(json.loads(line)) for line in file}
    chosen = [m for m in chosen if key_of(m) not in done]
    killer, begin, verdicts = Killer(folder, arguments.budget), time.monotonic(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, open(out_path, "a", encoding="utf-8") as out:
        for number, result in enumerate(pool.map(killer.judge, chosen), 1):  # in the order of `chosen`
            verdicts[result["verdict"]] += 1
            out.write(json.dumps(result) + "\n")
            out.flush()
            if number % 50 == 0 or number == len(chosen):
                print(f"{number} of {len(chosen)}, {dict(verdicts)}, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    write_flaky(folder, killer, arguments)


def write_flaky(folder, killer, arguments):
    """The cases that killed and fail without a mutant too, under the same load: their kills do not count."""
    with open(arguments.out or f"{folder}/results.jsonl", encoding="utf-8") as file:
        killers = {json.loads(line).get("by") for line in file}
    cases = [case for case in killer.cases if case["name"] in killers for _ in range(RUNS_WITHOUT_MUTANT)]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        statuses = list(pool.map(lambda case: run(case, 0, 10 * case["seconds"] + 10), cases))
    flaky = sorted({case["name"] for case, status in zip(cases, statuses) if status != 0})
    with open(f"{folder}/flaky.json", "w", encoding="utf-8") as file:
        json.dump(flaky, file)
    print(f"{len(killers)} cases killed; of these fail without a mutant: {', '.join(flaky) or 'none'}", file=sys.stderr)


def equivalents_of(folder):
    """Keys of the lines `key TAB reason` of the folder's files."""
    found = set()
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line.startswith("#"):
                    continue
                key, tab, reason = line.rstrip("\n").partition("\t")
                if not tab or not reason.strip():
                    sys.exit(f"{folder}/{name}:{number}: a key, a tab and a reason are needed")
                found.add(key)
    return found


def place_of(mutant, salt):
    """From 0 to 1: a share of 0.25 takes the mutants below 0.25."""
    return int(hashlib.sha256((salt + key_of(mutant)).encode()).hexdigest()[:8], 16) / 2**32


def parts_of(share):
    return {room: float(part) for room, part in (word.split("=") for word in share.split(",") if word)}


def forget_survivors(folder, share):
    with open(f"{folder}/results.jsonl", encoding="utf-8") as file:
        results = file.readlines()
    with open(f"{folder}/flaky.json", encoding="utf-8") as file:
        flaky = set(json.load(file))

    def is_kept(result):
        is_forgotten_room = not share or room_of(result) in share
        return not is_forgotten_room or (result["verdict"] == "killed" and result["by"] not in flaky)

    kept = [line for line in results if is_kept(json.loads(line))]
    with open(f"{folder}/results.jsonl", "w", encoding="utf-8") as file:
        file.writelines(kept)
    print(f"{len(results) - len(kept)} of {len(results)} are to be run again", file=sys.stderr)


def share_run(results, room, salt):
    """The least share, in hundredths, with which kill takes all of the room's that were run."""
    return math.ceil(100 * max(place_of(r, salt) for r in results if room_of(r) == room)) / 100


def report(arguments):
    folder = arguments.folder
    with open(f"{folder}/mutants.json", encoding="utf-8") as file:
        made = collections.Counter(room_of(m) for m in json.load(file) if m["apart"] == arguments.apart)
    with open(f"{folder}/results.jsonl", encoding="utf-8") as file:
        results = [r for r in map(json.loads, file) if r["apart"] == arguments.apart]
    with open(f"{folder}/flaky.json", encoding="utf-8") as file:
        flaky = set(json.load(file))
    equivalent, rows, is_good, survivors = equivalents_of(arguments.equivalent), [], True, []
    for room in sorted({room_of(r) for r in results}):
        counts = collections.Counter()
        for r in (r for r in results if room_of(r) == room):
            is_killed = r["verdict"] == "killed" and r["by"] not in flaky
            if is_killed and key_of(r) in equivalent:
                print(f"{key_of(r)}: listed as equivalent, but {r['by']} kills it", file=sys.stderr)
                is_good = False
            verdict = "killed" if is_killed else "equivalent" if key_of(r) in equivalent else "survived"
            counts[verdict] += 1
            if verdict == "survived":
                survivors.append(f"{r['file']}:{r['line']}: {r['function']}: {r['sort']}: {r['old']}   ->   {r['new']}"
                                 f"   [{r['verdict']}, {r['tried']} cases]   {key_of(r)}")
        run_count = sum(counts.values())
        percent = 100.0 * counts["killed"] / max(1, run_count - counts["equivalent"])
        met = None if arguments.apart else percent >= KILLED_PERCENT_MIN
        is_good &= met is not False
        rows.append({"figure": f"mutants of src/ashlar/{room}" + (": locks and memory orders" if arguments.apart else ""),
                     "value": f"{percent:.1f} % killed ({counts['killed']} of {run_count} run, {counts['equivalent']} equivalent; "
                              f"{made[room]} made)",
                     "target": "" if arguments.apart else f">= {KILLED_PERCENT_MIN:.0f} %", "met": met,
                     "command": "ci/mutants" + (" --apart" if arguments.apart else "") +
                                ("" if run_count == made[room] else f" --share {room}={share_run(results, room, arguments.salt):.2f}"),
                     "commit": arguments.commit,
                     "made": made[room], "run": run_count, **{k: counts[k] for k in ("killed", "equivalent", "survived")}})
        print(f"{room:8} {rows[-1]['value']}")
    with open(f"{folder}/survivors.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(sorted(survivors)) + "\n")
    name = "mutants_apart" if arguments.apart else "mutants"
    path = f"reports/rows/{name}.json"
    named = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            named = {row["figure"]: row for row in json.load(file)}
    named.update((row["figure"], row) for row in rows)  # rooms that were not run keep theirs
    with open(path, "w", encoding="utf-8") as file:
        json.dump([named[figure] for figure in sorted(named)], file, indent=2)
        file.write("\n")
    sys.exit(0 if is_good else 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("record", "kill", "forget", "report"))
    parser.add_argument("folder")
    parser.add_argument("build", nargs="?")
    parser.add_argument("--share", default="")
    parser.add_argument("--salt", default="")
    parser.add_argument("--budget", type=float, default=40)
    parser.add_argument("--only")
    parser.add_argument("--out")
    parser.add_argument("--equivalent")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if arguments.what == "record":
        record(arguments.folder, arguments.build)
    elif arguments.what == "kill":
        kill(arguments)
    elif arguments.what == "forget":
        forget_survivors(arguments.folder, parts_of(arguments.share))
    else:
        report(arguments)


if __name__ == "__main__":
    main()
