"""Operations over many memories."""

from lamina.core.operations import OperationKind
from lamina.core.ports import Embedder
from lamina.ingest.bulk_notes import BulkNotes
from lamina.maintenance.operations import Operations, Worker
from lamina.maintenance.scope_deletion import ScopeDeletion
from lamina.maintenance.scope_renaming import ScopeRenaming
from lamina.settings.loading import Settings
from lamina.stores.postgres.connection import Pool
from lamina.wiring.services import build_memory_linker, metadata_limit, trash_policy
from lamina.wiring.stores import utc_now


def build_bulk_notes(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> BulkNotes:
    """Build the work on many notes."""
    return BulkNotes(
        pool,
        embedder,
        build_memory_linker(settings, embedder, generation),
        trash=trash_policy(settings),
        kept_versions=settings.history.note_versions,
        metadata_limit=metadata_limit(settings),
        clock=utc_now,
        deadline_s=settings.write.embed_deadline_s,
    )


def build_operations(pool: Pool, notes: BulkNotes, scopes: ScopeDeletion, renaming: ScopeRenaming) -> Operations:
    """Build the operations over many memories."""
    of_notes = (OperationKind.CHANGE_NOTES, OperationKind.MOVE_NOTES, OperationKind.DELETE_NOTES)
    of_scopes = (OperationKind.DELETE_SCOPE, OperationKind.RESTORE_SCOPE)
    workers: dict[OperationKind, Worker] = {**dict.fromkeys(of_notes, notes), **dict.fromkeys(of_scopes, scopes)}
    workers[OperationKind.RENAME_SCOPE] = renaming
    return Operations(pool, workers, clock=utc_now)
