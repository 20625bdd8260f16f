"""Consolidation's decisions: clusters of near notes, members that a text covers, and edges that neighbours imply."""

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lamina.core.scope import Scope
from lamina.policies.retention.provenance import Origin, derived_id
from lamina.text.english import NEGATIONS, listed
from lamina.text.hygiene import is_blank
from lamina.text.numbers import depends_on_moment, is_in_english
from lamina.text.words import words

MIN_COSINE = 0.80
LEAST_MEMBERS = 3
MOST_MEMBERS = 100
LEAST_SHARED = 3
HUB = 200
MOST_EDGES = 10
# Rows compared at once: 40 MB of cosines with 20 000 notes.
BLOCK = 512
_TOLERANCE = 1e-6  # The error of a float32 dot product of unit rows.

_LINE_DATE = re.compile(r"(\d{4}-\d{2}-\d{2}): ")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])")
_UNIT = re.compile(r"(?<!\w)\d+(?:[.,:/-]\d+)+(?!\w)")
# Words that say nothing by themselves; every other word counts, "before" and "with" too.
_NEUTRAL = listed("a an the is are was were be been being am has have had do does did that it its also very really")
# Words that weaken a statement or turn it into its contrary.
_TURNING = NEGATIONS | listed(
    """
    if unless whether maybe perhaps probably possibly might may could would should almost nearly
    false untrue wrong denies denied doubts doubted claims claimed thinks thought believes believed
    """
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Notes near one of them.

    Args:
        centre: The note that all others are near to.
        members: All notes, the centre included, in the order of time, ties by id.
    """

    centre: UUID
    members: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class InferredEdge:
    """An edge ``related_to`` that no memory states; it has no direction, so it goes from the smaller id.

    Args:
        strength: Share of the neighbours of either that both have, 0..1.
        shared: How many they share.
    """

    subject: UUID
    object: UUID
    strength: float
    shared: int


@dataclass(frozen=True, slots=True)
class EdgePolicy:
    """When neighbours imply an edge.

    Args:
        least_shared: Fewest shared neighbours.
        hub: Entities with more links than this are linked to nearly everything: they are no evidence, and get no edge.
        most_each: Most inferred edges of an entity, the strongest ones.
    """

    least_shared: int = LEAST_SHARED
    hub: int = HUB
    most_each: int = MOST_EDGES


def clusters(
    ids: Sequence[UUID],
    embeddings: NDArray[np.float32],
    moments: Sequence[datetime],
    *,
    min_cosine: float = MIN_COSINE,
    most_members: int = MOST_MEMBERS,
) -> tuple[Cluster, ...]:
    """Group notes into stars of at least three, each around a note that many others are near to; no note is in two.

    Every member is near to the centre, so nothing chains from one subject to another. Centres are taken by how many
    notes are near to them, ties by id; the order of the input does not matter. Notes of a cluster may differ in a
    number, a negation or a name: they are related, not equal. See :func:`covered`.

    Args:
        ids: Of the notes of one scope and user, each once.
        embeddings: float32, shape (n, d), unit rows.
        moments: The event times of the notes, in UTC.
        min_cosine: Least cosine of a member to the centre.
        most_members: A larger star keeps the nearest; the others may form another one.

    Returns:
        The clusters, most central first. Time grows with n² · d, memory with n: 20 000 notes are compared in blocks.

    Source:
        The star clusters of Aslam, Pelekhov and Rus, JGAA 2004.
    """
    if len(ids) < LEAST_MEMBERS:
        return ()
    order = sorted(range(len(ids)), key=lambda place: ids[place])
    # By id, so that neither the centres nor ties depend on the order of the input.
    rows = np.ascontiguousarray(embeddings[order], dtype=np.float32)
    least = min_cosine - _TOLERANCE
    centres = _by_centrality(_degrees(rows, least))
    found = []
    for star in _stars(rows, centres, least, most_members):
        places = [order[row] for row in star]
        by_time = sorted(places, key=lambda place: (moments[place], ids[place]))
        found.append(Cluster(ids[places[0]], tuple(ids[place] for place in by_time)))
    return tuple(found)


def cluster_key(scope: Scope, user: str | None, origins: Sequence[Origin]) -> UUID:
    """Return the id of a cluster's consolidated note: the same for the same members in the same state."""
    return derived_id(scope, user, ("consolidation",), origins)


def covered(member: str, consolidated: str, *, moment: datetime | None = None) -> bool:
    """Report whether a consolidated text states every sentence of a member, so that searches no longer need the member.

    Each sentence of the member must stand within one sentence of the text, its words and numbers in their order and
    nothing between them but articles and forms of "to be"; and that sentence must not deny, doubt or ask it. A doubtful
    member is not covered: it stays in search, which costs a place and loses nothing.

    Args:
        member: The text of a note.
        consolidated: The consolidated text; a line may begin with its day, as ``2026-11-20: ``.
        moment: The event time of the member. A sentence like "we met yesterday" is covered only by one in a line of
            that day, and so is every sentence that is not English; without the moment, by none.
    """
    statements = [_statement(sentence, day) for sentence, day in _dated_sentences(consolidated)]
    day = moment.date().isoformat() if moment else ""
    own = [sentence for sentence, _ in _dated_sentences(member)]
    return bool(own) and all(_is_stated(sentence, day, statements, consolidated) for sentence in own)


def inferred_edges(links: Sequence[tuple[UUID, UUID]], policy: EdgePolicy | None = None) -> tuple[InferredEdge, ...]:
    """Infer edges between entities that share many neighbours and are not linked, strongest first.

    Hubs do not count as neighbours. At most ``most_each`` edges an entity; time grows with
    the number of entities times at most ``hub``², memory with their number.

    Args:
        links: From and to, in any order and direction; of one audience only, since an edge reveals its neighbours.
        policy: When neighbours imply an edge.

    Source:
        Jaccard's coefficient for link prediction: Liben-Nowell and Kleinberg, CIKM 2003.
    """
    chosen = policy or EdgePolicy()
    neighbours = _neighbours(links)
    counted = {
        node: frozenset(other for other in near if len(neighbours[other]) <= chosen.hub)
        for node, near in neighbours.items()
    }
    found: list[InferredEdge] = []
    for node, near in counted.items():
        if len(neighbours[node]) <= chosen.hub:
            edges = _edges_of(node, near, neighbours, counted, chosen)
            found.extend(heapq.nsmallest(chosen.most_each, edges, key=_strongest_first))
    return tuple(_capped(found, chosen.most_each))


def _degrees(rows: NDArray[np.float32], least: float) -> NDArray[np.int64]:
    starts = range(0, len(rows), BLOCK)
    near = [np.count_nonzero(rows[start : start + BLOCK] @ rows.T >= least, axis=1) for start in starts]
    return np.concatenate(near)


def _by_centrality(degrees: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows with enough near rows, most first, ties in the order of ids."""
    order = np.argsort(-degrees, kind="stable")
    return order[degrees[order] >= LEAST_MEMBERS]


def _stars(
    rows: NDArray[np.float32], centres: NDArray[np.int64], least: float, most_members: int
) -> Iterator[list[int]]:
    is_free = np.ones(len(rows), dtype=bool)
    for start in range(0, len(centres), BLOCK):
        block = [row for row in centres[start : start + BLOCK] if is_free[row]]
        cosines = rows[block] @ rows.T if block else rows[:0]
        for centre, near in zip(block, cosines, strict=True):
            star = _star(int(centre), near, is_free, least, most_members)
            if len(star) >= LEAST_MEMBERS:
                is_free[star] = False
                yield star


def _star(
    centre: int, cosines: NDArray[np.float32], is_free: NDArray[np.bool_], least: float, most_members: int
) -> list[int]:
    """Return the free rows near a centre, nearest first, ties in the order of ids; none if the centre is taken."""
    if not is_free[centre]:
        return []
    near = np.flatnonzero(is_free & (cosines >= least))
    near = near[near != centre]
    # Rounded: the last digits of a cosine depend on the blocks it was computed in, and must not decide ties.
    nearest = near[np.argsort(-np.round(cosines[near], 5), kind="stable")]
    return [centre, *map(int, nearest[: most_members - 1])]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A sentence as it is compared.

    Args:
        day: The date of its line; empty if it has none.
        units: Its words and whole numbers in order, without neutral words.
        turning: The units that weaken or negate it.
    """

    day: str
    units: tuple[str, ...]
    turning: Counter[str]
    asks: bool


def _dated_sentences(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        dated = _LINE_DATE.match(line.strip())
        rest = line.strip()[dated.end() :] if dated else line
        for sentence in _SENTENCE_END.split(rest):
            if not is_blank(sentence):
                yield sentence.strip(), dated[1] if dated else ""


def _statement(sentence: str, day: str) -> _Statement:
    units = tuple(unit for unit in _units(sentence) if unit not in _NEUTRAL)
    turning = Counter(unit for unit in units if unit in _TURNING or unit.endswith("n't"))
    return _Statement(day, units, turning, sentence.endswith(("?", "\uff1f")))


def _units(sentence: str) -> Iterator[str]:
    """Yield words, and numbers of several parts whole: a date is one unit, not three numbers."""
    end = 0
    for number in _UNIT.finditer(sentence):
        yield from words(sentence[end : number.start()])
        yield number.group()
        end = number.end()
    yield from words(sentence[end:])


def _is_stated(sentence: str, day: str, statements: Sequence[_Statement], consolidated: str) -> bool:
    own = _statement(sentence, day)
    if not own.units:
        return sentence in consolidated
    # Of another language nobody here knows all words that count from a day.
    is_relative = depends_on_moment(sentence) or not is_in_english(sentence)
    return any(
        _contains(other.units, own.units)
        and (other.turning, other.asks) == (own.turning, own.asks)
        and (not is_relative or (day != "" and other.day == day))
        for other in statements
    )


def _contains(units: Sequence[str], own: Sequence[str]) -> bool:
    return any(units[start : start + len(own)] == own for start in range(len(units) - len(own) + 1))


def _neighbours(links: Sequence[tuple[UUID, UUID]]) -> dict[UUID, set[UUID]]:
    neighbours: dict[UUID, set[UUID]] = {}
    for one, other in links:
        if one != other:
            neighbours.setdefault(one, set()).add(other)
            neighbours.setdefault(other, set()).add(one)
    return neighbours


def _edges_of(
    node: UUID,
    near: frozenset[UUID],
    neighbours: Mapping[UUID, set[UUID]],
    counted: Mapping[UUID, frozenset[UUID]],
    policy: EdgePolicy,
) -> Iterator[InferredEdge]:
    """Yield the edges that start from an entity: to larger ids, by way of the neighbours that count."""
    shared = Counter(other for between in near for other in neighbours[between] if other > node)
    for other, count in shared.items():
        is_open = len(neighbours[other]) <= policy.hub and other not in neighbours[node]
        if count >= policy.least_shared and is_open:
            yield InferredEdge(node, other, count / len(near | counted[other]), count)


def _strongest_first(edge: InferredEdge) -> tuple[float, int, UUID, UUID]:
    return -edge.strength, -edge.shared, edge.subject, edge.object


def _capped(edges: Sequence[InferredEdge], most_each: int) -> Iterator[InferredEdge]:
    degrees: Counter[UUID] = Counter()
    for edge in sorted(edges, key=_strongest_first):
        if degrees[edge.subject] < most_each and degrees[edge.object] < most_each:
            degrees.update((edge.subject, edge.object))
            yield edge
