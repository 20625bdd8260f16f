"""Operations over many memories."""

from dataclasses import dataclass

from lamina.core.operations import OperationKind
from lamina.core.trash import TrashKind
from lamina.ingest.bulk_documents import BulkDocuments
from lamina.ingest.bulk_notes import BulkNotes
from lamina.ingest.documents import DocumentRecorder
from lamina.ingest.memory_linking import MemoryLinker
from lamina.ingest.procedures import ProcedureRecorder
from lamina.ingest.restoring import Restorer
from lamina.ingest.turns import Recorder
from lamina.maintenance.operations import Operations, Worker
from lamina.maintenance.scope_deletion import Delete, ScopeDeletion
from lamina.maintenance.scope_renaming import ScopeRenaming
from lamina.maintenance.selected_deletion import KINDS, DeleteIf, SelectedDeletion
from lamina.settings.loading import Settings
from lamina.stores.postgres.connection import Pool
from lamina.wiring.erasures import build_seal
from lamina.wiring.services import metadata_limit, trash_policy
from lamina.wiring.stores import utc_now


@dataclass(frozen=True, slots=True)
class Workers:
    """All who work on operations, each on kinds of its own."""

    notes: BulkNotes
    documents: BulkDocuments
    deletion: SelectedDeletion
    scopes: ScopeDeletion
    renaming: ScopeRenaming


def build_workers(
    settings: Settings,
    pool: Pool,
    linker: MemoryLinker,
    *,
    recorder: Recorder,
    documents: DocumentRecorder,
    procedures: ProcedureRecorder,
    restorer: Restorer,
) -> Workers:
    """Build all who work on operations, over the write path of single memories."""
    trash = trash_policy(settings)
    deletes: dict[TrashKind, Delete] = {
        TrashKind.NOTE: recorder.delete_note,
        TrashKind.MESSAGE: recorder.delete_message,
        TrashKind.DOCUMENT: documents.delete,
        TrashKind.PROCEDURE: procedures.delete,
    }
    selected: dict[TrashKind, DeleteIf] = {
        TrashKind.MESSAGE: recorder.delete_message,
        TrashKind.DOCUMENT: documents.delete,
    }
    return Workers(
        notes=BulkNotes(
            pool,
            linker,
            trash=trash,
            kept_versions=settings.history.note_versions,
            metadata_limit=metadata_limit(settings),
            clock=utc_now,
        ),
        documents=BulkDocuments(pool, linker, clock=utc_now),
        deletion=SelectedDeletion(pool, selected, clock=utc_now),
        scopes=ScopeDeletion(pool, deletes, restorer, seal=build_seal(settings), trash=trash, clock=utc_now),
        renaming=ScopeRenaming(pool, clock=utc_now),
    )


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
