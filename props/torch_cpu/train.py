"""Trains one of the models for some steps, with PyTorch's CPU allocator or Ashlar's, and prints one line of JSON: the losses as
the bits of doubles, the seconds of each step after the fourth, the peak of resident memory over those, Ashlar's figures.

    train.py MODEL STEPS [LIBRARY] [--planned]

LIBRARY: libashlar_torch_cpu.so. --planned: the steps are recorded, planned and replayed (ashlar_torch_cpu.Steps).
"""

import contextlib
import json
import pathlib
import struct
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).parents[2] / "src/torch_cpu"), str(pathlib.Path(__file__).parent)]

import torch  # noqa: E402

import ashlar_torch_cpu as ashlar  # noqa: E402
import models  # noqa: E402


UNSTEADY = 4  # steps before memory and time are measured: Ashlar's warm-up, its recording, its validation


def resident_peak():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main():
    arguments = [each for each in sys.argv[1:] if each != "--planned"]
    is_planned = len(arguments) != len(sys.argv) - 1
    model, count = arguments[0], int(arguments[1])
    if len(arguments) > 2:
        ashlar.install(arguments[2])
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    run = models.MODELS[model]()
    steps = ashlar.Steps() if is_planned else contextlib.nullcontext()
    losses, seconds = [], []
    for number in range(count):
        if number == UNSTEADY:
            pathlib.Path("/proc/self/clear_refs").write_text("5")  # begins the peak of resident memory anew
        began = time.perf_counter()
        with steps:
            loss = run(number)
        seconds.append(time.perf_counter() - began)
        losses.append(struct.pack("<d", loss).hex())
    result = {"model": model, "losses": losses, "last_loss": loss, "seconds": seconds[UNSTEADY:]}
    result["resident_bytes_peak"] = resident_peak()
    if len(arguments) > 2:
        figures = ashlar.stats()
        result["stats"] = {name: getattr(figures, name) for name, _ in figures._fields_}
    if is_planned:
        result["difference"] = steps.difference
    print(json.dumps(result))


main()
