"""The bytes of the file in which a run records what it reaches, byte N for mutant N: kMutantsMax of switch.h."""
import os
import re
import sys

SWITCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "switch.h")


def map_bytes():
    with open(SWITCH, encoding="utf-8") as file:
        found = re.search(r"\bkMutantsMax = (\d+);", file.read())
    if not found:
        sys.exit(f"{SWITCH}: no kMutantsMax")
    return int(found[1])


MAP_BYTES = map_bytes()
