"""What a store of a projection has missed when a service begins to use it."""

from lamina.core.tiers import ProjectionName
from lamina.settings import Settings
from lamina.stores.postgres.builds import claim_store
from lamina.stores.postgres.generations import Generation
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
        is_new: Whether it is empty, or does not answer.

    Returns:
        Whether everything is in the outbox for it now.
    """
    store = store_of(settings, projection, generation)
    is_shared = not getattr(chosen_for(settings, projection), "is_local", False)
    return claim_store(postgres_url(settings), projection, store, is_new=is_new, is_shared=is_shared)
