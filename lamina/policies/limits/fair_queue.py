"""Serve waiting calls so that no tenant's work holds up another tenant's."""

from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

QUANTUM_TOKENS = 256
"""Tokens of a tenant's turn: as many as a model's chunk has."""


@dataclass(slots=True, eq=False)
class QueuedCall:
    """Texts of a tenant that wait for a model.

    Args:
        tenant: Who waits for them.
        tokens: Of each text, at least one.
        taken: Texts that were taken from the queue.
        is_given_up: Whether nobody waits for them any more.
    """

    tenant: str
    tokens: Sequence[int]
    taken: int = 0
    is_given_up: bool = False

    @property
    def is_over(self) -> bool:
        """Whether none of its texts is to be taken."""
        return self.is_given_up or self.taken == len(self.tokens)


Call = TypeVar("Call", bound=QueuedCall)


@dataclass(slots=True)
class _Turns(Generic[Call]):
    """A tenant's calls, and the tokens that are left of its turn."""

    calls: deque[Call]
    left: int = QUANTUM_TOKENS


class FairQueue(Generic[Call]):
    """Serves tenants in turns of as many tokens each, and a tenant's calls in turn; used by one thread, bounded.

    A tenant that comes anew has its first turn before those that are served already, so that a small call does not
    wait for the round to end. One whose calls were all served keeps its place in the round for as long: by sending one
    small call after another it gets no more than its turns.

    Args:
        most_calls: Most calls that wait; beyond it a tenant is refused that has its share of them.

    Source:
        Shreedhar and Varghese, deficit round robin, SIGCOMM 1995; RFC 8290, which lets new flows go first.
    """

    def __init__(self, most_calls: int) -> None:
        self._most_calls = most_calls
        self._new: OrderedDict[str, _Turns[Call]] = OrderedDict()
        self._served: OrderedDict[str, _Turns[Call]] = OrderedDict()

    def is_full_for(self, tenant: str) -> bool:
        """Return whether as many calls wait as may, and as many of the tenant as is its share."""
        waiting = {
            name: sum(1 for call in turns.calls if not call.taken and not call.is_given_up)
            for name, turns in (*self._new.items(), *self._served.items())
        }
        tenants = sum(1 for name, count in waiting.items() if count and name != tenant) + 1
        return sum(waiting.values()) >= self._most_calls and waiting.get(tenant, 0) * tenants >= self._most_calls

    def put(self, call: Call) -> None:
        """Add a call."""
        turns = self._new.get(call.tenant) or self._served.get(call.tenant)
        if turns is None:
            self._new[call.tenant] = _Turns(deque([call]))
        else:
            turns.calls.append(call)

    def take(self, most_tokens: int, most_texts: int) -> list[tuple[Call, int]]:
        """Take the next texts, each as its call and its place there; at least one, if one waits."""
        taken: list[tuple[Call, int]] = []
        while (self._new or self._served) and len(taken) < most_texts:
            tenant, turns = next(iter((self._new or self._served).items()))
            call = _first(turns.calls)
            if call is None:
                self._leave(tenant, turns)
                continue
            cost = call.tokens[call.taken]
            if taken and cost > most_tokens:
                break
            if cost > turns.left:
                self._end_turn(tenant, turns)
                continue
            taken.append((call, call.taken))
            call.taken += 1
            turns.left -= cost
            most_tokens -= cost
        return taken

    def has_others_than(self, tenants: Collection[str]) -> bool:
        """Report whether a text of another tenant waits."""
        return any(call.tenant not in tenants and not call.is_over for call in self.calls())

    def tokens(self) -> int:
        """Return the tokens of all texts that wait."""
        return sum(sum(call.tokens[call.taken :]) for call in self.calls() if not call.is_given_up)

    def calls(self) -> list[Call]:
        """Return the calls that wait."""
        return [call for turns in (*self._new.values(), *self._served.values()) for call in turns.calls]

    def _end_turn(self, tenant: str, turns: _Turns[Call]) -> None:
        self._new.pop(tenant, None)
        self._served[tenant] = turns
        self._served.move_to_end(tenant)
        turns.left += QUANTUM_TOKENS
        turns.calls.rotate(-1)

    def _leave(self, tenant: str, turns: _Turns[Call]) -> None:
        """Let a tenant without calls go after a round in which it had none; it saves no tokens meanwhile."""
        self._new.pop(tenant, None)
        self._served.pop(tenant, None)
        if turns.left < QUANTUM_TOKENS:
            turns.left = QUANTUM_TOKENS
            self._served[tenant] = turns


def _first(calls: deque[Call]) -> Call | None:
    while calls and calls[0].is_over:
        calls.popleft()
    return calls[0] if calls else None
