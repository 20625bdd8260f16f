import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from lamina.core.tiers import (
    PROJECTIONS,
    SEARCHED_TIERS,
    SOURCES,
    TIER_OF,
    TIER_OF_SEGMENT,
    TIERS,
    ProjectionName,
    Segment,
    Source,
    Tier,
    TierName,
    TierSpec,
)
from lamina.settings.serving import SearcherDeployments
from lamina.stores.postgres.tiers import EMBEDDED, EMBEDDING_PROJECTIONS, ERASED, LINKED, PROJECTED, TIER_ROWS
from lamina.wiring.tiers import BUILDERS

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = (ROOT / "lamina/stores/postgres/schema.sql").read_text()
NAMES = frozenset(TIERS) | frozenset(PROJECTIONS)
MEMBERS = frozenset(tier.name for tier in Tier) | frozenset(source.name for source in Source)
# The modules that name the tiers one by one; whatever else lists them is derived.
RECORDS = {
    "lamina/core/tiers.py": "the record",
    "lamina/stores/postgres/tiers.py": "its rows",
    "lamina/wiring/tiers.py": "its builders",
    "lamina/settings/search.py": "the weights of its sources",
}


def test_every_tier_but_the_profile_has_a_record() -> None:
    assert tuple(TIERS) == get_args(TierName)
    assert {*SEARCHED_TIERS, Tier.PROFILE} == set(Tier)


def test_every_source_projection_and_segment_belongs_to_one_tier() -> None:
    specs = TIERS.values()

    assert SOURCES.keys() == TIER_OF.keys() == set(Source)
    assert TIER_OF_SEGMENT.keys() == set(Segment)
    assert tuple(PROJECTIONS) == get_args(ProjectionName)
    assert Counter(source for spec in specs for source in spec.sources) == Counter(Source)
    assert Counter(name for spec in specs for name in spec.projections) == Counter(list(PROJECTIONS))


def test_every_tier_has_a_builder_rows_and_a_deployment_in_the_settings() -> None:
    assert BUILDERS.keys() == TIERS.keys() == TIER_ROWS.keys()
    assert tuple(SearcherDeployments.model_fields) == tuple(TIERS)


@pytest.mark.parametrize("spec", TIERS.values(), ids=TIERS)
def test_the_rows_of_a_tier_are_those_of_its_record(spec: TierSpec) -> None:
    rows = TIER_ROWS[spec.name]

    assert rows.projected.keys() == spec.projections.keys()
    assert (rows.linked is not None) is spec.is_linked
    assert spec.segment is None or spec.segment.value == spec.name
    assert all(re.search(rf"^CREATE TABLE (\w+\.)?{table} ", SCHEMA, re.MULTILINE) for table in spec.tables)
    for erased in rows.erased.values():
        assert erased.projection is None or erased.projection in spec.projections


def test_what_goes_over_all_tiers_reaches_the_rows_of_each() -> None:
    own = [rows for tier in TIER_ROWS.values() for rows in (tier.projected, tier.embedded, tier.erased)]

    assert PROJECTED.keys() == PROJECTIONS.keys()
    assert LINKED.keys() == {spec.tier for spec in TIERS.values() if spec.is_linked}
    assert len(PROJECTED) + len(EMBEDDED) + len(ERASED) == sum(map(len, own))
    assert EMBEDDING_PROJECTIONS["notes"] == ("notes", "cold")
    assert EMBEDDING_PROJECTIONS["entities"] == ()


def test_every_table_of_vectors_is_embedded_again() -> None:
    tables = re.findall(r"^CREATE TABLE (?:\w+\.)?(\w+) \((.*?)^\);", SCHEMA, re.MULTILINE | re.DOTALL)
    of_generations = {name for name, columns in tables if {"embedding", "generation"} <= {*columns.split()}}
    own_vector = {"entities", "procedures"}  # One of the generation that they were written with; others lie apart.
    caches = {"embedding_cache", "responses"}

    assert of_generations - own_vector - caches == {table.name for rows in EMBEDDED.values() for table in rows.vectors}


def listings(path: Path) -> Iterator[str]:
    """The collections and matches of a module that name three tiers, sources or projections one by one."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Dict(keys=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                named = {name for part in parts for name in _named(part)}
            case ast.Match(cases=cases):
                named = {name for case in cases for part in ast.walk(case.pattern) for name in _named(part)}
            case _:
                continue
        if len(named) >= 3:
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {', '.join(sorted(named))}"


def _named(node: ast.AST | None) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)) if text in NAMES:
            yield text
        case ast.Attribute(value=ast.Name(id="Tier" | "Source"), attr=member) if member in MEMBERS:
            yield member
        case ast.MatchValue(value=value):
            yield from _named(value)


def test_no_other_module_names_the_tiers_one_by_one() -> None:
    paths = [path for folder in ("lamina", "deployments", "actors", "jobs") for path in (ROOT / folder).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): list(listings(path)) for path in paths}

    assert [line for path, lines in found.items() for line in lines if path not in RECORDS] == []
    assert all(found[path] for path in RECORDS)
