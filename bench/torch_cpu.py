"""Step time and peak resident memory of PyTorch's trainings (props/torch_cpu/train.py), by what allocates.

    torch_cpu.py BUILD [ROUNDS]

Prints for each model and each way to allocate `model way time_ratio peak_ratio plan_ratio`: the median over the rounds of the
median step's time, and of the peak of resident memory, to those of glibc's allocator (PyTorch's own on this system) in the same
round; and the plan's peak to the most bytes that its allocations ask for at a time. One thread, so that the threads of the
products' library do not decide. The order of the ways changes from round to round. One round's ratio may be 5 % off (glibc's to
itself, too), so that what is compared with a target is measured in every round, and the others in every third.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

TRAIN = pathlib.Path(__file__).parents[1] / "props/torch_cpu/train.py"
OTHERS_EVERY = 3
STEPS = {"gpt2": 14, "resnet": 24, "lstm_padded": 24}


def preloaded(name):
    found = sorted(pathlib.Path("/usr/lib").glob(f"*/{name}.so.*"))
    return {"LD_PRELOAD": str(found[0])} if found else None


def run(model, arguments, environment):
    one = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run([sys.executable, str(TRAIN), model, str(STEPS[model]), *arguments], check=True,
                          capture_output=True, text=True, env={**os.environ, **one, **environment})
    result = json.loads(done.stdout)
    figures = result.get("stats", {})
    plan = figures["plan_bytes"] / figures["live_bytes_peak"] if figures.get("plan_bytes") else 0
    return statistics.median(result["seconds"]), result["resident_bytes_peak"], plan, result["losses"]


def main():
    library = str(pathlib.Path(sys.argv[1]) / "src/torch_cpu/libashlar_torch_cpu.so")
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    ways = {"glibc": ([], {}), "jemalloc": ([], preloaded("libjemalloc")), "mimalloc": ([], preloaded("libmimalloc")),
            "ashlar": ([library], {}), "planned": ([library, "--planned"], {})}
    ways = {name: way for name, way in ways.items() if way[1] is not None}
    for model in STEPS:
        ratios = {name: [] for name in ways}
        for number in range(rounds):
            names = list(ways)
            names = names[number % len(names):] + names[:number % len(names)]
            if number % OTHERS_EVERY != 0:
                names = [name for name in names if name in ("glibc", "planned")]
            results = {name: run(model, *ways[name]) for name in names}
            assert len({tuple(each[3]) for each in results.values()}) == 1, "losses differ"
            for name, (seconds, peak, plan, _) in results.items():
                ratios[name].append((seconds / results["glibc"][0], peak / results["glibc"][1], plan))
        for name, each in ratios.items():
            print(model, name, *(f"{statistics.median(column):.4f}" for column in zip(*each)), flush=True)


main()
