"""The answers of the API as values: the models of which the service itself makes them."""

from lamina.api.archives import ArchivedNoteOut, ArchivedNotesOut, RestoredOut
from lamina.api.audits import AuditOut
from lamina.api.batches import BatchOut
from lamina.api.bulk import BulkDocumentsOut, BulkMessagesOut, BulkOut
from lamina.api.caches import CacheHealthOut, CacheStatsOut, ClearedOut, ExpiredOut
from lamina.api.directories import (
    AgentOut,
    AgentsOut,
    NamespaceOut,
    NamespacesOut,
    SessionOut,
    SessionsOut,
    UserOut,
    UsersOut,
    WorkspaceOut,
    WorkspacesOut,
)
from lamina.api.documents import DocumentOut, DocumentsOut, PassageOut, PassagesOut, PutDocumentOut, PutDocumentsOut
from lamina.api.events import EventOut, EventsOut
from lamina.api.facts import FactOut, FactsOut, StatedFactOut
from lamina.api.feedback import FeedbackOut
from lamina.api.files import FileOut, FilesOut
from lamina.api.graph import EntitiesOut, EntityOut, NeighboursOut, PutNodesOut, TraverseOut
from lamina.api.health import AliveOut, ReadyOut
from lamina.api.jobs import RunOut, RunsOut, ScheduleOut
from lamina.api.keys import KeyOut, KeysOut, SecretOut
from lamina.api.memories import ForgottenOut, MemoryOut
from lamina.api.memory_profiles import MemoryProfileOut
from lamina.api.notes import NoteOut, NotesOut, NoteVersionsOut, PutResult
from lamina.api.operations import OperationOut, OperationsOut
from lamina.api.procedures import (
    MatchesOut,
    OutcomeOut,
    OutcomesOut,
    ProcedureOut,
    ProceduresOut,
    PutProcedureOut,
    ReinforcedOut,
)
from lamina.api.profiles import ProfileOut, ProfileVersionOut, ProfileVersionsOut
from lamina.api.providers import ProviderRatesOut, RecordedOut
from lamina.api.quotas import KeyQuotasOut, QuotasOut
from lamina.api.responses import LookupOut, PutResponseOut
from lamina.api.scopes import ScopeDeletionOut, ScopeRenamingOut
from lamina.api.search import ContextOut, SearchBatchOut, SearchOut
from lamina.api.sessions import ForecastOut, HistoryOut, SessionMessageOut
from lamina.api.shares import ShareOut, SharesOut
from lamina.api.status import StatusOut
from lamina.api.trash import DiscardedOut, TrashOut
from lamina.api.turns import AgentTurnOut, AgentTurnsOut, TurnOut, UsageSumsOut
from lamina.api.usage import UsageOut
from lamina.api.users import ErasureOut, ErasuresOut, ReceiptKeysOut
from lamina.api.webhooks import DeadLetterOut, DeadLettersOut, RetryOut, WebhookOut, WebhookSecretOut, WebhooksOut
from lamina.api.workspaces import WorkspaceSettingsOut

__all__ = [
    "AgentOut",
    "AgentTurnOut",
    "AgentTurnsOut",
    "AgentsOut",
    "AliveOut",
    "ArchivedNoteOut",
    "ArchivedNotesOut",
    "AuditOut",
    "BatchOut",
    "BulkDocumentsOut",
    "BulkMessagesOut",
    "BulkOut",
    "CacheHealthOut",
    "CacheStatsOut",
    "ClearedOut",
    "ContextOut",
    "DeadLetterOut",
    "DeadLettersOut",
    "DiscardedOut",
    "DocumentOut",
    "DocumentsOut",
    "EntitiesOut",
    "EntityOut",
    "ErasureOut",
    "ErasuresOut",
    "EventOut",
    "EventsOut",
    "ExpiredOut",
    "FactOut",
    "FactsOut",
    "FeedbackOut",
    "FileOut",
    "FilesOut",
    "ForecastOut",
    "ForgottenOut",
    "HistoryOut",
    "KeyOut",
    "KeyQuotasOut",
    "KeysOut",
    "LookupOut",
    "MatchesOut",
    "MemoryOut",
    "MemoryProfileOut",
    "NamespaceOut",
    "NamespacesOut",
    "NeighboursOut",
    "NoteOut",
    "NoteVersionsOut",
    "NotesOut",
    "OperationOut",
    "OperationsOut",
    "OutcomeOut",
    "OutcomesOut",
    "PassageOut",
    "PassagesOut",
    "ProcedureOut",
    "ProceduresOut",
    "ProfileOut",
    "ProfileVersionOut",
    "ProfileVersionsOut",
    "ProviderRatesOut",
    "PutDocumentOut",
    "PutDocumentsOut",
    "PutNodesOut",
    "PutProcedureOut",
    "PutResponseOut",
    "PutResult",
    "QuotasOut",
    "ReadyOut",
    "ReceiptKeysOut",
    "RecordedOut",
    "ReinforcedOut",
    "RestoredOut",
    "RetryOut",
    "RunOut",
    "RunsOut",
    "ScheduleOut",
    "ScopeDeletionOut",
    "ScopeRenamingOut",
    "SearchBatchOut",
    "SearchOut",
    "SecretOut",
    "SessionMessageOut",
    "SessionOut",
    "SessionsOut",
    "ShareOut",
    "SharesOut",
    "StatedFactOut",
    "StatusOut",
    "TrashOut",
    "TraverseOut",
    "TurnOut",
    "UsageOut",
    "UsageSumsOut",
    "UserOut",
    "UsersOut",
    "WebhookOut",
    "WebhookSecretOut",
    "WebhooksOut",
    "WorkspaceOut",
    "WorkspaceSettingsOut",
    "WorkspacesOut",
]
