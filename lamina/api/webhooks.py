"""Webhooks: requests and answers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import Field

from lamina.api.fields import ABSENT, AtMost, Id, Output, PageOut, Strict
from lamina.core.events import EventKind
from lamina.core.webhooks import MAX_URL_CHARS, DeadLetter, Webhook

MAX_EVENTS = 1000


class WebhookIn(Strict):
    """An address that events are to be sent to."""

    url: Annotated[str, AtMost(MAX_URL_CHARS)] = Field(description="Address over https.")
    workspace: Id | None = Field(None, description="Only this project's events; all of the tenant's if not given.")
    kinds: list[EventKind] = Field(default_factory=list, max_length=100, description="Only these; all if empty.")


class WebhookOut(Output):
    """A webhook, without its secret."""

    id: UUID = Field(description="Id of the webhook.")
    url: str = Field(description="Where events are sent to.")
    workspace: str | None = Field(description="Project whose events it gets; null for all.")
    kinds: list[EventKind | str] = Field(description="Kinds that it gets; all if empty.")
    created_at: datetime = Field(description="When it was made, UTC.")
    delivered: int = Field(description="Events that it took.")
    delivered_at: datetime | None = Field(description="When it took the last one, UTC.")
    attempts: int = Field(description="Failed attempts of the next event.")
    next_at: datetime | None = Field(description="When the next attempt is made at the earliest, UTC.")
    last_error: str | None = Field(description="Why the last attempt failed; null after a success.")
    failed_at: datetime | None = Field(description="When an attempt failed last, UTC.")
    dead_letters: int = Field(description="Events that were given up.")

    @classmethod
    def from_webhook(cls, webhook: Webhook, **secret: str) -> Self:
        """Map a webhook; to show its secret, give it as well."""
        return cls.from_attributes(webhook, kinds=sorted(webhook.kinds), **secret)


class WebhookSecretOut(WebhookOut):
    """A webhook with its secret, which is shown this once."""

    secret: str = Field(description="Signs what is sent, as Standard Webhooks says; it cannot be shown again.")


class WebhooksOut(PageOut):
    """Webhooks, the oldest first."""

    webhooks: list[WebhookOut] = Field(description="The webhooks.")


class DeadLetterOut(Output):
    """An event that was given up."""

    event: UUID = Field(description="The event.")
    attempts: int = Field(description="Failed attempts.")
    error: str = Field(description="Why the last one failed.")
    died_at: datetime = Field(description="When it was given up, UTC.")
    is_due: bool = Field(description="Whether it is sent again next.")


class DeadLettersOut(PageOut):
    """Dead letters in the order of their events."""

    dead_letters: list[DeadLetterOut] = Field(description="The dead letters.")
    next: int | None = Field(
        deprecated=True, description="Send it as `after` for those that follow; null after the last ones."
    )

    @classmethod
    def from_letters(cls, letters: Sequence[DeadLetter], next_cursor: str | None) -> Self:
        """Map a page."""
        out = [
            DeadLetterOut(
                event=one.event_id, attempts=one.attempts, error=one.error, died_at=one.died_at, is_due=one.is_due
            )
            for one in letters
        ]
        return cls(dead_letters=out, next=letters[-1].position if next_cursor else None, next_cursor=next_cursor)


class RetryIn(Strict):
    """Dead letters that are to be sent again."""

    events: Annotated[list[UUID], Field(max_length=MAX_EVENTS)] = Field(
        ABSENT, description="Those of these events; all if not given."
    )


class RetryOut(Output):
    """How many dead letters are sent again."""

    queued: int = Field(description="Number of dead letters that are sent again.")
