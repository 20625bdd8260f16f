"""Every pattern of the packages, and texts that would hold up one whose work grows faster than the text.

Another library would not spare the test: of 150 patterns google-re2 (1.1) takes 104, the others look around or hold
what they matched, and over 300 000 characters of chat those 104 take 5.1 s with it and 1.7 s with re and regex.

Run as a program, in a process of its own: a pattern that hangs is ended with it. Prints a line before each trial, and
at the end a JSON list of the trials that took too long.
"""

import ast
import importlib
import json
import pkgutil
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import regex

from tests.support.effort import IS_LONG

PACKAGES = ("lamina", "deployments", "actors", "jobs")
# They read the files of operators, on the operators' own machine.
NO_USERS_TEXT = ("lamina.config_check",)
FUNCTIONS = frozenset({"compile", "search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"})
FIRST, SHORT, MIDDLE, LONG = 1_500, 6_000, 30_000, 300_000
"""Characters of a trial: the worst of the first are tried as short ones, and the worst of these at length, where
quadratic work takes minutes."""
WORST = 1_000 if IS_LONG else 10
"""Of some 120 texts, how many are tried beyond the first trial; quadratic work stands out in it."""
SHORT_S, LONG_S = 0.08, 1.2
LINEAR = 4.0
"""At most so many times the short trial's time by character is linear at length, however slow the machine: quadratic
work is 50 times as slow there, and 1.27 s were once measured of a pattern that takes 0.4 elsewhere."""
GROWS = 0.0 if IS_LONG else 1.5
"""A pattern whose time by character grows less than so many times from a short trial to one of middle length is not
tried at length: quadratic work takes five times as long by character there."""
TRIALS = 3
_UNITS = (
    *" \n\t.,;:-_'\"’“”«»`()[]{}<>@#/\\*|=+&%$€?!0aAзЯ猫กé😀\u0301\u200b",
    *(
        "a ",
        "A ",
        "Aa ",
        "a.",
        "a@",
        "a-",
        "a'",
        "1.",
        "1,",
        "1-",
        " \n",
        "\n ",
        "\n\n",
        ". ",
        "a\n",
        "? ",
        "() ",
        "[]",
        "I ",
        "the ",
    ),
    *(
        "http://",
        "www.",
        "a/",
        '\\"',
        "|a",
        "- ",
        "> ",
        "[a](",
        "Mr. ",
        "e.g.",
        "2026-01-",
        "data:",
        "x=",
        "'s ",
        "<a ",
        "&a",
        "\u2028",
        "\r\n",
    ),
)
_PREFIXED = (
    ("x", " "),
    ('"', "a"),
    ("“", "a "),
    ("[Memory: ", "x"),
    ("`", "a"),
    ("<", "a "),
    ("{", " "),
    ("a", "\n "),
    ("http://", "a"),
)
# An end that does not fit makes a pattern that looks for the end start again at every character.
_ENDED = (
    (" ", "x"),
    ("\n", "x"),
    (" \n", "x"),
    ("\t", "x"),
    ("a", "!"),
    ("1", "a"),
    ("-", "a"),
    ("#", "a"),
    (".", "a"),
)


class Named(NamedTuple):
    """A pattern and where it stands."""

    place: str
    pattern: Any


class Slow(NamedTuple):
    """A trial that took too long, in CPU seconds."""

    place: str
    pattern: str
    text: str
    chars: int
    seconds: float


def all_patterns() -> list[Named]:
    """Import every module of the packages; return what they compile on the way, and what functions compile inline."""
    found: dict[tuple[str, int, bool], Named] = {}

    def keep(place: str, pattern: Any) -> None:
        if isinstance(pattern.pattern, str) and not place.startswith(NO_USERS_TEXT):
            found.setdefault((pattern.pattern, pattern.flags, isinstance(pattern, re.Pattern)), Named(place, pattern))

    for library in (re, regex):
        _watch(library, keep)
    for module in _modules():
        for place, pattern in _inline(module):
            keep(place, pattern)
    return sorted(found.values(), key=lambda item: item.place)


def _watch(library: Any, keep: Callable[[str, Any], None]) -> None:
    """Have the library tell each pattern that one of the packages compiles."""
    plain = library.compile

    def compile_and_keep(pattern: Any, *arguments: Any, **options: Any) -> Any:
        compiled = plain(pattern, *arguments, **options)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        name = str(frame.f_globals.get("__name__", "")) if frame is not None else ""
        if frame is not None and name.partition(".")[0] in PACKAGES:
            keep(f"{name}:{frame.f_lineno}", compiled)
        return compiled

    library.compile = compile_and_keep


def _modules() -> Iterator[ModuleType]:
    for package in PACKAGES:
        root = importlib.import_module(package)
        yield root
        for found in pkgutil.walk_packages(root.__path__, f"{package}."):
            # Integrations import their frameworks, which are in environments of their own.
            if not found.name.endswith("__main__") and not found.name.startswith("lamina.integrations."):
                yield importlib.import_module(found.name)


def _inline(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the patterns that stand in calls of re and regex, where module and call alone say what they are."""
    if module.__file__ is None:
        return
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        owner = node.func.value
        if not (isinstance(owner, ast.Name) and owner.id in ("re", "regex") and node.func.attr in FUNCTIONS):
            continue
        place = f"{module.__name__}:{node.lineno}"
        try:
            written = eval(compile(ast.Expression(node.args[0]), place, "eval"), vars(module))  # noqa: S307 - our code
        except NameError:  # Made of a function's argument: compiled at import, and seen there.
            continue
        library = re if owner.id == "re" else regex
        if isinstance(written, str):
            yield place, library.compile(written)


def texts_for(pattern: str, chars: int) -> Iterator[tuple[str, str]]:
    """Yield (description, text): repeated units, repeats of the pattern's own words, and what nearly matches."""
    literals = list(re.findall(r"[\w@/:'’-]{2,}", re.sub(r"\\[a-zA-Z]|\(\?P?<\w+>", " ", pattern)))[:12]
    for unit in dict.fromkeys((*_UNITS, *literals, *(f"{word} " for word in literals))):
        yield repr(unit), _repeated(unit, chars)
    for start, unit in (
        *_PREFIXED,
        *((word, " ") for word in literals[:4]),
        *((f"{word} ", "Aa ") for word in literals[:4]),
    ):
        yield f"{start!r} + {unit!r}", start + _repeated(unit, chars)
    for unit, end in _ENDED:
        yield f"{unit!r} + {end!r}", _repeated(unit, chars - len(end)) + end
    nearly = " ".join(literals)
    yield "its words", _repeated(f"{nearly} ", chars)
    yield "its words, and blanks", _repeated(nearly + " " * 200, chars)
    yield "lines of letters", _repeated("a" * 70 + "\n", chars)


def _repeated(unit: str, chars: int) -> str:
    return (unit * (chars // len(unit) + 1))[:chars]


def slow_trials(named: Named) -> list[Slow]:
    """Try a pattern with every text, its worst ones again with more of them, and the worst of all in full length."""
    pattern = named.pattern
    first = [_least_cpu_seconds(pattern, text, SHORT_S) for _, text in texts_for(pattern.pattern, FIRST)]
    chosen = set(sorted(range(len(first)), key=first.__getitem__)[-WORST:])
    taken: list[tuple[float, int]] = []
    for place, (description, text) in enumerate(texts_for(pattern.pattern, SHORT)):
        if place not in chosen:
            continue
        seconds = _least_cpu_seconds(pattern, text, SHORT_S)
        if seconds > SHORT_S:
            return [Slow(named.place, pattern.pattern, description, SHORT, round(seconds, 2))]
        taken.append((seconds, place))
    short_s, worst = max(taken)
    _, text = next(islice(texts_for(pattern.pattern, MIDDLE), worst, None))
    middle_s = _least_cpu_seconds(pattern, text, LONG_S)
    if middle_s * (LONG / MIDDLE) ** 2 < LONG_S:
        return []  # Work that grows with the square of the text would be done in time as well.
    _, short = next(islice(texts_for(pattern.pattern, SHORT), worst, None))
    least_short_s = min(short_s, *(_cpu_seconds(pattern, short, SHORT_S) for _ in range(TRIALS)))
    if middle_s < GROWS * least_short_s * MIDDLE / SHORT:
        return []
    description, text = next(islice(texts_for(pattern.pattern, LONG), worst, None))
    limit_s = max(LONG_S, LINEAR * short_s * LONG / SHORT)
    seconds = _least_cpu_seconds(pattern, text, limit_s)
    return [Slow(named.place, pattern.pattern, description, LONG, round(seconds, 2))] if seconds > limit_s else []


def _least_cpu_seconds(pattern: Any, text: str, enough_s: float) -> float:
    """Return the processor time of a trial; one that seems slow is repeated, for a busy machine makes all so."""
    least = enough_s * 3
    for _ in range(TRIALS):
        least = min(least, _cpu_seconds(pattern, text, 3 * enough_s))
        if least <= enough_s:
            break
    return least


def _cpu_seconds(pattern: Any, text: str, limit_s: float) -> float:
    begin = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        for _ in pattern.finditer(text):
            pass
    except TimeoutError:
        return limit_s
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - begin


def _give_up(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


def main() -> None:
    signal.signal(signal.SIGVTALRM, _give_up)
    slow = []
    for named in all_patterns():
        print(named.place, ascii(named.pattern.pattern[:100]), flush=True)  # noqa: T201 - the program's answer
        slow += slow_trials(named)
    print(json.dumps([trial._asdict() for trial in slow]))  # noqa: T201


if __name__ == "__main__":
    main()
