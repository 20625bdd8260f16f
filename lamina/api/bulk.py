"""Many memories of a kind at once: requests and answers."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from lamina.api.documents import DocumentOut
from lamina.api.fields import ABSENT, Flag, Fraction, Id, Moment, Tags
from lamina.api.notes import NoteChanges, NoteOut
from lamina.api.operations import OperationOut
from lamina.api.scope import ScopeIn
from lamina.api.sessions import SessionMessageOut
from lamina.core.filters import parse
from lamina.core.memories import Category, clean_tags
from lamina.core.queries import AllOf, Compare, FilterField, Filters, Operator, clean_filters
from lamina.errors import InvalidInput
from lamina.text.hygiene import clean_id

SAMPLE = 10
_CONDITIONS = ("filters", "category", "tags", "since", "until", "min_confidence")


class SelectionIn(ScopeIn):
    """Memories that match a filter; the ids of the scope are conditions, too.

    With `user`, only that person's own match.
    """

    filters: dict[str, Any] = Field(default_factory=dict, description="A condition as in a search.")
    since: Moment = Field(ABSENT, description="Only events at or after this time.")
    until: Moment = Field(ABSENT, description="Only events before this time.")
    everything: Flag = Field(default=False, description="Instead of a condition: all of the scope.")
    dry_run: Flag = Field(default=False, description="Count and show some, and change nothing.")

    @property
    def sample_size(self) -> int:
        """How many memories the answer shows: of a dry run alone."""
        return SAMPLE if self.dry_run else 0

    def selection(self) -> Filters:
        """Return the conditions.

        Raises:
            InvalidInput: For a filter that is none, or without any condition.
        """
        has_condition = any(getattr(self, name) is not None for name in _CONDITIONS if name in self.model_fields_set)
        if has_condition == self.everything:
            reason = (
                "is true beside a condition; send one of the two"
                if has_condition
                else "is not true, and no condition is given; send one, or everything: true for all of the scope"
            )
            raise InvalidInput("everything", reason)
        return clean_filters(self._filters())

    def _filters(self) -> Filters:
        where = parse(self.filters, "filters") if self.filters else None
        return Filters(since=self.since, until=self.until, min_confidence=0.0, where=where)


class BulkIn(SelectionIn):
    """Notes that match a filter; the ids of the scope are conditions, too.

    With `user`, only that person's own notes match.
    """

    category: Category = Field(ABSENT, description="Only this category.")
    tags: Tags = Field(default_factory=list, description="Only notes with all of these tags.")
    min_confidence: Fraction = Field(ABSENT, description="Only notes at least this sure.")

    def _filters(self) -> Filters:
        found = super()._filters()
        where = found.where
        if self.category is not None:
            is_category = Compare(FilterField.CATEGORY, Operator.EQ, self.category.value)
            where = is_category if where is None else AllOf((where, is_category))
        return replace(found, tags=tuple(self.tags), min_confidence=self.min_confidence or 0.0, where=where)


class BulkDeleteIn(BulkIn):
    """Notes to delete."""


class ChangeIn(SelectionIn):
    """Memories to tag, or to move."""

    add_tags: Tags = Field(default_factory=list, description="Tags to add.")
    remove_tags: Tags = Field(default_factory=list, description="Tags to take away.")
    to_workspace: Id = Field(ABSENT, description="Workspace to move them to. Default: theirs.")
    to_namespace: Id = Field(ABSENT, description="Namespace to move them to. Default: theirs.")

    @property
    def is_move(self) -> bool:
        """Whether they are moved."""
        return self.to_workspace is not None or self.to_namespace is not None

    def with_target(self) -> Self:
        """Return the request with both ids of the place to move to, clean, if it names one.

        Raises:
            InvalidInput: For an id that is none.
        """
        if not self.is_move:
            return self
        target = {
            "to_workspace": clean_id(self.to_workspace or self.workspace, "to_workspace"),
            "to_namespace": clean_id(self.to_namespace or self.namespace, "to_namespace"),
        }
        return self.model_copy(update=target)

    def check_changes(self, names: Sequence[str]) -> None:
        """Check that one of the named fields is changed, or that a move is asked for, and not both.

        Raises:
            InvalidInput: If nothing is, both is, or a field is not right.
        """
        wanted = [name for name in names if getattr(self, name)]
        if self.is_move == bool(wanted):
            others = ", ".join((*names[1:], "to_workspace"))
            reason = (
                "is given beside a place to move to; send two requests"
                if wanted
                else f"is missing, and so are {others} and to_namespace; say what to do"
            )
            raise InvalidInput(wanted[0] if wanted else "add_tags", reason)
        if self.is_move and (self.to_workspace, self.to_namespace) == (self.workspace, self.namespace):
            raise InvalidInput(
                "to_workspace", f"is {self.to_workspace}, in whose {self.to_namespace} they are; name another"
            )
        clean_tags(tuple(self.add_tags), "add_tags")
        clean_tags(tuple(self.remove_tags), "remove_tags")


class BulkChangeIn(ChangeIn, BulkIn):
    """Notes to tag, to change, or to move."""

    changes: NoteChanges = Field(ABSENT, description="Fields to change, as of one note; the text of each is its own.")

    def check(self, now: datetime) -> None:
        """Check the change or the move that is asked for.

        Raises:
            InvalidInput: If nothing is, both is, or a field is not right.
        """
        self.check_changes(("add_tags", "remove_tags", "changes"))
        if self.changes is not None and "tags" in self.changes.model_fields_set and (self.add_tags or self.remove_tags):
            raise InvalidInput("changes.tags", "is given beside add_tags or remove_tags; send one of them")
        if self.changes is not None:
            self.changes.changes(now)


class MessagesDeleteIn(SelectionIn):
    """Messages to delete, summaries of sessions among them."""


class DocumentsSelectionIn(SelectionIn):
    """Documents that match a filter, files of the workspace among them."""

    tags: Tags = Field(default_factory=list, description="Only documents with all of these tags.")

    def selection(self) -> Filters:
        """Return the conditions.

        Raises:
            InvalidInput: For a filter that is none, without any condition, or with a session.
        """
        if self.session is not None:
            raise InvalidInput("session", "is given, but documents belong to no session; leave it out")
        return super().selection()

    def _filters(self) -> Filters:
        return replace(super()._filters(), tags=tuple(self.tags))


class DocumentsDeleteIn(DocumentsSelectionIn):
    """Documents to delete."""


class DocumentsChangeIn(ChangeIn, DocumentsSelectionIn):
    """Documents to tag, or to move."""


class BulkOut(BaseModel):
    """Matching notes, and the operation over them."""

    matched: int = Field(description="Notes that match at this moment.")
    sample: list[NoteOut] = Field(description="Some of them, by id; of a dry run alone.")
    operation: OperationOut | None = Field(None, description="The operation; none of a dry run.")


class BulkMessagesOut(BaseModel):
    """Matching messages, and the operation over them."""

    matched: int = Field(description="Messages that match at this moment.")
    sample: list[SessionMessageOut] = Field(description="Some of them, by id; of a dry run alone.")
    operation: OperationOut | None = Field(None, description="The operation; none of a dry run.")


class BulkDocumentsOut(BaseModel):
    """Matching documents, and the operation over them."""

    matched: int = Field(description="Documents that match at this moment.")
    sample: list[DocumentOut] = Field(description="Some of them, by id, without text; of a dry run alone.")
    operation: OperationOut | None = Field(None, description="The operation; none of a dry run.")
