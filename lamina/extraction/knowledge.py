"""What texts say about the world, by rules: who and what they name, and how these stand to each other."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lamina.core.memories import Edge, Entity, Extraction
from lamina.extraction.edges import edges
from lamina.extraction.entities import Mention, as_entity, distinct, mentions
from lamina.text.sentences import sentences
from lamina.text.words import name_key

# Names that callers give to the roles of a chat rather than to anybody.
_NOBODY = frozenset({"user", "assistant", "human", "ai", "system", "tool", "bot", "agent"})
# What the two sides of a statement are, where the statement tells.
_SIDES: dict[str, tuple[str | None, str | None]] = {
    "works_at": ("person", "organisation"),
    "worked_at": ("person", "organisation"),
    "joined": ("person", "organisation"),
    "married_to": ("person", "person"),
    "lives_in": ("person", "place"),
    "lived_in": ("person", "place"),
    "moved_to": (None, "place"),
    "born_in": ("person", "place"),
    "works_with": ("person", "person"),
    "reports_to": ("person", "person"),
    "founded": ("person", None),
    "director_of": ("person", None),
    "author_of": ("person", None),
}


def read_all(texts: Sequence[str], speakers: Sequence[str | None] | None = None) -> Extraction:
    """Return the entities and edges of the texts, without notes or profile facts.

    The work grows with the length of the texts, about three seconds a million characters.

    Args:
        texts: What is said; a word that is a name in one is one in all.
        speakers: Who says each text, in their order; ``None`` stands for nobody in particular.
    """
    found = mentions(texts)
    names = [speaker_name(name) for name in speakers or [None] * len(texts)]
    people = [Entity(name, "person", confidence=1.0) for name in names if name]
    named = distinct([*people, *(as_entity(mention) for mentioned in found for mention in mentioned)])
    told = zip(texts, found, names, strict=True)
    stated = {_identity(edge): edge for said in told for edge in _edges(*said)}
    return Extraction(entities=_typed(named, tuple(stated.values())), edges=tuple(stated.values()))


def speaker_name(speaker: str | None) -> str | None:
    """Return the name, unless it is that of a role in a chat."""
    return None if speaker is None or name_key(speaker) in _NOBODY else speaker


def _identity(edge: Edge) -> tuple[str, str, str]:
    return name_key(edge.subject), edge.type, name_key(edge.object)


def _edges(text: str, found: Sequence[Mention], speaker: str | None) -> Iterator[Edge]:
    """Yield the statements of each sentence; places of mentions count from the sentence's start."""
    starts = [mention.start for mention in found]
    end = 0
    for sentence in sentences(text):
        start = text.index(sentence, end)
        end = start + len(sentence)
        inside = found[bisect_left(starts, start) : bisect_left(starts, end)]
        moved = [replace(mention, start=mention.start - start, end=mention.end - start) for mention in inside]
        yield from edges(sentence, moved, speaker)


def _typed(named: Sequence[Entity], stated: Sequence[Edge]) -> tuple[Entity, ...]:
    """Return the entities with the types that the statements about them imply, where nothing else told."""
    implied = {
        name_key(name): type_
        for edge in stated
        for name, type_ in zip((edge.subject, edge.object), _sides(edge), strict=True)
        if type_
    }
    return tuple(
        replace(entity, type=implied.get(entity.key, "thing")) if entity.type == "thing" else entity for entity in named
    )


def _sides(edge: Edge) -> tuple[str | None, str | None]:
    return ("person", "person") if edge.type.startswith("has_") else _SIDES.get(edge.type, (None, None))
