from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from lamina.auditing import compare, fingerprint
from lamina.links import Link, Node, NodeLabel
from lamina.ports import Placed, Record

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


def test_an_index_is_compared_by_the_number_of_chunks() -> None:
    assert fingerprint(RECORD) == fingerprint(Placed("acme", "w", "n", RECORD)) == "2"
    assert fingerprint(None) is fingerprint(Placed("acme", "w", "n", None)) is None
