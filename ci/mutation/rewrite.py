"""Rewrites the files of a copied tree, in place, so that every mutant is in them behind its switch.

  rewrite.py TREE COMPILE_COMMANDS OUT.json ROOM...

TREE is a copy of the project, COMPILE_COMMANDS its compile database; OUT.json gets the list of mutants. The lines in
TREE/mutants.refused ("file:line"; ci/mutants collects them from the compiler's errors) get no mutants. A header is read once, with
the first source that includes it. Only files whose text changes are written.
"""
import json
import os
import sys

from clang.cindex import Config, CursorKind as K, Index, TranslationUnit

import operators as op
from map_bytes import MAP_BYTES

Config.set_library_file("/usr/lib/llvm-19/lib/libclang-19.so.1")


def prune(f, cursor):
    """The parts of the tree where nothing is done at run time."""
    if cursor.kind in (K.STATIC_ASSERT, K.ENUM_DECL, K.TEMPLATE_NON_TYPE_PARAMETER, K.TEMPLATE_TYPE_PARAMETER, K.FIELD_DECL):
        return cursor.kind != K.FIELD_DECL or b"[" in f.text[slice(*f.span(cursor))] or cursor.is_bitfield()
    if cursor.kind == K.VAR_DECL:
        start = cursor.extent.start.offset
        return b"constexpr" in f.text[start:cursor.extent.end.offset].split(b"=")[0].split(b"{")[0]
    if cursor.kind == K.IF_STMT:
        return f.text[cursor.extent.start.offset:cursor.extent.start.offset + 13].startswith(b"if constexpr")
    return False


def visit(f, cursor, inside):
    if cursor.kind in op.FUNCTIONS:
        if not cursor.is_definition() or b"consteval" in f.text[slice(*f.span(cursor))][:40]:
            return
        outer, f.function = f.function, cursor.spelling.split("<")[0]
        for child in cursor.get_children():
            visit(f, child, True)
        f.function = outer
        return
    if prune(f, cursor):
        if cursor.kind == K.IF_STMT:  # its branches are ordinary statements
            for child in list(cursor.get_children())[1:]:
                visit(f, child, inside)
        return
    if cursor.kind == K.CASE_STMT:
        op.statements(f, cursor)
        for child in list(cursor.get_children())[1:]:
            visit(f, child, inside)
        return
    if inside:
        mutate(f, cursor)
    for child in cursor.get_children():
        visit(f, child, inside)


def mutate(f, cursor):
    # What is listed first stands further outside: a node before its children.
    if cursor.kind in (K.INTEGER_LITERAL, K.CXX_BOOL_LITERAL_EXPR):
        op.literal(f, cursor)
    elif cursor.kind == K.BINARY_OPERATOR:
        op.binary(f, cursor)
    elif cursor.kind == K.COMPOUND_ASSIGNMENT_OPERATOR:
        op.compound(f, cursor)
    elif cursor.kind == K.CALL_EXPR:
        op.binary(f, cursor)
        op.swaps(f, cursor)
        op.order(f, cursor)
    elif cursor.kind == K.DECL_STMT:
        op.guard(f, cursor)
    op.condition(f, cursor)
    op.statements(f, cursor)


def apply(text, edits):
    """Replacements of tokens never overlap; wraps nest. At one place the wider wrap's prefix comes first, its suffix last."""
    events = []
    for start, end, prefix, suffix, order in edits:
        if prefix is None:
            events.append((start, 1, 0, 0, end, suffix))
        else:
            events.append((start, 2, -(end - start), order, start, prefix))
            if suffix:
                events.append((end, 0, end - start, -order, end, suffix))
    out, at = [], 0
    for place, _, _, _, to, new in sorted(events, key=lambda e: e[:4]):
        if place < at:
            raise ValueError(f"edits overlap at {place}: {text[place - 40:place + 40]!r}")
        out += [text[at:place], new]
        at = to
    out.append(text[at:])
    return b"".join(out)


def macros_of(unit):
    found = {}
    for cursor in unit.cursor.get_children():
        if cursor.kind == K.MACRO_INSTANTIATION and cursor.location.file:
            found.setdefault(cursor.location.file.name, []).append((cursor.extent.start.offset, cursor.extent.end.offset))
    return found


def main():
    tree, commands, out, rooms = sys.argv[1].rstrip("/"), sys.argv[2], sys.argv[3], sys.argv[4:]
    with open(commands, encoding="utf-8") as file:
        database = json.load(file)
    refused = set()
    if os.path.exists(f"{tree}/mutants.refused"):
        with open(f"{tree}/mutants.refused", encoding="utf-8") as file:
            refused = set(file.read().split("\n"))
    wanted = tuple(f"{tree}/src/ashlar/{room}/" for room in rooms)
    index, done, mutants, next_id = Index.create(), {}, [], 1
    for entry in sorted(database, key=lambda e: e["file"]):
        source = entry["file"]
        if not source.startswith(f"{tree}/src/ashlar/") or source in done:
            continue
        include = [a for a in entry["command"].split() if a.startswith("-I")]
        unit = index.parse(source, ["-std=c++20", "-DASHLAR_STATIC_DEFINE", "-DASHLAR_ASSERTIONS=1", *include],
                           options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        errors = [d for d in unit.diagnostics if d.severity >= 3]
        if errors:
            sys.exit(f"rewrite.py: {source}: {errors[0]}")
        macros, files = macros_of(unit), {}
        for cursor in unit.cursor.get_children():
            name = cursor.location.file.name if cursor.location.file else ""
            if not name.startswith(wanted) or name in done or cursor.kind in (K.MACRO_INSTANTIATION, K.MACRO_DEFINITION,
                                                                             K.INCLUSION_DIRECTIVE):
                continue
            if name not in files:
                with open(name, "rb") as file:
                    files[name] = op.File(name[len(tree) + 1:], file.read(), macros.get(name, []), next_id, refused)
            f = files[name]
            f.next_id = next_id
            visit(f, cursor, False)
            next_id = f.next_id
        for name, f in files.items():
            f.next_id = next_id
            op.requires(f)
            next_id = f.next_id
            done[name] = f
            mutants += f.mutants
    if next_id > MAP_BYTES:  # the numbers begin at 1
        sys.exit(f"rewrite.py: {next_id - 1} mutants, and kMutantsMax of switch.h has room for {MAP_BYTES - 1}: raise it")
    for name, f in done.items():
        new = apply(f.text, f.edits)
        if f.edits:
            new = b"#include <ashlar_mutation/switch.h>\n#line 1\n" + new
        with open(name, "wb") as file:
            file.write(new)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(mutants, file, indent=0)
    print(f"{len(mutants)} mutants in {len(done)} files")


if __name__ == "__main__":
    main()
