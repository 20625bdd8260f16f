"""Operations over many memories."""

from dataclasses import dataclass

from lamina.core.operations import OperationKind
from lamina.core.ports import Embedder
from lamina.ingest.bulk_documents import BulkDocuments
from lamina.ingest.bulk_notes import BulkNotes
from lamina.maintenance.operations import Operations, Worker
from lamina.maintenance.scope_deletion import ScopeDeletion
from lamina.maintenance.scope_renaming import ScopeRenaming
from lamina.maintenance.selected_deletion import KINDS, SelectedDeletion
from lamina.settings.loading import Settings
from lamina.stores.postgres.connection import Pool
from lamina.wiring.services import build_memory_linker, metadata_limit, trash_policy
from lamina.wiring.stores import utc_now


def build_bulk_notes(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> BulkNotes:
    """Build the work on many notes."""
    return BulkNotes(
        pool,
        build_memory_linker(settings, embedder, generation),
        trash=trash_policy(settings),
        kept_versions=settings.history.note_versions,
        metadata_limit=metadata_limit(settings),
        clock=utc_now,
    )


def build_bulk_documents(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> BulkDocuments:
    """Build the work on many documents."""
    return BulkDocuments(pool, build_memory_linker(settings, embedder, generation), clock=utc_now)


@dataclass(frozen=True, slots=True)
class Workers:
    """All who work on operations, each on kinds of its own."""

    notes: BulkNotes
    documents: BulkDocuments
    deletion: SelectedDeletion
    scopes: ScopeDeletion
    renaming: ScopeRenaming


def build_operations(pool: Pool, workers: Workers) -> Operations:
    """Build the operations over many memories."""
    of_notes = (OperationKind.CHANGE_NOTES, OperationKind.MOVE_NOTES, OperationKind.DELETE_NOTES)
    of_documents = (OperationKind.CHANGE_DOCUMENTS, OperationKind.MOVE_DOCUMENTS)
    of_scopes = (OperationKind.DELETE_SCOPE, OperationKind.RESTORE_SCOPE)
    by_kind: dict[OperationKind, Worker] = {
        **dict.fromkeys(of_notes, workers.notes),
        **dict.fromkeys(of_documents, workers.documents),
        **dict.fromkeys(KINDS, workers.deletion),
        **dict.fromkeys(of_scopes, workers.scopes),
        OperationKind.RENAME_SCOPE: workers.renaming,
    }
    return Operations(pool, by_kind, clock=utc_now)
