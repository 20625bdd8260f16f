"""The audit of the running service's projections, which only their owners may open."""

from collections.abc import Mapping
from functools import partial

from ray.exceptions import RayError

from lamina.core.tiers import TIERS, ProjectionName
from lamina.errors import Unavailable
from lamina.projections.audit import Audit, Drift
from lamina.settings.loading import Settings, served_tiers

APPLICATION = "lamina"
# Has the searchers in it where the topology is compact.
ROUTER = "Router"


def build_audits(settings: Settings) -> Mapping[ProjectionName, Audit]:
    """Build the audit of each projection, a call of the deployment that owns it."""
    return {
        projection: partial(_audit, tier.title(), projection)
        for tier in served_tiers(settings)
        for projection in TIERS[tier].projections
    }


async def _audit(deployment: str, projection: ProjectionName, tenant: str) -> Drift:
    from ray import serve  # noqa: PLC0415 - takes a second of every worker, and only this job needs it
    from ray.serve.exceptions import RayServeException  # noqa: PLC0415

    try:
        try:
            owner = serve.get_deployment_handle(deployment, APPLICATION)
        except KeyError:  # There is none of this name.
            owner = serve.get_deployment_handle(ROUTER, APPLICATION)
        drift: Drift = await owner.audit.remote(projection, tenant)
    except (KeyError, RayServeException, RayError) as error:
        raise Unavailable(
            projection, "the service that owns it does not run on this cluster; start it there"
        ) from error
    return drift
