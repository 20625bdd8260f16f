"""Questions that no cache has seen: each phrasing is asked once before any comes again."""

from collections.abc import Iterator, Sequence
from itertools import cycle, product

# Of common words, which every store finds everywhere or leaves out.
OPENINGS = ("", "Tell me: ", "I wonder: ", "Remind me: ", "Please say: ", "Once more: ")
CLOSINGS = ("", " Thanks.", " Please.", " Any idea?", " Just asking.", " Be brief.")


def phrasings(texts: Sequence[str], *, begin_at: int = 0) -> Iterator[tuple[int, str]]:
    """Yield each text's place and the text in one phrasing after another, without end.

    `cache: false` leaves the cache of embeddings on, so that a question that comes again costs the model nothing.

    Args:
        texts: At least one.
        begin_at: Which phrasing comes first; 0 is the text itself.
    """
    frames = list(product(CLOSINGS, OPENINGS))
    for closing, opening in cycle(frames[begin_at:] + frames[:begin_at]):
        for place, text in enumerate(texts):
            yield place, f"{opening}{text}{closing}"
