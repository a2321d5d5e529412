"""Which mutants a source file has: walks clang's syntax tree and lists edits.

An edit keeps the text around it: it inserts a prefix and a suffix, or replaces the text of one token. Edits nest, so every mutant
of a file can be in one text at the same time, each behind its switch (switch.h). Nothing inserts a line break: a compiler's error
names the line of the original.

Sorts of mutants ("sort" in the list):
  compare    shifted bound; negated                     < becomes <= and >=
  logic      a condition's part dropped                 a && b becomes a; b
  condition  a condition that is no comparison negated  if (f()) becomes if (!f())
  statement  a statement dropped                        calls, assignments, ++, return of nothing, break, continue
  literal    a number one more, one less; a bool turned
  arithmetic the opposite operator                      + becomes -, & becomes |, << becomes >>, += becomes -=
  swap       two neighbouring arguments of one type swapped
  require    a caller's-misuse check dropped; negated   ASHLAR_REQUIRE
  lock       a lock guard never taken, an unlock or lock dropped      } only under a race, counted apart
  order      a memory order weakened to relaxed                       } ("apart" in the list)
"""
import re

from clang.cindex import CursorKind as K, TypeKind

COMPARE = {"<": ("less", 2), "<=": ("less_equal", 2), ">": ("greater", 2), ">=": ("greater_equal", 2),
           "==": ("equal", 1), "!=": ("not_equal", 1)}
COMPARE_TEXT = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": ("add", "-"), "-": ("subtract", "+"), "*": ("multiply", "+"), "/": ("divide", "*"), "%": ("remainder", "/"),
              "&": ("bit_and", "|"), "|": ("bit_or", "&"), "<<": ("shift_left", ">>"), ">>": ("shift_right", "<<")}
COMPOUND = {"+=": "-=", "-=": "+=", "*=": "/=", "|=": "&=", "&=": "|=", "<<=": ">>=", ">>=": "<<="}
FUNCTIONS = {K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.CONVERSION_FUNCTION, K.FUNCTION_TEMPLATE}
DROPPED = {K.CALL_EXPR, K.COMPOUND_ASSIGNMENT_OPERATOR, K.CSTYLE_CAST_EXPR, K.CXX_STATIC_CAST_EXPR, K.BREAK_STMT, K.CONTINUE_STMT,
           K.CXX_DELETE_EXPR}
GUARD = re.compile(r"(std::(lock_guard|unique_lock|scoped_lock)|(\w+::)*\w*Guard)\b")
LITERAL = re.compile(rb"(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlLzZ]*$")
ORDERS = re.compile(rb"std::memory_order_(acquire|release|acq_rel|seq_cst)")
NS = b"::ashlar_mutation::"


class File:
    """The edits and mutants of one file."""

    def __init__(self, path, text, macros, first_id, refused):
        self.path, self.text, self.macros, self.next_id, self.refused = path, text, macros, first_id, refused
        self.edits, self.mutants, self.function, self.order, self.is_refused = [], [], "", 0, False

    def span(self, cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def line(self, at):
        return self.text.count(b"\n", 0, at) + 1

    def plain(self, start, end):
        """The range holds no macro."""
        return 0 <= start < end <= len(self.text) and not any(a < end and start < b for a, b in self.macros)

    def wrap(self, start, end, prefix, suffix):
        if self.is_refused:
            return
        self.order += 1
        self.edits.append((start, end, prefix, suffix, self.order))

    def replace(self, start, end, new):
        if self.is_refused:
            return
        self.order += 1
        self.edits.append((start, end, None, new, self.order))

    def mutant(self, sort, start, end, old, new, apart=False):
        """Lists one mutant, whose edits follow; returns its number. On a line that the compiler refused there is none, but its
        number is used up, so that the other files stay as they are."""
        id_ = self.next_id
        self.next_id += 1
        self.is_refused = f"{self.path}:{self.line(start)}" in self.refused
        if self.is_refused:
            return id_
        squeeze = lambda t: re.sub(r"\s+", " ", t if isinstance(t, str) else t.decode())[:120]
        self.mutants.append({"id": id_, "file": self.path, "line": self.line(start), "function": self.function,
                             "sort": sort, "old": squeeze(old), "new": squeeze(new), "apart": apart})
        return id_

    def number(self, id_):
        return str(id_).encode()


def between(f, left, right):
    """The operator between two operands, and its place."""
    a, b = left.extent.end.offset, right.extent.start.offset
    gap = f.text[a:b]
    if b"//" in gap or b"/*" in gap:
        return "", a, a
    token = gap.strip()
    at = a + gap.find(token) if token else a
    return token.decode(), at, at + len(token)


def operands(cursor):
    """(left, right) of a binary operator, built-in or overloaded."""
    children = list(cursor.get_children())
    if cursor.kind in (K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR) and len(children) == 2:
        return children
    if cursor.kind == K.CALL_EXPR and cursor.spelling.startswith("operator") and len(children) == 3:
        return [children[0], children[2]]
    return None


def call(f, cursor, left, right, at, to, name, id_):
    start, end = f.span(cursor)
    f.wrap(start, end, NS + name.encode() + b"(" + f.number(id_) + b", ", b")")
    f.replace(at, to, b", ")


def binary(f, cursor):
    pair = operands(cursor)
    if not pair or not f.plain(*f.span(cursor)):
        return
    left, right = pair
    op, at, to = between(f, left, right)
    old = f.text[slice(*f.span(cursor))]
    place = f.span(cursor)
    if op in COMPARE:
        name, count = COMPARE[op]
        ids = [f.mutant("compare", *place, old, f"{op} -> {new}") for new in COMPARE_TEXT[op][:count]]
        call(f, cursor, left, right, at, to, name, ids[0])
    elif op in ("&&", "||"):
        for side, start, end in ((left, *f.span(left)), (right, *f.span(right))):
            id_ = f.mutant("logic", start, end, f.text[start:end], "true" if op == "&&" else "false")
            if op == "&&":
                f.wrap(start, end, b"(" + NS + b"on(" + f.number(id_) + b") || (", b"))")
            else:
                f.wrap(start, end, b"(!" + NS + b"on(" + f.number(id_) + b") && (", b"))")
    elif op in ARITHMETIC and has_opposite(op, left, right):
        name, other = ARITHMETIC[op]
        call(f, cursor, left, right, at, to, name, f.mutant("arithmetic", *place, old, f"{op} -> {other}"))


def class_of(cursor):
    """number, pointer, array, bytes (our Bytes and Address), or None."""
    while cursor.kind == K.UNEXPOSED_EXPR and len(list(cursor.get_children())) == 1:
        cursor = next(cursor.get_children())
    canonical = cursor.type.get_canonical()
    if TypeKind.CHAR_U.value <= canonical.kind.value <= TypeKind.LONGDOUBLE.value or canonical.kind == TypeKind.DEPENDENT:
        return "number"
    if canonical.kind == TypeKind.POINTER:
        return "pointer"
    return "bytes" if canonical.spelling.endswith(("::Bytes", "::Address")) else None


def has_opposite(op, left, right):
    classes = class_of(left), class_of(right)
    if classes == ("number", "number"):
        return True
    return op in ("+", "-") and classes in (("pointer", "number"), ("bytes", "bytes")) or classes == ("bytes", "bytes") and op == "+"


def condition(f, cursor):
    """Negates the condition of an if, while, for or ?: that is neither a comparison nor a conjunction."""
    children = list(cursor.get_children())
    if cursor.kind == K.CONDITIONAL_OPERATOR or cursor.kind in (K.IF_STMT, K.WHILE_STMT):
        found = next((c for c in children if c.kind.is_expression() or c.kind == K.VAR_DECL or c.kind == K.DECL_STMT), None)
        # An if with an initialiser has it first.
        if cursor.kind == K.IF_STMT and found is not None and not found.kind.is_expression():
            rest = [c for c in children[children.index(found) + 1:] if c.kind.is_expression()]
            found = rest[0] if rest and b";" in f.text[found.extent.end.offset - 1:rest[0].extent.start.offset] else None
    elif cursor.kind == K.DO_STMT:
        found = children[-1]
    else:
        return
    if found is None or not found.kind.is_expression() or not f.plain(*f.span(found)):
        return
    inner = found
    while inner.kind in (K.UNEXPOSED_EXPR, K.PAREN_EXPR) and len(list(inner.get_children())) == 1:
        inner = next(inner.get_children())
    pair = operands(inner)
    if pair and between(f, *pair)[0] in (*COMPARE, "&&", "||"):
        return
    start, end = f.span(found)
    id_ = f.mutant("condition", start, end, f.text[start:end], "negated")
    f.wrap(start, end, b"(" + NS + b"on(" + f.number(id_) + b") != static_cast<bool>(", b"))")


def droppable(f, statement):
    s = statement
    while s.kind == K.UNEXPOSED_EXPR and len(list(s.get_children())) == 1:
        s = next(s.get_children())
    text = f.text[slice(*f.span(statement))]
    if s.kind == K.UNARY_OPERATOR:
        return b"++" in text or b"--" in text
    if s.kind == K.BINARY_OPERATOR:
        pair = operands(s)
        return pair is not None and between(f, *pair)[0] == "="
    if s.kind == K.RETURN_STMT:
        return text.strip() == b"return"
    if s.kind in (K.CSTYLE_CAST_EXPR, K.CXX_STATIC_CAST_EXPR):
        return b"(" in text[text.find(b")") + 1:]
    return s.kind in DROPPED


def statements(f, cursor):
    """Drops each statement directly below `cursor`."""
    for child in statement_children(cursor):
        start, end = f.span(child)
        if not f.plain(start, end) or not droppable(f, child):
            continue
        text = f.text[start:end]
        apart = re.search(rb"\b(un)?lock(_shared)?\(\)$", text) is not None
        id_ = f.mutant("lock" if apart else "statement", start, end, text, "dropped", apart)
        f.wrap(start, end, b"if (" + NS + b"on(" + f.number(id_) + b")) {} else ", b"")


def statement_children(cursor):
    children = list(cursor.get_children())
    if cursor.kind == K.COMPOUND_STMT:
        return children
    if cursor.kind == K.IF_STMT:
        return [c for c in children[1:] if c.kind != K.COMPOUND_STMT]
    if cursor.kind in (K.WHILE_STMT, K.FOR_STMT, K.CXX_FOR_RANGE_STMT):
        body = max(children, key=lambda c: (c.extent.end.offset, c.extent.start.offset))
        return [body] if body.kind != K.COMPOUND_STMT else []
    if cursor.kind in (K.CASE_STMT, K.DEFAULT_STMT):
        return children[-1:]
    return []


def compound(f, cursor):
    pair = operands(cursor)
    if not pair or not f.plain(*f.span(cursor)):
        return
    op, at, to = between(f, *pair)
    start, end = f.span(cursor)
    if op not in COMPOUND:
        return
    id_ = f.mutant("arithmetic", start, end, f.text[start:end], f"{op} -> {COMPOUND[op]}")
    left = f.text[pair[0].extent.start.offset:pair[0].extent.end.offset]
    right = f.text[pair[1].extent.start.offset:pair[1].extent.end.offset]
    other = left + b" " + COMPOUND[op].encode() + b" " + right
    f.wrap(start, end, b"(" + NS + b"on(" + f.number(id_) + b") ? (" + other + b") : (", b"))")


def literal(f, cursor):
    start, end = f.span(cursor)
    text = f.text[start:end]
    if not f.plain(start, end):
        return
    if cursor.kind == K.CXX_BOOL_LITERAL_EXPR:
        id_ = f.mutant("literal", start, end, text, "false" if text == b"true" else "true")
        f.wrap(start, end, NS + b"flip(" + f.number(id_) + b", ", b")")
    elif LITERAL.match(text):
        zero = re.fullmatch(rb"0[uUlLzZ]*", text) is not None
        id_ = f.mutant("literal", start, end, text, "+ 1")
        if not zero:
            f.mutant("literal", start, end, text, "- 1")
        f.wrap(start, end, NS + (b"literal_zero(" if zero else b"literal(") + f.number(id_) + b", ", b")")


SIMPLE = re.compile(rb"[\w.:>\-\[\]*&]+$")


def swaps(f, cursor):
    if re.fullmatch(r"operator[^=!<>]*=|operator(<<|>>)=", cursor.spelling):  # an assignment needs its left side itself, not a copy
        return
    arguments = list(cursor.get_arguments())
    for a, b in zip(arguments, arguments[1:]):
        if a is None or b is None:
            continue
        ta, tb = a.type.get_canonical(), b.type.get_canonical()
        ra, rb = f.span(a), f.span(b)
        if not (f.plain(*ra) and f.plain(*rb)) or ra[1] > rb[0]:
            continue
        texts = f.text[slice(*ra)], f.text[slice(*rb)]
        if ta.spelling != tb.spelling or texts[0] == texts[1] or not all(SIMPLE.match(t) for t in texts) or class_of(a) is None:
            continue
        id_ = f.mutant("swap", ra[0], rb[1], texts[0] + b", " + texts[1], texts[1] + b", " + texts[0])
        for (start, end), other in ((ra, texts[1]), (rb, texts[0])):
            f.wrap(start, end, b"(" + NS + b"on(" + f.number(id_) + b") ? (" + other + b") : (", b"))")


def order(f, cursor):
    """The whole call again with a relaxed order: the order must be a constant, or the compiler takes the strongest."""
    start, end = f.span(cursor)
    text = f.text[start:end]
    if not f.plain(start, end) or not ORDERS.search(text) or text.count(b"memory_order") > 1:
        return
    if cursor.spelling not in ("load", "store", "exchange", "fetch_add", "fetch_sub", "fetch_or", "fetch_and", "test_and_set",
                               "clear", "test"):
        return
    id_ = f.mutant("order", start, end, text, "relaxed", True)
    f.wrap(start, end, b"(" + NS + b"on(" + f.number(id_) + b") ? (" + ORDERS.sub(b"std::memory_order_relaxed", text) + b") : (",
           b"))")


def guard(f, declaration):
    """`Guard name(lock);` that is not named again: the guard may stay untaken."""
    variables = [c for c in declaration.get_children() if c.kind == K.VAR_DECL]
    if len(variables) != 1:
        return
    start, end = f.span(variables[0])
    text = f.text[start:end]
    match = re.match(rb"(?:const )?((?:\w+::)*\w+(?:<[\w:]+>)?) (\w+)([({])(.*)[)}]$", text, re.S)
    if not match or not GUARD.match(match[1].decode()) or not f.plain(start, end):
        return
    name = match[2]
    close = f.text.find(b"\n}\n", end)
    if re.search(rb"\b" + name + rb"\b", f.text[end:close if close > 0 else len(f.text)].split(b"\n  }\n")[0]):
        return
    id_ = f.mutant("lock", start, end, text, "not taken", True)
    deduced = match[1].startswith(b"std::") and b"<" not in match[1]
    kind = b"decltype(" + match[1] + b"(" + match[4] + b"))" if deduced else match[1]
    head = NS + b"MaybeGuard<" + kind + b"> " + name + b"(" + f.number(id_) + b", "
    f.replace(start, start + match.start(4), head)
    f.replace(start + match.end(4), end, b")")


def requires(f):
    """ASHLAR_REQUIRE(condition, code, why): the tree shows a macro as one place, so its condition is found in the text."""
    for m in re.finditer(rb"\bASHLAR_REQUIRE\(", f.text):
        depth, at = 0, m.end()
        while depth > 0 or f.text[at:at + 1] != b",":
            depth += {b"(": 1, b"{": 1, b"[": 1, b")": -1, b"}": -1, b"]": -1}.get(f.text[at:at + 1], 0)
            at += 1
        text = f.text[m.end():at]
        before = f.text[f.text.rfind(b"\n", 0, m.start()) + 1:m.start()]
        if before.endswith(b"#define ") or b"//" in before or b"<" in text and b"," in text:
            continue
        drop = f.mutant("require", m.end(), at, text, "check dropped")
        negate = f.mutant("require", m.end(), at, text, "negated")
        f.wrap(m.end(), at, NS + b"on(" + f.number(drop) + b") || (" + NS + b"on(" + f.number(negate) + b") != static_cast<bool>(",
               b"))")
