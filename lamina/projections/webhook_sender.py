"""Send one event to a webhook: signed, to an address that was looked up just now, within a deadline."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import httpx

from lamina.api.events import EventOut
from lamina.core.events import StoredEvent
from lamina.core.webhooks import DeliveryPolicy, NotTaken, Webhook, allowed_addresses
from lamina.host.extras import needing

with needing("serve", "webhooks are signed"):
    import standardwebhooks

ERROR_CHARS = 200
# Once: to read the authorities takes a tenth of a second, and this module is imported in a thread.
_AUTHORITIES = httpx.create_ssl_context(trust_env=False)


async def send_event(
    webhook: Webhook,
    stored: StoredEvent,
    policy: DeliveryPolicy,
    resolve: Callable[[str, int], Awaitable[Sequence[str]]],
    now: datetime,
) -> None:
    """Send an event.

    Raises:
        NotTaken: If it is not taken in time, with the reason.
    """
    try:
        async with asyncio.timeout(policy.timeout_s):
            status = await _post(webhook, stored, policy, resolve, now)
    except TimeoutError as error:
        raise NotTaken(f"no answer within {policy.timeout_s:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
        raise NotTaken(f"{type(error).__name__}: {error}"[:ERROR_CHARS]) from error
    if not httpx.codes.is_success(status):
        told = ", a redirect, which is not followed" if httpx.codes.is_redirect(status) else ""
        raise NotTaken(f"it answered {status}{told}")


async def _post(
    webhook: Webhook,
    stored: StoredEvent,
    policy: DeliveryPolicy,
    resolve: Callable[[str, int], Awaitable[Sequence[str]]],
    now: datetime,
) -> int:
    """Connect to an address that is resolved now and to no other, and return the status of the answer."""
    url = httpx.URL(webhook.url)
    port = url.port or {"https": 443, "http": 80}[url.scheme]
    allowed = allowed_addresses(await resolve(url.host, port), allows_private=policy.allows_private)
    if not allowed:
        raise NotTaken("its host has no public address")
    sent = EventOut.from_stored(stored)
    body = f'{{"type":"{sent.kind}","timestamp":"{sent.at.isoformat()}","data":{sent.model_dump_json()}}}'
    headers = {
        "Host": url.netloc.decode(),
        "Content-Type": "application/json",
        "User-Agent": "lamina-webhooks",
        **_signatures(webhook.secrets, str(stored.id), now, body),
    }
    # No proxy of the environment: it would resolve the name anew.
    async with (
        httpx.AsyncClient(
            verify=_AUTHORITIES, trust_env=False, follow_redirects=False, timeout=policy.timeout_s
        ) as client,
        client.stream(
            "POST",
            url.copy_with(host=allowed[0]),
            content=body,
            headers=headers,
            extensions={"sni_hostname": url.host},
        ) as answer,
    ):
        return answer.status_code  # The body is not read, however long it is.


def _signatures(secrets: Sequence[str], id_: str, now: datetime, body: str) -> dict[str, str]:
    """Return the headers of Standard Webhooks, with a signature of each secret."""
    seconds = int(now.timestamp())
    at = datetime.fromtimestamp(seconds, UTC)
    signatures = [standardwebhooks.Webhook(secret).sign(id_, at, body) for secret in secrets]
    return {"webhook-id": id_, "webhook-timestamp": str(seconds), "webhook-signature": " ".join(signatures)}
