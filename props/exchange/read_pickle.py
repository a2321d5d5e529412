"""Reads NAME.pickle with Python's own module, and compares it with NAME.json.

  read_pickle.py NAME...   exit 1, with the reason, if one differs or has an opcode that viewers do not know

Imitates: torch/cuda/_memory_viz.py, which begins with pickle.load().
"""
import json
import pickle
import pickletools
import sys

# What the viewer's own reader knows.
KNOWN = set("""PROTO FRAME STOP MARK EMPTY_DICT EMPTY_LIST EMPTY_TUPLE SETITEM SETITEMS DICT LIST APPEND APPENDS TUPLE
TUPLE1 TUPLE2 TUPLE3 NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE SHORT_BINUNICODE BINPUT
LONG_BINPUT MEMOIZE BINGET LONG_BINGET""".split())
AT_ONCE = 1000


def same(a, b):
    """Equal in type too; a tuple is a list in JSON."""
    if isinstance(a, (list, tuple)):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


def check_opcodes(data):
    """No opcode that viewers do not know; no part of a list longer than AT_ONCE."""
    marks, depth = [], 0
    for opcode, argument, place in pickletools.genops(data):
        if opcode.name not in KNOWN:
            raise ValueError(f"opcode {opcode.name} at byte {place}")
        if opcode.name == "PROTO" and argument != 2:
            raise ValueError(f"protocol {argument}")
        if opcode.name == "MARK":
            marks.append(depth)
        elif opcode.name in ("APPENDS", "SETITEMS"):
            begin = marks.pop()
            if opcode.name == "APPENDS" and depth - begin > AT_ONCE:
                raise ValueError(f"{depth - begin} elements at once at byte {place}")
            depth = begin
        else:
            depth += len(opcode.stack_after) - len(opcode.stack_before)


def check(name):
    with open(name + ".pickle", "rb") as file:
        data = file.read()
    check_opcodes(data)
    with open(name + ".json", encoding="utf-8") as file:
        if not same(pickle.loads(data), json.load(file)):
            raise ValueError("the pickle and the JSON differ")


for path in sys.argv[1:]:
    try:
        check(path)
    except Exception as error:  # whatever it is, it is the answer
        sys.exit(f"{path}: {error}")
