"""What a store of a projection has missed when a service begins to use it."""

from lamina.settings import QdrantEdgeSettings, Settings
from lamina.stores.postgres.builds import begin_filling, claim_store
from lamina.stores.postgres.generations import Generation
from lamina.stores.postgres.outbox import ProjectionName, enqueue_all
from lamina.wiring.indexes import chosen_for, store_of
from lamina.wiring.stores import postgres_url


def claim(settings: Settings, projection: ProjectionName, generation: Generation | None, *, is_new: bool) -> bool:
    """Keep a projection here from now on; have it take over everything, if something may have passed it by.

    That is so if it is empty, or the service kept it elsewhere before. Deletions that passed it by do not come back
    in searches, which read Postgres; the audit removes what is left of them.

    Args:
        settings: Where the projection is kept.
        projection: Which.
        generation: Which vectors it holds.
        is_new: Whether it is empty.

    Returns:
        Whether everything is in the outbox for it now.
    """
    url = postgres_url(settings)
    was_elsewhere = claim_store(url, projection, store_of(settings, projection, generation))
    if not was_elsewhere and not is_new:
        return False
    is_first = begin_filling(url, projection)
    if is_shared(settings, projection) and not was_elsewhere and not is_first:
        return False  # Another replica, which started with this one, has it filled.
    enqueue_all(url, projection)
    return True


def is_shared(settings: Settings, projection: ProjectionName) -> bool:
    """Tell whether several processes may use the projection's store at the same time."""
    return not isinstance(chosen_for(settings, projection), QdrantEdgeSettings)
