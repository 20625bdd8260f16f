from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from lamina.core.queries import Candidate, FusionMethod, Hit, Normalisation, RankedHit
from lamina.core.tiers import Source, Tier
from lamina.policies.ranking.fusion import FusionOptions, fuse
from lamina.settings.loading import Settings
from lamina.settings.search import SearchSettings
from lamina.wiring.services import ranking_policy

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def note(number: int, idle_days: float | None, tier: Tier = Tier.NOTES) -> Candidate:
    last = None if idle_days is None else NOW - timedelta(days=idle_days)
    return Candidate(UUID(int=number), tier, NOW - timedelta(days=400), last_hit_at=last)


def fused(candidates: Sequence[Candidate], decay: float, method: FusionMethod = FusionMethod.RRF) -> list[RankedHit]:
    ranking = tuple(Hit(one, 0.9, {"cosine": 0.9}) for one in candidates)
    options = FusionOptions(method, Normalisation.ABSOLUTE, 10, NOW, has_vector=True)
    policy = ranking_policy(SearchSettings(note_decay=decay))
    return list(fuse({Source.NOTES_HYBRID: ranking}, options, policy))


@pytest.mark.parametrize("method", list(FusionMethod))
@pytest.mark.parametrize(("idle_days", "weight"), [(0, 1), (7, 1), (10, 0.64), (15, 0.04), (40, 0), (-3, 1)])
def test_an_idle_note_loses_score_as_its_weight_decays(method: FusionMethod, idle_days: float, weight: float) -> None:
    [plain], [decayed], [half] = (fused([note(1, idle_days)], decay, method) for decay in (0.0, 1.0, 0.5))

    assert decayed.score == pytest.approx(plain.score * weight)
    assert half.score == pytest.approx(plain.score * (1 + weight) / 2)


def test_a_note_that_is_found_overtakes_one_that_nobody_found() -> None:
    candidates = [note(1, 14), note(2, 1), note(3, None)]

    assert [hit.memory.id.int for hit in fused(candidates, 0.0)] == [1, 2, 3]
    assert [hit.memory.id.int for hit in fused(candidates, 1.0)] == [2, 3, 1]


def test_by_default_no_score_decays_and_no_other_tier_does() -> None:
    assert Settings().search.note_decay == 0
    assert fused([note(1, 40)], 0.0)[0].score > 0
    [plain], [decayed] = (fused([note(1, 40, Tier.DOCUMENTS)], decay) for decay in (0.0, 1.0))
    assert decayed.score == plain.score
