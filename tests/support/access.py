"""The matrix of routes, roles and bounds, `docs/access.md`, written from the routes' declarations by `make docs`."""

from collections.abc import Iterator
from pathlib import Path

from deployments.access import Access, accesses
from deployments.api import ALL_ROUTERS
from lamina.core.principals import VERBS_OF, BoundRule, KeyRole, ScopeField, Verb

MATRIX = Path(__file__).resolve().parents[2] / "docs" / "access.md"
_INTRODUCTION = """\
# Access by key

<!-- Written by `make docs` from the declarations of the routes, compared by a test; another test tries every cell. -->

A key opens a tenant. Its role says the most that it may do; `verbs` narrow the role, and `workspaces`, `namespaces`,
`users` and `agents` bind the key to a part of the tenant ([security](security.md#keys) explains how to use them). Every
route declares its verb and how it obeys each bound; an application with a route that declares none does not start.

## Verbs

| verb | reader | writer | admin |
|---|---|---|---|"""
_RULES = """
## Routes

How a route obeys a key that is bound in a field:

- **limited**: it answers about the ids of the bound alone. An id outside of the bound is refused (403). One that the
  request leaves out is filled in where the bound holds one id, and must be named where it holds several (403). What is
  named by its own id and belongs to another workspace, namespace or user is not there (404); what belongs to no user,
  or to another agent, is not changed (403).
- **common**: what the route answers is common to all ids of the field. An id that the request names must still lie
  within the bound (403).
- **403**: the route reaches further than any id of the field, so that a key that is bound in it is refused.

What belongs to no user is read by keys of every user, as it is read by requests of every user; so is what an active
share brings from another workspace. The routes of keys show and make only keys that lie within the asking one.

| route | verb | lowest role | workspaces | namespaces | users | agents |
|---|---|---|---|---|---|---|"""


def matrix() -> str:
    """Return the document in Markdown."""
    declared = sorted(accesses(ALL_ROUTERS).items(), key=_by_path)
    rows = [_row(method, path, access) for (method, path), access in declared]
    return "\n".join([_INTRODUCTION, *_verbs(), _RULES, *rows, ""])


def _by_path(route: tuple[tuple[str, str], Access]) -> tuple[str, str]:
    (method, path), _ = route
    return path, method


def _verbs() -> Iterator[str]:
    for verb in Verb:
        yield f"| `{verb}` | {' | '.join('yes' if verb in VERBS_OF[role] else '' for role in KeyRole)} |"


def _row(method: str, path: str, access: Access) -> str:
    if access.verb is None:
        return f"| `{method} {path}` | open | none |  |  |  |  |"
    rules = [access.rules.get(field, BoundRule.REFUSED) for field in ScopeField]
    cells = ["403" if rule is BoundRule.REFUSED else rule.value for rule in rules]
    return f"| `{method} {path}` | `{access.verb}` | {access.role} | {' | '.join(cells)} |"


if __name__ == "__main__":
    MATRIX.write_text(matrix())
