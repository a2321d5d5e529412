#!/usr/bin/env python3
"""Replays a trace with PyTorch's own CUDA allocator.

    ashlar_gpu_bench --events TRACE | torch_replay.py [--repeats N]

Prints ns per event, the median of the repeats; what a loop without the allocator takes is taken off each. Exit 77, with one
line that says why, where there is no PyTorch with CUDA, or no GPU.
"""
import statistics
import sys
import time


def read_events():
    events = []
    for line in sys.stdin:
        size, slot, stream = map(int, line.split())
        events.append((size, slot, stream))
    return events


def replay(events, slots, streams, allocate, free):
    live = [0] * slots
    begun = time.perf_counter_ns()
    for size, slot, stream in events:
        if size == 0:
            free(live[slot])
        else:
            live[slot] = allocate(size, streams[stream])
    return (time.perf_counter_ns() - begun) / len(events)


def main():
    repeats = int(sys.argv[2]) if sys.argv[1:2] == ["--repeats"] else 7
    events = read_events()
    slots = 1 + max(slot for _, slot, _ in events)
    count = 1 + max(stream for _, _, stream in events)
    try:
        import torch
    except ImportError:
        print("SKIPPED: python3 has no PyTorch")
        return 77
    if not torch.cuda.is_available():
        print("SKIPPED: PyTorch finds no GPU")
        return 77
    torch.cuda.init()
    owners = [torch.cuda.Stream() for _ in range(count)]
    streams = [owner.cuda_stream for owner in owners]
    allocate = torch._C._cuda_cudaCachingAllocator_raw_alloc
    free = torch._C._cuda_cudaCachingAllocator_raw_delete
    replay(events, slots, streams, allocate, free)
    times = []
    for _ in range(repeats):
        alone = replay(events, slots, streams, max, abs)  # built-in functions of as many arguments
        times.append(replay(events, slots, streams, allocate, free) - alone)
        torch.cuda.synchronize()
    print(f"{statistics.median(times):.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
