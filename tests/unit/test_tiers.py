from collections import Counter
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
from lamina.settings import SearcherDeployments


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


def test_every_tier_has_a_deployment_in_the_settings() -> None:
    assert tuple(SearcherDeployments.model_fields) == tuple(TIERS)


@pytest.mark.parametrize("spec", TIERS.values(), ids=TIERS)
def test_a_tier_is_shared_under_its_own_name(spec: TierSpec) -> None:
    assert spec.segment is None or spec.segment.value == spec.name
