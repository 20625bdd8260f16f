"""Procedures that runs of agents teach: which run teaches which one, and when one is active or dropped."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import groupby
from uuid import NAMESPACE_OID, UUID, uuid5

import numpy as np
from numpy.typing import NDArray

from lamina.core.procedures import ProcedureState

MAX_STEPS = 32
MOST_WORDS = 64
MOST_NEAR = 32
"""Procedures that a run is compared with, at most; comparing steps and words takes up to the cube of their number."""
MAX_TRIGGER = 2_000
"""Characters of a user's first message that describe a situation."""
LEAST_SHARED_WORDS = 3
# Scripts without blanks between words, whose characters are compared one by one.
_SCRIPTS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_UNSPACED = re.compile(f"[{_SCRIPTS}]")
_TOKEN = re.compile(rf"(?:[^\s,;:!?()\"\u3001-\u303f\uff01-\uff0f\uff1a-\uff20{_SCRIPTS}]++|\d++|://)++")
# Looked for within a token: one pattern of both would try each place of a long word as its beginning.
_PARTICULAR = re.compile(r"\d|@|://|_")
_NO_BLANK = re.compile(rf"(?<=\w) (?=[,.;:!?)])|(?<=[{_SCRIPTS}]) (?=[{_SCRIPTS}])")
_WORD = re.compile(r"\w+|\S")


@dataclass(frozen=True, slots=True)
class LearningPolicy:
    """The conditions of learning.

    Args:
        min_similarity: Least cosine of the situations of two runs that teach one procedure.
        min_steps: Least share of steps that both have in the same order, 0..1.
        successes: Runs that succeeded from which a proposal is active without a confirmation; 0 is never.
        failures: Runs that failed from which one is dropped, if no more succeeded.
    """

    min_similarity: float
    min_steps: float
    successes: int
    failures: int


@dataclass(frozen=True, slots=True)
class TaughtRun:
    """A run of an agent that ended with an outcome.

    Args:
        id: Of the turn with the outcome.
        user: Person of the session.
        situation: As :func:`situation` returns it; empty if the user said nothing.
        steps: As :func:`steps_of` returns them.
        embedding: Float32, length 1, of the situation.
    """

    id: UUID
    user: str | None
    situation: str
    steps: tuple[str, ...]
    succeeded: bool
    embedding: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LearntProcedure:
    """A procedure that runs taught.

    Args:
        user: Person whose words its trigger has; ``None`` if they are common to several, or nobody's.
        trigger: The situation.
        steps: Names of tools.
        similarity: Cosine of the trigger and the situation of the run that it is compared with.
    """

    id: UUID
    user: str | None
    trigger: str
    steps: tuple[str, ...]
    similarity: float


@dataclass(frozen=True, slots=True)
class Lesson:
    """A run, and the procedure that it is evidence for: ``None`` if it teaches none."""

    run: TaughtRun
    procedure: UUID | None = None


@dataclass(frozen=True, slots=True)
class Lessons:
    """The lessons of some runs.

    Args:
        of_runs: In the order of the runs.
        proposed: New procedures, by id, as they end after these runs.
        reworded: Known procedures with other triggers, whose words several users have in common, by id.
    """

    of_runs: tuple[Lesson, ...]
    proposed: Mapping[UUID, LearntProcedure]
    reworded: Mapping[UUID, str]


def situation(said: str) -> str:
    """Return a user's first message without ids, numbers and addresses, which are of that person alone.

    >>> situation("I am mia_li_3668, cancel ZZ81 please (mia@example.org)")
    'I am …, cancel … please (…)'
    """
    plain = _TOKEN.sub(lambda token: "…" if _PARTICULAR.search(token[0]) else token[0], said[:MAX_TRIGGER])
    return " ".join(plain.split())


def steps_of(tools: Sequence[str]) -> tuple[str, ...]:
    """Return the names of tools in their order, each once where it was called several times running."""
    return tuple(name for name, _ in groupby(tools))[:MAX_STEPS]


def shared_words(trigger: str, said: str) -> str | None:
    """Return the words that two situations have in common, in their order; ``None`` if they are too few.

    What only one of two users said is in neither's procedure.
    """
    one, other = (_WORD.findall(_UNSPACED.sub(r" \g<0> ", text))[:MOST_WORDS] for text in (trigger, said))
    folded_one, folded_other = ([word.casefold() for word in words] for words in (one, other))
    matcher = SequenceMatcher(None, folded_one, folded_other, autojunk=False)
    common = [word for block in matcher.get_matching_blocks() for word in one[block.a : block.a + block.size]]
    if sum(word.isalnum() for word in common) < LEAST_SHARED_WORDS:
        return None
    return _NO_BLANK.sub("", " ".join(common))


def step_overlap(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the share of steps that both have in the same order, 0..1.

    Source:
        Ratcliff and Metzener, Dr. Dobb's Journal 1988.
    """
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def learn(
    runs: Sequence[TaughtRun], known: Mapping[UUID, Sequence[LearntProcedure]], policy: LearningPolicy
) -> Lessons:
    """Return the procedure that each run is evidence for; a run that succeeded and fits none proposes one.

    Args:
        runs: The earliest first.
        known: Learnt procedures near each run, by its id; dropped ones among them, which are not proposed again.
        policy: The conditions.
    """
    lessons: list[Lesson] = []
    proposed: dict[UUID, LearntProcedure] = {}
    vectors: dict[UUID, NDArray[np.float32]] = {}
    reworded: dict[UUID, str] = {}
    for run in runs:
        if not run.situation or not run.steps:
            lessons.append(Lesson(run))
            continue
        near = [replace(item, similarity=float(vectors[item.id] @ run.embedding)) for item in proposed.values()]
        near += [
            replace(item, user=None, trigger=reworded[item.id]) if item.id in reworded else item
            for item in known.get(run.id, ())
        ]
        found = _best(run, near, policy)
        if found is None and run.succeeded:
            id_ = uuid5(NAMESPACE_OID, f"lamina procedure {run.id}")
            found = LearntProcedure(id_, run.user, run.situation, run.steps, 1.0)
            proposed[found.id], vectors[found.id] = found, run.embedding
        elif found is not None and _is_of_another(found, run):
            words = shared_words(found.trigger, run.situation) or found.trigger
            if found.id in proposed:
                proposed[found.id] = replace(found, user=None, trigger=words)
            else:
                reworded[found.id] = words
        lessons.append(Lesson(run, None if found is None else found.id))
    return Lessons(tuple(lessons), proposed, reworded)


def _is_of_another(procedure: LearntProcedure, run: TaughtRun) -> bool:
    return procedure.user is not None and procedure.user != run.user


def _best(run: TaughtRun, near: Sequence[LearntProcedure], policy: LearningPolicy) -> LearntProcedure | None:
    """Return the procedure that the run is evidence for: one of another user only for words that both said."""
    similar = [item for item in near if item.similarity >= policy.min_similarity]
    fitting = [
        item
        for item in nlargest(MOST_NEAR, similar, key=_nearness)
        if step_overlap(item.steps, run.steps) >= policy.min_steps
        and not (_is_of_another(item, run) and shared_words(item.trigger, run.situation) is None)
    ]
    return max(fitting, key=_nearness, default=None)


def _nearness(item: LearntProcedure) -> tuple[float, UUID]:
    return item.similarity, item.id


def action_of(steps: Sequence[str]) -> str:
    r"""Return steps as a text.

    >>> action_of(("find_booking", "cancel_booking"))
    '1. find_booking\n2. cancel_booking'
    """
    return "\n".join(f"{number}. {name}" for number, name in enumerate(steps, 1))


def learnt_state(state: ProcedureState, successes: int, failures: int, policy: LearningPolicy) -> ProcedureState:
    """Return the state that its outcomes give a learnt procedure, which nobody has confirmed or dropped."""
    if failures >= policy.failures and failures >= successes:
        return ProcedureState.DROPPED
    if policy.successes and successes >= policy.successes and successes > failures:
        return ProcedureState.ACTIVE
    return ProcedureState.PROPOSED if state is ProcedureState.DROPPED and successes > failures else state
