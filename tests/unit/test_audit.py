from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

from lamina.core.fingerprints import chunk_fingerprints, fingerprint
from lamina.core.links import Link, Node, NodeLabel
from lamina.core.ports import PlacedRecord, Record
from lamina.projections.audit import compare

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
ONE, TWO, THREE, FOUR = (UUID(int=number) for number in range(1, 5))
LINK = Link(ONE, TWO, "mentions", 0.5, ("ann", "bob"), NOON)
NODE = Node(NodeLabel.MEMORY, "acme", "w", "n", 2, None, None, NOON, (LINK, replace(LINK, target=THREE)))
RECORD = Record("acme", "w", "n", None, None, (), NOON, 1.0, ("one", "two"), (b"", b""))


def test_drift_names_what_is_missing_surplus_and_different() -> None:
    drift = compare({ONE: "a", TWO: "b", THREE: "c"}, {TWO: "b", THREE: "x", FOUR: "d"})

    assert (drift.missing, drift.surplus, drift.different) == ((ONE,), (FOUR,), (THREE,))
    assert (drift.expected, drift.found) == (3, 3)
    assert set(drift.ids()) == {ONE, THREE, FOUR}


def test_a_node_is_the_same_whatever_the_order_of_its_links_and_users() -> None:
    turned = replace(NODE, links=(NODE.links[1], replace(LINK, users=("bob", "ann"))))

    assert fingerprint(turned) == fingerprint(NODE)


def test_a_node_differs_by_anything_that_a_reader_could_notice() -> None:
    others = [
        replace(NODE, user="ann"),
        replace(NODE, namespace="m"),
        replace(NODE, seen_at=NOON + timedelta(seconds=1)),
        replace(NODE, links=NODE.links[:1]),
        replace(NODE, links=(replace(LINK, strength=0.6), NODE.links[1])),
        replace(NODE, links=(replace(LINK, users=None), NODE.links[1])),
        replace(NODE, links=(replace(LINK, kind="about"), NODE.links[1])),
    ]

    assert len({fingerprint(node) for node in (NODE, *others)}) == len(others) + 1


def test_an_indexed_memory_tells_how_many_chunks_it_has_wherever_it_belongs() -> None:
    assert fingerprint(RECORD) == fingerprint(PlacedRecord("acme", "w", "n", RECORD))
    assert str(fingerprint(RECORD)).startswith("2:")
    assert fingerprint(None) is fingerprint(PlacedRecord("acme", "w", "n", None)) is None


def test_an_indexed_memory_differs_by_anything_that_a_search_could_notice() -> None:
    others = [
        replace(RECORD, texts=("one", "three")),
        replace(RECORD, embeddings=(b"", b"x")),
        replace(RECORD, texts=("one",), embeddings=(b"",)),
        replace(RECORD, user="ann"),
        replace(RECORD, workspace="v"),
        replace(RECORD, session="s"),
        replace(RECORD, agent="a"),
        replace(RECORD, tags=("red",)),
        replace(RECORD, occurred_at=NOON + timedelta(microseconds=1)),
        replace(RECORD, confidence=0.5),
        replace(RECORD, importance=0.6),
        replace(RECORD, category="decision"),
        replace(RECORD, source="api"),
    ]

    assert len({fingerprint(record) for record in (RECORD, *others)}) == len(others) + 1


def test_a_moment_is_the_same_in_every_time_zone() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5)))

    assert fingerprint(replace(RECORD, occurred_at=elsewhere)) == fingerprint(RECORD)


def test_the_chunks_of_a_memory_make_up_its_fingerprint_if_they_are_whole_and_agree() -> None:
    whole, short, long, mixed = ONE, TWO, THREE, FOUR
    carried = [(whole, "2:a"), (short, "2:b"), (whole, "2:a"), (mixed, "2:d"), (mixed, "2:e")]
    carried += [(long, "1:c"), (long, "1:c")]

    states = chunk_fingerprints(carried)

    assert states[whole] == "2:a"
    assert states[short] != "2:b"
    assert states[long] != "1:c"
    assert states[mixed] not in {"2:d", "2:e"}
