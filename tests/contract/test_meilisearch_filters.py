"""What Meilisearch's filters select is what conditions mean, by our reading of its grammar and of how it compares.

No engine stands behind it: `tests/contract/test_meilisearch.py` asks a real server the same.
"""

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.filters import matches
from lamina.core.ports import Change
from lamina.core.queries import Condition, Filters, Query
from lamina.core.scope import Scope
from lamina.stores.index.filters import compile_condition, query_filter
from lamina.stores.index.meilisearch.documents import build_document, documents_of, outdated
from lamina.stores.index.meilisearch.filters import DIALECT
from tests.support.filtered import CONDITIONS, MEMORIES, STRANGE, state_of
from tests.support.indexes import record
from tests.support.meilisearch_filters import selects

DOCUMENTS = {
    memory.id: json.loads(json.dumps(next(documents_of([Change(memory.id, state_of(memory))], None))))
    for memory in MEMORIES
}


@given(condition=CONDITIONS)
def test_any_condition_selects_what_it_means(condition: Condition) -> None:
    expression = str(compile_condition(condition, DIALECT))

    selected = {id_ for id_, document in DOCUMENTS.items() if selects(expression, document)}

    assert selected == {memory.id for memory in MEMORIES if matches(condition, memory)}


@given(st.sampled_from(STRANGE), st.sampled_from(STRANGE), st.sampled_from(STRANGE))
def test_a_scope_sees_itself_alone(asking: str, other: str, user: str) -> None:
    mine = Scope(asking, asking, user=user)
    theirs = record("tea", tenant=other, user=user)
    (document,) = documents_of([Change(UUID(int=1), theirs)], None)
    document = {**document, "workspace": document["tenant"]}
    query = Query("tea", ("tea",), mine, 10, Filters(min_confidence=0))

    assert selects(str(query_filter(query, DIALECT, by_session=False)), document) is (asking == other)


@pytest.mark.parametrize("condition", ["everything", "nothing"])
def test_the_document_that_tells_the_build_is_met_by_no_query(condition: str) -> None:
    query = Query("tea", ("tea",), Scope("acme"), 10, Filters(min_confidence=0))
    expression = str(query_filter(query, DIALECT, by_session=False))

    assert not selects(expression, build_document(3, None))
    assert not selects(outdated([Change(UUID(int=1), None)]), build_document(3, 64))


def test_what_a_memory_no_longer_has_is_outdated_and_what_it_has_is_not() -> None:
    one, two, three = (UUID(int=number) for number in (1, 2, 3))
    before = [Change(id_, record("a", "b", "c")) for id_ in (one, two, three)]
    changes = [Change(one, record("a")), Change(two, None)]

    left = [document for document in documents_of(before, None) if not selects(outdated(changes), document)]

    assert [(document["memory"][-1], document["chunk"]) for document in left] == [
        ("1", 0),
        *(("3", n) for n in range(3)),
    ]
