"""Many notes at once: requests and answers."""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from lamina.api.fields import ABSENT, Flag, Fraction, Id, Moment, Tags
from lamina.api.notes import NoteChanges, NoteOut
from lamina.api.operations import OperationOut
from lamina.api.scope import ScopeIn
from lamina.core.filters import parse
from lamina.core.memories import Category, clean_tags
from lamina.core.queries import AllOf, Compare, FilterField, Filters, Operator, clean_filters
from lamina.errors import InvalidInput
from lamina.text.hygiene import clean_id

SAMPLE = 10
_CONDITIONS = ("filters", "category", "tags", "since", "until", "min_confidence")
_CHANGES = ("add_tags", "remove_tags", "changes")


class BulkIn(ScopeIn):
    """Notes that match a filter; the ids of the scope are conditions, too.

    With `user`, only that person's own notes match.
    """

    filters: dict[str, Any] = Field(default_factory=dict, description="A condition as in a search.")
    category: Category = Field(ABSENT, description="Only this category.")
    tags: Tags = Field(default_factory=list, description="Only notes with all of these tags.")
    since: Moment = Field(ABSENT, description="Only events at or after this time.")
    until: Moment = Field(ABSENT, description="Only events before this time.")
    min_confidence: Fraction = Field(ABSENT, description="Only notes at least this sure.")
    everything: Flag = Field(default=False, description="Instead of a condition: all notes of the scope.")
    dry_run: Flag = Field(default=False, description="Count and show some, and change nothing.")

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
                else (
                    "is not true, and no condition is given; send one, or everything: true for all notes of the scope"
                )
            )
            raise InvalidInput("everything", reason)
        where = parse(self.filters, "filters") if self.filters else None
        if self.category is not None:
            is_category = Compare(FilterField.CATEGORY, Operator.EQ, self.category.value)
            where = is_category if where is None else AllOf((where, is_category))
        return clean_filters(Filters(tuple(self.tags), self.since, self.until, self.min_confidence or 0.0, where))


class BulkDeleteIn(BulkIn):
    """Notes to delete."""


class BulkChangeIn(BulkIn):
    """Notes to tag, to change, or to move."""

    add_tags: Tags = Field(default_factory=list, description="Tags to add.")
    remove_tags: Tags = Field(default_factory=list, description="Tags to take away.")
    changes: NoteChanges = Field(ABSENT, description="Fields to change, as of one note; the text of each is its own.")
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

    def check(self, now: datetime) -> None:
        """Check what is to be done.

        Raises:
            InvalidInput: If nothing is, both is, or a field is not right.
        """
        wanted = [name for name in _CHANGES if getattr(self, name)]
        if self.is_move == bool(wanted):
            reason = (
                "is given beside a place to move to; send two requests"
                if wanted
                else ("is missing, and so are remove_tags, changes, to_workspace and to_namespace; say what to do")
            )
            raise InvalidInput(wanted[0] if wanted else "add_tags", reason)
        if self.is_move and (self.to_workspace, self.to_namespace) == (self.workspace, self.namespace):
            raise InvalidInput(
                "to_workspace", f"is {self.to_workspace}, in whose {self.to_namespace} they are; name another"
            )
        clean_tags(tuple(self.add_tags), "add_tags")
        clean_tags(tuple(self.remove_tags), "remove_tags")
        if self.changes is not None and "tags" in self.changes.model_fields_set and (self.add_tags or self.remove_tags):
            raise InvalidInput("changes.tags", "is given beside add_tags or remove_tags; send one of them")
        if self.changes is not None:
            self.changes.changes(now)


class BulkOut(BaseModel):
    """Matching notes, and the operation over them."""

    matched: int = Field(description="Notes that match at this moment.")
    sample: list[NoteOut] = Field(description="Some of them, by id; of a dry run alone.")
    operation: OperationOut | None = Field(None, description="The operation; none of a dry run.")
