"""Ashlar as PyTorch's CPU allocator.

    import ashlar_torch_cpu as ashlar
    ashlar.install("build/release/src/torch_cpu/libashlar_torch_cpu.so")
    steps = ashlar.Steps()
    for batch in loader:
        with steps:
            train(batch)

The first two steps are the program's own, the third is recorded and planned, the fourth is compared with the recording
(steps.difference), and the others are served by the plan from one piece of memory. A step that differs from the recording is
served too; stats() counts what did not come from the plan.
"""

import contextlib
import ctypes

RECORD, VALIDATE, REPLAY = 1, 2, 3


class Stats(ctypes.Structure):
    """The figures of ashlar_torch_cpu.h, which explains them."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "allocations allocated_bytes reserved_bytes reserved_bytes_peak refused_frees "
            "step_allocations step_unmanaged live_bytes_peak lower_bound_bytes plan_bytes "
            "served fallbacks skipped late"
        ).split()
    ]


_library = None


def _checked(code):
    if code != 0:
        raise RuntimeError(f"Ashlar: {_library.ashlar_torch_cpu_error().decode()}")


def install(path):
    """Loads the library at `path` and makes it the CPU allocator of this process's tensors."""
    global _library
    import torch  # noqa: F401  (the library uses its libc10)

    _library = ctypes.CDLL(path)
    _library.ashlar_torch_cpu_difference.restype = ctypes.c_char_p
    _library.ashlar_torch_cpu_error.restype = ctypes.c_char_p
    _library.ashlar_torch_cpu_end.argtypes = [ctypes.c_uint32]
    _checked(_library.ashlar_torch_cpu_install())


@contextlib.contextmanager
def step(kind, plan_ms=2000):
    """A step of that kind: RECORD, VALIDATE or REPLAY. It ends as well where its body raises an exception."""
    _checked(_library.ashlar_torch_cpu_begin(kind))
    try:
        yield
    finally:
        _checked(_library.ashlar_torch_cpu_end(plan_ms))


def difference():
    """How the validated step first differs from the recorded one; "" if it does not."""
    return _library.ashlar_torch_cpu_difference().decode()


def stats():
    """The figures now."""
    out = Stats()
    _checked(_library.ashlar_torch_cpu_get_stats(ctypes.byref(out)))
    return out


def reset_peaks():
    """Begins the peaks anew."""
    _checked(_library.ashlar_torch_cpu_reset_peaks())


def trim():
    """Gives idle memory back to the kernel."""
    _checked(_library.ashlar_torch_cpu_trim())


class Steps:
    """A context for each step of a loop: see the head of this module."""

    def __init__(self, warm_up=2, plan_ms=2000):
        self._warm_up = warm_up
        self._plan_ms = plan_ms
        self._count = 0
        self._open = None
        self.difference = None  # of the validated step, once there is one

    def __enter__(self):
        kinds = [RECORD, VALIDATE]
        at = self._count - self._warm_up
        self._count += 1
        if at >= 0:
            self._open = step(kinds[at] if at < len(kinds) else REPLAY, self._plan_ms)
            self._open.__enter__()
        return self

    def __exit__(self, *exception):
        opened, self._open = self._open, None
        if opened is not None:
            opened.__exit__(*exception)
        if self._count == self._warm_up + 2:
            self.difference = difference()
        return False
