r"""The notation of the docstrings as LaTeX: `x_{t+1} = P_X(x_t - eta grad f_t(x_t))` reads well in a terminal, and here it is mathematics.

A name of one letter or of a Greek one is a symbol, `sqrt(...)`, `sum_i`, `grad`, `argmin over X of`, `<a, b>`, `<=` and `<-` are what they
look like, `^` and `_` raise and lower, and any other word is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

GREEK = {
    name: f"\\{name}"
    for name in (
        "alpha", "beta", "gamma", "delta", "eta", "theta", "kappa", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "psi", "omega",
        "zeta", "Phi", "Psi", "Delta", "Gamma", "Lambda", "Sigma", "lambda",
    )
} | {"lam": "\\lambda", "eps": "\\varepsilon"}  # fmt: skip
FUNCTIONS = {
    name: f"\\{name}" for name in ("log", "ln", "exp", "max", "min", "sum")
} | {name: f"\\operatorname{{{name}}}" for name in ("argmin", "argmax", "sign", "dist")} | {"grad": "\\nabla "}  # fmt: skip
MARKS = {"<=": "\\le ", ">=": "\\ge ", "<-": "\\leftarrow ", "->": "\\to ", "+-": "\\pm ", "...": "\\ldots ", "*": "\\cdot "}
TOKEN = re.compile(
    r"(?P<code>`[^`]+`)|(?P<mark><=|>=|<-|->|\+-|\.\.\.|\*)|(?P<word>[A-Za-z]+(?:'[a-z]+)?)|(?P<number>\d+(?:\.\d+)?(?:e-\d+)?)|(?P<space>\s+)|(?P<other>.)"
)
RELATION = re.compile(r"(?<![<>])(=|<=|>=|<-)(?!\S*\})")


def closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` closes."""
    depth, pairs = 0, {"(": ")", "{": "}"}
    for i in range(start, len(text)):
        depth += (text[i] == text[start]) - (text[i] == pairs[text[start]])
        if depth == 0:
            return i
    return len(text) - 1


def is_symbol(word: str) -> bool:
    """Whether a word is a symbol or a function, not text."""
    return len(word) == 1 or word in GREEK or word in FUNCTIONS


def formula(text: str) -> str:
    r"""One line of notation as LaTeX.

    >>> formula("x_{t+1} = P_X(x_t - eta_t grad f_t(x_t))")
    'x_{t+1} = P_{X}(x_{t} - \\eta_{t} \\nabla  f_{t}(x_{t}))'
    >>> formula("Q <- sqrt(2 (t+1)) Q after p_t")
    'Q \\leftarrow  \\sqrt{2 (t+1)} Q \\text{ after }p_{t}'
    """
    text = re.sub(r"arg(min|max) over (\w+) of", r"arg\1_{x in \2}", text.strip())
    return "".join(_pieces(text)).strip()


def _pieces(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        assert found is not None  # the last alternative takes any character
        kind, token, at = found.lastgroup, found.group(0), found.end()
        if kind == "code":
            yield f"\\mathtt{{{_escaped(token[1:-1])}}}"
        elif kind == "mark":
            yield MARKS[token]
        elif kind == "space":
            yield " " if len(token) < 2 else "\\quad "
        elif kind == "word" and token == "sqrt" and text[at : at + 1] == "(":
            end = closing(text, at)
            yield f"\\sqrt{{{formula(text[at + 1 : end])}}}"
            at = end + 1
        elif kind == "word" and token == "in" and text[:at].rstrip().endswith("x in"):
            yield "\\in "
        elif kind == "word" and not is_symbol(token.partition("'")[0] if token.endswith("'") else token):
            words, at = _words(text, found.start())
            yield words
        elif kind == "word":
            apart = "\\," if token in ("log", "ln", "exp", "sign") and text[at : at + 1] == " " else ""
            yield (GREEK.get(token) or FUNCTIONS.get(token) or token) + apart
        elif token in "_^":
            lowered, at = _argument(text, at)
            yield f"{token}{{{lowered}}}"
        elif token == "<" and re.match(r"\S", text[at:]):
            yield "\\langle "
        elif token == ">" and re.match(r".*\S$", text[: at - 1]) and text[at - 2 : at - 1] != " ":
            yield "\\rangle "
        elif token in "{}":
            yield f"\\{token}"
        else:
            yield _escaped(token)


def _argument(text: str, at: int) -> tuple[str, int]:
    """What is raised or lowered, and where it ends."""
    if text[at : at + 1] == "{":
        end = closing(text, at)
        return formula(text[at + 1 : end]), end + 1
    if text[at : at + 1] == "(":
        end = closing(text, at)
        return formula(text[at + 1 : end]), end + 1
    found = re.match(r"max\([^()]*\)|[+*-]?[A-Za-z0-9]*(?:/\d+)?'?", text[at:])
    assert found is not None
    taken = found.group(0) or text[at : at + 1]
    return formula(taken), at + len(taken)


def _words(text: str, at: int) -> tuple[str, int]:
    """A run of words as text, with the single letters between them; it ends where symbols begin."""
    found = re.match(r"[A-Za-z]+(?:'[a-z]+)?(?:[,;:]? (?:[A-Za-z]{2,}(?:'[a-z]+)?|a)(?![\w_^(]))*[,;:.]?", text[at:])
    assert found is not None
    run = found.group(0)
    kept = re.split(r"(?<=\S)(?=[,;:]? (?:" + "|".join([*GREEK, *FUNCTIONS, "sqrt"]) + r")\b)", run)[0]
    end = at + len(kept)
    if text[end : end + 1] in ("_", "^", "("):
        return f"\\mathrm{{{kept}}}", end
    before = " " if text[at - 1 : at] == " " else ""
    after = " " if text[end : end + 1] == " " else ""
    return f"\\text{{{before}{_escaped(kept)}{after}}}", end + len(after)


def _escaped(text: str) -> str:
    return re.sub(r"([#$%&_])", r"\\\1", text)


def runs(text: str) -> Iterator[tuple[int, int]]:
    """Where a sentence has mathematics: tokens side by side that are no words, one of them more than a letter or a number.

    >>> [text[a:b] for text in ["With V = 10 / (D |v_1|), or any x, O(sqrt(T log T)) holds."] for a, b in runs(text)]
    ['V = 10 / (D |v_1|)', 'O(sqrt(T log T))']
    """
    tokens = [(found.start(), found.end()) for found in re.finditer(r"\S+", text)]
    first = 0
    while first < len(tokens):
        last = first
        while last < len(tokens) and _mathy(text[slice(*tokens[last])]):
            last += 1
            if re.search(r"[,;:.]$", text[: tokens[last - 1][1]]) and _depth(text[tokens[first][0] : tokens[last - 1][1]]) <= 0:
                break
        if last > first:
            span = _trimmed(text, tokens[first][0], tokens[last - 1][1])
            if span and any(_strong(part) for part in text[slice(*span)].split()):
                yield span
        first = max(last, first + 1)


def _depth(text: str) -> int:
    return sum(text.count(mark) for mark in "([{") - sum(text.count(mark) for mark in ")]}")


def _mathy(token: str) -> bool:
    """Whether a token can be a part of a formula."""
    bare = token.strip("()[]{},;:.|")
    if re.fullmatch(r"[-+=/*<>]|<=|>=|<-|\+-|\d+(\.\d+)?(e-\d+)?", bare or token):
        return True
    names = re.findall(r"[A-Za-z]+", bare)
    known = all(is_symbol(name) or name == "sqrt" for name in names)
    return (
        known and bare not in ("a", "A", "I") and not re.search(r"['\"`@&%$#?!]|--|\.\w", token) and (bool(names) or token in ("|", "..."))
    )


def _strong(token: str) -> bool:
    """Whether a token is mathematics whatever stands beside it."""
    return bool(re.search(r"\w\^|\w_|sqrt\(|\bO\(|\|\w+\||^(=|<=|>=|<-)$", token))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """A run without the punctuation and the brackets of the sentence around it; None where its brackets do not match."""
    while True:
        part = text[start:end]
        if part.endswith((",", ";", ":", ".")) or (part.endswith(")") and _depth(part) < 0):
            end -= 1
        elif part.startswith("(") and _depth(part) > 0:
            start += 1
        elif re.search(r"\s([-+=/*<>]|<=|>=|<-)$|\s$", part):
            end -= 1
        elif re.match(r"([-+=/*<>]|<=|>=|<-)\s|\s", part):
            start += 1
        else:
            return (start, end) if part and _depth(part) == 0 and part.count("|") % 2 == 0 else None


def block(lines: list[str]) -> str:
    """Several lines as one displayed formula, aligned at the first relation of each."""
    rows = []
    for line in (part for whole in lines for part in re.split(r"(?<=,)\s{3,}", whole)):
        found = RELATION.search(line)
        left, right = (line[: found.start()], line[found.start() :]) if found else ("", line)
        rows.append(f"{formula(left)} & {formula(right)}")
    return "\\begin{split}" + " \\\\ ".join(rows) + "\\end{split}"
