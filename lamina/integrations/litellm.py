"""LiteLLM: a callback that recalls before a call of a model and records after it, in the library and in its proxy."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

from lamina.integrations._turns import HEADING, TurnMemory

_MEMBERS = {"acompletion": "messages", "aresponses": "input"}
"""Which calls have memory, and where their conversation stands; all others pass as they are."""
_IDS = ("workspace", "namespace", "user", "agent", "swarm")
_SPEAKERS = frozenset({"user", "assistant"})
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


class LaminaMemory(CustomLogger):
    """Memory of every model behind LiteLLM.

    A call names its scope in ``metadata`` (``lamina_workspace``, ``lamina_session`` and so on) and in ``user``, as far
    as the scope given here leaves it open. ``store=False`` and ``lamina_record: off`` record nothing.

    Args:
        scope: Ids of every call, whatever it names itself.
        url: Where Lamina listens; else ``LAMINA_URL``.
        key: API key; else ``LAMINA_API_KEY``.
        role: Role of the message that holds the memories.
        timeout_s: Seconds after which a call goes on without memories.
    """

    def __init__(
        self,
        scope: Mapping[str, str] | None = None,
        url: str | None = None,
        key: str | None = None,
        *,
        role: str = "system",
        timeout_s: float = 1.5,
    ) -> None:
        super().__init__()
        self.memory = TurnMemory(scope, url, key, timeout_s)
        self._role = role

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Put the memories before the last message of the user; a call that has a block already gets no second one."""
        member = _MEMBERS.get(str(getattr(call_type, "value", call_type)))
        items = _items(kwargs.get(member)) if member else None
        if member is None or items is None or any(_is_block(item) for item in items):
            return None
        asked = max((at for at, item in enumerate(items) if item.get("role") == "user"), default=None)
        if asked is None:
            return None
        # Only a session that is named is certain to be this conversation's.
        named = _named(kwargs).get("lamina_session")
        session = str(named) if named else None
        block, _ = await self.memory.recall(_text(items[asked]), session=session, ids=_ids(kwargs))
        if not block:
            return None
        return {**kwargs, member: [*items[:asked], {"role": self._role, "content": block}, *items[asked:]]}

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Record the turn, once its answer is whole."""
        member = _MEMBERS.get(str(kwargs.get("call_type")))
        items = _items(kwargs.get("messages") or kwargs.get("input")) if member else None
        answer = _plain(kwargs.get("async_complete_streaming_response") or response_obj)
        if items is None or not _is_recorded(kwargs) or not isinstance(answer, dict):
            return
        said = [item for item in items if not _is_block(item)]
        answered = {"role": "assistant", "content": _answer(answer), "ref": _ref("answer", said)}
        session = _session(kwargs, [*said, answered])
        usage = _usage(kwargs, answer, (end_time - start_time).total_seconds())
        await self.memory.record([*_new_messages(said), answered], session=session, ids=_ids(kwargs), usage=usage)


def _items(value: Any) -> list[dict[str, Any]] | None:
    """Return the items of a conversation; ``None`` for a form that is not known."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    plain = [_plain(item) for item in value] if isinstance(value, list) else []
    return plain if plain and all(isinstance(item, dict) for item in plain) else None


def _plain(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else value


def _is_block(item: Mapping[str, Any]) -> bool:
    return str(item.get("content")).startswith(HEADING)


def _named(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a call, those that a client sent to the proxy among them."""
    inner = kwargs.get("litellm_params") or {}
    sent = [source.get("metadata") or {} for source in (inner, kwargs) if isinstance(source, dict)]
    sent += [metadata.get("requester_metadata") or {} for metadata in sent]
    return {name: value for metadata in sent for name, value in metadata.items() if name.startswith("lamina_")}


def _ids(kwargs: Mapping[str, Any]) -> dict[str, str]:
    named = _named(kwargs)
    optional = kwargs.get("optional_params") or {}
    user = named.get("lamina_user") or kwargs.get("user") or optional.get("user")
    found = {name: named.get(f"lamina_{name}") for name in _IDS} | {"user": user}
    return {name: str(value) for name, value in found.items() if value}


def _session(kwargs: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> str:
    """Return the session that a call names, else one of all that was said up to the first answer.

    Many chats begin with the same greeting. Instructions, which may hold the time, do not count.
    """
    first = next(at for at, item in enumerate(items) if item.get("role") == "assistant")
    said = [(item["role"], _text(item).strip()) for item in items[: first + 1] if item.get("role") in _SPEAKERS]
    digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    return str(_named(kwargs).get("lamina_session") or f"chat-{digest[:32]}")


def _is_recorded(kwargs: Mapping[str, Any]) -> bool:
    optional = kwargs.get("optional_params") or {}
    stores = kwargs.get("store", optional.get("store"))
    return stores is not False and str(_named(kwargs).get("lamina_record", "")).lower() != "off"


def _new_messages(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the user said since the model's last answer; the same request again has the same refs."""
    answered = max((at for at, item in enumerate(items) if item.get("role") == "assistant"), default=-1)
    return [
        {"role": "user", "content": _text(item), "ref": _ref("said", items[: at + 1])}
        for at, item in enumerate(items)
        if at > answered and item.get("role") == "user"
    ]


def _ref(kind: str, items: Sequence[Mapping[str, Any]]) -> str:
    digest = hashlib.sha256(json.dumps([[item.get("role"), _text(item)] for item in items]).encode())
    return f"{kind}-{digest.hexdigest()[:32]}"


def _text(item: Mapping[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("type") in _TEXT_PARTS)


def _answer(answer: Mapping[str, Any]) -> str:
    """Return the text of an answer, of chat completions or of responses."""
    said = [choice.get("message") or {} for choice in answer.get("choices") or ()][:1] or answer.get("output") or []
    return "\n".join(filter(None, (_text(_plain(item)) for item in said)))


def _usage(kwargs: Mapping[str, Any], answer: Mapping[str, Any], latency_s: float) -> dict[str, Any]:
    used = _plain(answer.get("usage")) or {}
    tokens = used.get("prompt_tokens") or used.get("input_tokens") or 0
    details = _plain(used.get("prompt_tokens_details") or used.get("input_tokens_details")) or {}
    figures = {
        "provider": kwargs.get("custom_llm_provider"),
        "model": answer.get("model") or kwargs.get("model"),
        "input_tokens": tokens,
        "cached_tokens": min(details.get("cached_tokens") or 0, tokens),
        "output_tokens": used.get("completion_tokens") or used.get("output_tokens") or 0,
        "cost": kwargs.get("response_cost"),
        "latency_ms": max(0.0, latency_s * 1000),  # A clock may be set back meanwhile.
    }
    return {name: value for name, value in figures.items() if value is not None}
