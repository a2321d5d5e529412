"""Trains real models with PyTorch's own CPU allocator and with Ashlar's, and compares.

    torch_test.py BUILD [ASHLAR]

BUILD is a folder with src/torch_cpu/libashlar_torch_cpu.so and props/torch_cpu/libashlar_torch_cpu_checked.so; ASHLAR is the
command `ashlar`. Without BUILD's checked library, the library alone is tested: an ASan build, for one.
Exit 77 where this Python has no PyTorch.

Checked for each model, over 20 steps:
  - the losses are bit-equal, with the plan of a step and without;
  - a step that repeats is served by the plan whole, and as the recording had it;
  - a step that differs (the LSTM's, whose sequences have varying lengths) falls back, and is counted;
  - the plan's peak is within 1 % of the most that its allocations ask for at a time;
  - a run with the judges in it has no divergence, and neither has its sequence of calls under `ashlar check`.
And: workers of a DataLoader, which are forks, allocate tensors; misuse raises an exception that says why.
Does not prove: anything about speed (ci/figures/torch).
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
STEPS = 20
MODELS = ["gpt2", "resnet", "lstm", "lstm_padded"]
failures = []


def expect(is_so, what):
    print(("ok    " if is_so else "FAIL  ") + what, flush=True)
    if not is_so:
        failures.append(what)


def train(model, *arguments, env=None):
    done = subprocess.run(
        [sys.executable, str(HERE / "train.py"), model, str(STEPS), *map(str, arguments)],
        capture_output=True, text=True, env={**os.environ, **(env or {})}, check=False)
    if done.returncode != 0:
        print(done.stderr)
        expect(False, f"{model} {arguments}: exit {done.returncode}")
        return None
    return json.loads(done.stdout)


def check_model(model, library):
    own = train(model)
    plain = train(model, library)
    planned = train(model, library, "--planned")
    if None in (own, plain, planned):
        return own
    expect(len(set(own["losses"])) == STEPS, f"{model}: every step has a loss of its own")
    expect(plain["losses"] == own["losses"], f"{model}: losses bit-equal over {STEPS} steps")
    expect(planned["losses"] == own["losses"], f"{model}: losses bit-equal, planned")
    expect(plain["stats"]["allocations"] > 100 * STEPS, f"{model}: the allocator is Ashlar's")
    figures = planned["stats"]
    expect(figures["refused_frees"] == 0, f"{model}: no free was refused")
    expect(0 < figures["plan_bytes"] <= 1.01 * figures["live_bytes_peak"],
           f"{model}: plan {figures['plan_bytes']} bytes, live peak {figures['live_bytes_peak']}")
    if model == "lstm":
        expect(planned["difference"] != "", f"{model}: {planned['difference']}")
        expect(figures["fallbacks"] > 0 and figures["served"] > 0, f"{model}: {figures['fallbacks']} fallbacks")
    else:
        expect(planned["difference"] == "", f"{model}: a step is as recorded")
        expect(figures["fallbacks"] + figures["skipped"] + figures["late"] == 0, f"{model}: no fallback")
        managed = figures["step_allocations"] - figures["step_unmanaged"]
        expect(figures["served"] == managed * (STEPS - 4), f"{model}: {figures['served']} served")
    return own


def check_judged(model, own, checked, ashlar):
    with tempfile.TemporaryDirectory() as folder:
        ops = pathlib.Path(folder) / "run.ops"
        judged = train(model, checked, "--planned", env={"ASHLAR_TORCH_CPU_OPS": str(ops)})
        if judged is None or own is None:
            return
        expect(judged["losses"] == own["losses"], f"{model}: judged at every call, losses bit-equal")
        if ashlar is None:
            return
        done = subprocess.run([ashlar, "check", str(ops)], capture_output=True, text=True, check=False)
        expect(done.returncode == 0 and " 0 skipped" in done.stdout, f"{model}: {done.stdout.strip()[-80:]}")


WORKERS = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, ashlar_torch_cpu as ashlar
ashlar.install(sys.argv[2])
class Squares(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((1000,), float(i)) ** 2
held = torch.full((1 << 20,), 3.0)
loader = torch.utils.data.DataLoader(Squares(), 8, num_workers=2)
assert sum(batch.sum().item() for batch in loader) == 1000.0 * sum(i * i for i in range(64))
assert held.sum().item() == 3.0 * (1 << 20)
for misuse in (lambda: ashlar.step(ashlar.REPLAY).__enter__(), lambda: ashlar.step(9).__enter__(),
               lambda: torch.empty(1 << 60, dtype=torch.uint8)):
    try:
        misuse()
    except RuntimeError as error:
        assert "Ashlar: " in str(error), error
    else:
        raise AssertionError("no exception")
class Broken(Exception): pass
try:
    with ashlar.step(ashlar.RECORD):
        raise Broken
except Broken:
    pass
with ashlar.step(ashlar.RECORD):  # the one before has ended
    pass
"""


def check_workers(library):
    done = subprocess.run([sys.executable, "-c", WORKERS, str(HERE.parents[1] / "src/torch_cpu"), str(library)],
                          capture_output=True, text=True, timeout=120, check=False)
    expect(done.returncode == 0, "forked workers and misuse" + done.stderr[-2000:])


def main():
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        print("this Python has no PyTorch")
        return 77
    build, ashlar = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    library = build / "src/torch_cpu/libashlar_torch_cpu.so"
    checked = build / "props/torch_cpu/libashlar_torch_cpu_checked.so"
    for model in MODELS:
        own = check_model(model, library)
        if checked.exists() and model != "lstm_padded":  # the calls are those of lstm
            check_judged(model, own, checked, ashlar)
    check_workers(library)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
