from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.memories import Chunk, Note
from lamina.stores.postgres.note_duplicates import Original, find_restatements, raised_importance
from lamina.stores.postgres.notes import PreparedNote

FRACTIONS = st.floats(0, 1)


@pytest.mark.parametrize(("cosine", "is_merged"), [(0.92, True), (0.9199, False)])
def test_nothing_below_the_cosine_is_a_near_duplicate(cosine: float, is_merged: bool) -> None:
    text = "I like green tea."
    chunk = Chunk(0, len(text), np.ones(1, dtype=np.float32).tobytes())
    note = PreparedNote(UUID(int=1), Note(text), (chunk,), ("i like green tea",))
    original = Original(UUID(int=2), "I like green tea", 0.5, "api", frozenset(), {}, is_stored=True)

    again = find_restatements([note], {note.id: [(original, cosine)]}, min_cosine=0.92)

    assert (note.id in again) is is_merged


@given(FRACTIONS, FRACTIONS)
def test_what_is_told_again_matters_more_and_never_above_1(importance: float, other: float) -> None:
    raised = raised_importance(importance, other)

    assert max(importance, other) <= raised <= 1
    assert raised > importance or importance > 0.999999
