"""Every call of the API, written once: a client adds how a request is sent."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import UUID

Json = dict[str, Any]
Answer = TypeVar("Answer")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request, without its address and key."""

    method: str
    path: str
    json: Json | None = None
    params: Json = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


class Calls(ABC, Generic[Answer, Done]):
    """The methods of a client.

    ``Answer`` is the JSON of an answer, or where the client is asynchronous a coroutine that returns it; ``Done``
    is the same without content.

    Args:
        scope: Ids sent with every request that has a scope.
    """

    def __init__(self, scope: Json) -> None:
        self._scope = scope

    @abstractmethod
    def send(self, call: Call) -> Answer:
        """Send a call and return its JSON answer.

        Raises:
            LaminaError: The service's error, or that it does not answer.
        """

    @abstractmethod
    def _finish(self, call: Call) -> Done:
        """Send a call whose answer has no content."""

    def record(self, messages: Sequence[Json], *, idempotency_key: str | None = None, **fields: Any) -> Answer:
        """Hand over the messages of a turn, with its tool calls, usage and outcome (`POST /v1/turns`)."""
        return self._post("/v1/turns", self._in_scope(fields, messages=list(messages)), idempotency_key)

    def turns(self, **fields: Any) -> Answer:
        """List turns with tool calls, usage or an outcome (`GET /v1/turns`)."""
        return self._get("/v1/turns", self._in_scope(fields))

    def usage(self, **fields: Any) -> Answer:
        """Return tokens, cost and outcomes of agents (`GET /v1/turns/usage`)."""
        return self._get("/v1/turns/usage", fields)

    def add(self, content: str, *, idempotency_key: str | None = None, **fields: Any) -> Answer:
        """Store a note (`POST /v1/notes`)."""
        return self._post("/v1/notes", self._in_scope(fields, content=content), idempotency_key)

    def add_many(self, notes: Sequence[str | Json], *, idempotency_key: str | None = None, **scope: Any) -> Answer:
        """Store notes, with a result per item (`POST /v1/notes/batch`)."""
        return self._post("/v1/notes/batch", self._in_scope(scope, notes=list(notes)), idempotency_key)

    def note(self, id_: UUID | str) -> Answer:
        """Return a note (`GET /v1/notes/{id}`)."""
        return self._get(f"/v1/notes/{id_}")

    def workspace_settings(self, workspace: str) -> Answer:
        """Return the settings of a workspace (`GET /v1/workspaces/{workspace}/settings`)."""
        return self._get(f"/v1/workspaces/{quote(workspace, safe='')}/settings")

    def set_workspace_settings(self, workspace: str, **settings: Any) -> Answer:
        """Replace the settings of a workspace (`PUT /v1/workspaces/{workspace}/settings`)."""
        return self.send(Call("PUT", f"/v1/workspaces/{quote(workspace, safe='')}/settings", settings))

    def change(self, id_: UUID | str, *, if_version: int | None = None, **fields: Any) -> Answer:
        """Change fields of a note; with `if_version` only in that version (`PATCH /v1/notes/{id}`)."""
        return self.send(Call("PATCH", f"/v1/notes/{id_}", fields, headers=_if_version(if_version)))

    def delete(self, id_: UUID | str, *, if_version: int | None = None) -> Done:
        """Delete a note; with `if_version` only in that version (`DELETE /v1/notes/{id}`)."""
        return self._finish(Call("DELETE", f"/v1/notes/{id_}", headers=_if_version(if_version)))

    def add_procedure(self, trigger: str, action: str, *, idempotency_key: str | None = None, **fields: Any) -> Answer:
        """Store a procedure (`POST /v1/procedures`)."""
        return self._post("/v1/procedures", self._in_scope(fields, trigger=trigger, action=action), idempotency_key)

    def add_procedures(self, procedures: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any) -> Answer:
        """Store procedures, with a result per item (`POST /v1/procedures/batch`)."""
        body = self._in_scope(scope, procedures=list(procedures))
        return self._post("/v1/procedures/batch", body, idempotency_key)

    def match_procedures(self, query: str, **fields: Any) -> Answer:
        """Return the procedures that a situation calls for (`POST /v1/procedures/match`)."""
        return self._post("/v1/procedures/match", self._in_scope(fields, query=query))

    def report_outcome(
        self, id_: UUID | str, *, succeeded: bool, idempotency_key: str | None = None, **fields: Any
    ) -> Answer:
        """Report the outcome of following a procedure (`POST /v1/procedures/{id}/outcomes`)."""
        return self._post(f"/v1/procedures/{id_}/outcomes", {**fields, "succeeded": succeeded}, idempotency_key)

    def learnt_procedures(self, **fields: Any) -> Answer:
        """List the procedures that runs of agents taught (`GET /v1/procedures/learnt`)."""
        return self._get("/v1/procedures/learnt", self._in_scope(fields))

    def decide_procedure(self, id_: UUID | str, state: str) -> Answer:
        """Confirm (`active`) or drop (`dropped`) a procedure (`PUT /v1/procedures/{id}/state`)."""
        return self.send(Call("PUT", f"/v1/procedures/{id_}/state", {"state": state}))

    def evidence(self, id_: UUID | str, **page: Any) -> Answer:
        """List the runs that taught a procedure (`GET /v1/procedures/{id}/evidence`)."""
        return self._get(f"/v1/procedures/{id_}/evidence", page)

    def add_document(
        self,
        content: str | bytes,
        *,
        if_version: int | None = None,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Answer:
        """Store a document, its text or the bytes of its file (`POST /v1/documents`).

        Args:
            content: Its text or bytes.
            if_version: The version that the document of its `key` has to have; 0 if it may not be there yet.
            idempotency_key: Identity of this write.
            fields: key, title, tags and the like, and the ids of its scope.
        """
        body = _encode_content(self._in_scope(fields, content=content))
        return self._post("/v1/documents", body, idempotency_key, _if_version(if_version))

    def add_documents(self, documents: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any) -> Answer:
        """Store documents, each with text or bytes as its content (`POST /v1/documents/batch`)."""
        body = self._in_scope(scope, documents=[_encode_content(document) for document in documents])
        return self._post("/v1/documents/batch", body, idempotency_key)

    def document(self, id_: UUID | str, *, content: bool = True) -> Answer:
        """Return a document, with its text if wanted (`GET /v1/documents/{id}`)."""
        return self._get(f"/v1/documents/{id_}", {"content": content})

    def documents(self, **fields: Any) -> Answer:
        """List the documents of a scope (`GET /v1/documents`)."""
        return self._get("/v1/documents", self._in_scope(fields))

    def passages(self, id_: UUID | str, **page: Any) -> Answer:
        """Return the passages of a document (`GET /v1/documents/{id}/passages`)."""
        return self._get(f"/v1/documents/{id_}/passages", page)

    def put_file(
        self,
        path: str,
        content: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        workspace: str | None = None,
        always: bool = False,
        mirror: str | None = None,
        **ids: Any,
    ) -> Answer:
        """Store a file of a workspace (`PUT /v1/workspaces/{workspace}/files/{path}`).

        Args:
            path: Within the workspace.
            content: Its text.
            if_match: The `etag` that the file has to have, or `*`.
            if_none_match: `*`, if there may be no file yet.
            workspace: The project; that of the client if not given.
            always: Whether every context block shows it.
            mirror: Name of the folder that it mirrors.
            ids: namespace, user and agent, where they differ from the client's.
        """
        body = {"content": content, "always": always, **_given(mirror=mirror)}
        headers = _conditions(if_match, if_none_match)
        return self.send(Call("PUT", self._file(path, workspace), body, self._file_ids(ids), headers))

    def file(self, path: str, *, version: int | None = None, workspace: str | None = None, **ids: Any) -> Answer:
        """Return a file with its text (`GET /v1/workspaces/{workspace}/files/{path}`)."""
        return self._get(self._file(path, workspace), self._file_ids(ids) | _given(version=version))

    def files(self, *, workspace: str | None = None, **fields: Any) -> Answer:
        """List files by prefix, a page from a cursor on (`GET /v1/workspaces/{workspace}/files`)."""
        return self._get(self._file("", workspace).rstrip("/"), self._file_ids(fields))

    def delete_file(self, path: str, *, if_match: str | None = None, workspace: str | None = None, **ids: Any) -> Done:
        """Delete a file (`DELETE /v1/workspaces/{workspace}/files/{path}`)."""
        headers = _conditions(if_match, None)
        return self._finish(Call("DELETE", self._file(path, workspace), None, self._file_ids(ids), headers))

    def delete_message(self, id_: UUID | str) -> Done:
        """Delete a message (`DELETE /v1/messages/{id}`)."""
        return self._finish(Call("DELETE", f"/v1/messages/{id_}"))

    def procedure(self, id_: UUID | str) -> Answer:
        """Return a procedure (`GET /v1/procedures/{id}`)."""
        return self._get(f"/v1/procedures/{id_}")

    def delete_procedure(self, id_: UUID | str) -> Done:
        """Delete a procedure (`DELETE /v1/procedures/{id}`)."""
        return self._finish(Call("DELETE", f"/v1/procedures/{id_}"))

    def delete_entity(self, id_: UUID | str) -> Done:
        """Delete an entity with its edges (`DELETE /v1/graph/entities/{id}`)."""
        return self._finish(Call("DELETE", f"/v1/graph/entities/{id_}"))

    def retract_edge(self, id_: UUID | str) -> Done:
        """Retract an edge (`DELETE /v1/graph/edges/{id}`)."""
        return self._finish(Call("DELETE", f"/v1/graph/edges/{id_}"))

    def delete_document(self, id_: UUID | str, *, if_version: int | None = None) -> Done:
        """Delete a document; with `if_version` only in that version (`DELETE /v1/documents/{id}`)."""
        return self._finish(Call("DELETE", f"/v1/documents/{id_}", headers=_if_version(if_version)))

    def notes(self, **fields: Any) -> Answer:
        """List the notes of a scope, the latest event first (`GET /v1/notes`)."""
        return self._get("/v1/notes", self._in_scope(fields))

    def profile(self, **scope: Any) -> Answer:
        """Return a user's profile (`GET /v1/profile`)."""
        return self._get("/v1/profile", self._in_scope(scope))

    def patch_profile(self, patch: Json, **scope: Any) -> Answer:
        """Merge a patch into a user's profile (`PATCH /v1/profile`)."""
        return self.send(Call("PATCH", "/v1/profile", self._in_scope(scope, patch=patch)))

    def profile_versions(self, **scope: Any) -> Answer:
        """Return the earlier states of the user's profile (`GET /v1/profile/versions`)."""
        return self._get("/v1/profile/versions", self._in_scope(scope))

    def revert_profile(self, version: int, **scope: Any) -> Answer:
        """Let an earlier state of the user's profile hold again (`POST /v1/profile/revert`)."""
        return self._post("/v1/profile/revert", self._in_scope(scope, version=version))

    def search(self, query: str, **fields: Any) -> Answer:
        """Search all tiers (`POST /v1/search`)."""
        return self._post("/v1/search", self._in_scope(fields, query=query))

    def context(self, query: str, **fields: Any) -> Answer:
        """Return a block ready for a prompt (`POST /v1/context`); as a list with `format="messages"`."""
        return self._post("/v1/context", self._in_scope(fields, query=query))

    def state(self, edges: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any) -> Answer:
        """State how entities stand to each other (`POST /v1/graph/edges`)."""
        return self._post("/v1/graph/edges", self._in_scope(scope, edges=list(edges)), idempotency_key)

    def state_fact(
        self, subject: str, relation: str, object_: str, *, idempotency_key: str | None = None, **fields: Any
    ) -> Answer:
        """State a fact and which ones it replaces (`POST /v1/facts`)."""
        body = self._in_scope(fields, subject=subject, relation=relation, object=object_)
        return self._post("/v1/facts", body, idempotency_key)

    def facts(self, subject: str, **fields: Any) -> Answer:
        """Return the facts about an entity with the time in which each holds (`GET /v1/facts`)."""
        return self._get("/v1/facts", self._in_scope(fields, subject=subject))

    def neighbours(self, name: str, **scope: Any) -> Answer:
        """Return the links of an entity (`GET /v1/graph/neighbours`)."""
        return self._get("/v1/graph/neighbours", self._in_scope(scope, name=name))

    def traverse(self, names: Sequence[str], **fields: Any) -> Answer:
        """Follow links from entities (`POST /v1/graph/traverse`)."""
        return self._post("/v1/graph/traverse", self._in_scope(fields, names=list(names)))

    def audit(self, *, repair: bool = False) -> Answer:
        """Compare every projection with Postgres (`POST /v1/audit`); needs an admin key."""
        return self._post("/v1/audit", {"repair": repair})

    def look_up_response(self, query: str, **fields: Any) -> Answer:
        """Look for the response to a question that was put before (`POST /v1/responses/lookup`)."""
        return self._post("/v1/responses/lookup", self._in_scope(fields, query=query))

    def put_response(self, query: str, response: Any, **fields: Any) -> Answer:
        """Keep the response to a question (`POST /v1/responses`)."""
        return self._post("/v1/responses", self._in_scope(fields, query=query, response=response))

    def cache_stats(self, workspace: str | None = None, agent: str | None = None) -> Answer:
        """Return the caches' counts and sizes (`GET /cache/stats`)."""
        return self._get("/cache/stats", _given(workspace=workspace, agent=agent))

    def clear_caches(
        self, workspace: str | None = None, agent: str | None = None, *, everything: bool = False
    ) -> Answer:
        """Clear the caches of an agent, a workspace or the tenant (`DELETE /cache`); needs an admin key."""
        params = _given(workspace=workspace, agent=agent, everything="true" if everything else None)
        return self.send(Call("DELETE", "/cache", params=params))

    def purge_expired_caches(self) -> Answer:
        """Remove expired rows from the caches' tables (`DELETE /cache/stats/expired`); needs an admin key."""
        return self.send(Call("DELETE", "/cache/stats/expired"))

    def messages(self, session: str, **fields: Any) -> Answer:
        """List the messages of a session (`GET /v1/sessions/{session}/messages`)."""
        return self._get(f"/v1/sessions/{quote(session, safe='')}/messages", self._in_scope(fields))

    def forecast(self, session: str, **scope: Any) -> Answer:
        """Return how full a session is (`GET /v1/sessions/{session}/forecast`)."""
        # Slashes of an id are quoted, too: a proxy may merge or cut them.
        return self._get(f"/v1/sessions/{quote(session, safe='')}/forecast", self._in_scope(scope))

    def archived_notes(self, *, limit: int = 100, offset: int = 0, **scope: Any) -> Answer:
        """List archived notes (`GET /v1/archive/notes`)."""
        ids = {name: id_ for name, id_ in self._in_scope(scope).items() if name in {"workspace", "namespace"}}
        return self._get("/v1/archive/notes", {**ids, "limit": limit, "offset": offset})

    def restore_notes(self, ids: Sequence[UUID | str]) -> Answer:
        """Bring archived notes back (`POST /v1/archive/restore`); needs an admin key."""
        return self._post("/v1/archive/restore", {"ids": [str(id_) for id_ in ids]})

    def erase_user(self, user: str) -> Answer:
        """Erase everything that belongs to a user (`DELETE /v1/users`); needs an admin key."""
        return self.send(Call("DELETE", "/v1/users", params={"user": user}))

    def erasures(self, user: str | None = None, *, limit: int = 20) -> Answer:
        """List the latest erasures (`GET /v1/erasures`); needs an admin key."""
        return self._get("/v1/erasures", _given(user=user, limit=limit))

    def erasure(self, id_: UUID | str) -> Answer:
        """Report on an erasure: its progress, or its receipt (`GET /v1/erasures/{id}`); needs an admin key."""
        return self._get(f"/v1/erasures/{id_}")

    def receipt_keys(self) -> Answer:
        """List the public keys that check receipts (`GET /v1/erasures/keys`); needs an admin key."""
        return self._get("/v1/erasures/keys")

    def events(self, after: str | None = None, *, limit: int = 100, **chosen: Any) -> Answer:
        """List events, the oldest first, after one of them (`GET /v1/events`)."""
        return self._get("/v1/events", _given(after=after, limit=limit, **chosen))

    def trash(self, *, limit: int = 100, **scope: Any) -> Answer:
        """List the deleted memories of a scope that can be brought back (`GET /v1/trash`)."""
        return self._get("/v1/trash", self._in_scope(scope, limit=limit))

    def restore(self, id_: str) -> Answer:
        """Bring a deleted memory back (`POST /v1/trash/{id}/restore`)."""
        return self.send(Call("POST", f"/v1/trash/{id_}/restore"))

    def make_webhook(self, url: str, **fields: Any) -> Answer:
        """Have events sent to an address (`POST /v1/webhooks`); needs an admin key."""
        return self._post("/v1/webhooks", {**fields, "url": url})

    def webhooks(self, workspace: str | None = None) -> Answer:
        """List webhooks (`GET /v1/webhooks`); needs an admin key."""
        return self._get("/v1/webhooks", _given(workspace=workspace))

    def delete_webhook(self, id_: str) -> Done:
        """Send nothing more to an address (`DELETE /v1/webhooks/{id}`); needs an admin key."""
        return self._finish(Call("DELETE", f"/v1/webhooks/{id_}"))

    def run_job(self, job: str, *, idempotency_key: str | None = None, **fields: Any) -> Answer:
        """Order a maintenance job on the key's tenant (`POST /v1/jobs`); needs an admin key."""
        return self._post("/v1/jobs", {**fields, "job": job}, idempotency_key)

    def job_runs(
        self, job: str | None = None, *, workspace: str | None = None, namespace: str | None = None, limit: int = 20
    ) -> Answer:
        """List the latest runs of jobs (`GET /v1/jobs`); needs an admin key."""
        return self._get("/v1/jobs", _given(job=job, workspace=workspace, namespace=namespace, limit=limit))

    def job_run(self, id_: str) -> Answer:
        """Report on a run: its progress, or its result (`GET /v1/jobs/{id}`); needs an admin key."""
        return self._get(f"/v1/jobs/{id_}")

    def undo_job(self, id_: str) -> Answer:
        """Take a run back (`POST /v1/jobs/{id}/undo`); needs an admin key."""
        return self.send(Call("POST", f"/v1/jobs/{id_}/undo"))

    def job_schedule(self) -> Answer:
        """Return when each job runs by itself (`GET /v1/jobs/schedule`); needs an admin key."""
        return self._get("/v1/jobs/schedule")

    def make_key(self, name: str, role: str, **narrowing: Any) -> Answer:
        """Make a key, whose secret is in this answer alone (`POST /v1/keys`); needs an admin key."""
        return self._post("/v1/keys", {**narrowing, "name": name, "role": role})

    def keys(self, *, limit: int = 100, offset: int = 0) -> Answer:
        """List the tenant's keys, without their secrets (`GET /v1/keys`); needs an admin key."""
        return self._get("/v1/keys", {"limit": limit, "offset": offset})

    def rotate_key(self, id_: UUID | str) -> Answer:
        """Give a key another secret (`POST /v1/keys/{id}/rotate`); needs an admin key."""
        return self.send(Call("POST", f"/v1/keys/{id_}/rotate"))

    def revoke_key(self, id_: UUID | str, *, last: bool = False) -> Done:
        """Make a key invalid (`DELETE /v1/keys/{id}`); needs an admin key."""
        return self._finish(Call("DELETE", f"/v1/keys/{id_}", params={"last": "true"} if last else {}))

    def quotas(self) -> Answer:
        """Return the quotas of the tenant and of this key (`GET /v1/quotas`); needs an admin key."""
        return self._get("/v1/quotas")

    def set_key_quotas(self, id_: UUID | str, **amounts: int) -> Answer:
        """Set the quotas of a key (`PUT /v1/keys/{id}/quotas`); needs an admin key."""
        return self.send(Call("PUT", f"/v1/keys/{id_}/quotas", amounts))

    def change_notes(self, *, idempotency_key: str | None = None, **fields: Any) -> Answer:
        """Tag, change or move all notes that match (`POST /v1/notes/bulk`)."""
        return self._post("/v1/notes/bulk", self._in_scope(fields), idempotency_key)

    def delete_notes(self, *, idempotency_key: str | None = None, **fields: Any) -> Answer:
        """Delete all notes that match (`POST /v1/notes/bulk/delete`)."""
        return self._post("/v1/notes/bulk/delete", self._in_scope(fields), idempotency_key)

    def operations(self, **fields: Any) -> Answer:
        """List the latest operations over many memories (`GET /v1/operations`)."""
        return self._get("/v1/operations", self._in_scope(fields))

    def operation(self, id_: UUID | str) -> Answer:
        """Report on an operation over many memories (`GET /v1/operations/{id}`)."""
        return self._get(f"/v1/operations/{id_}")

    def search_many(self, searches: Sequence[str | Json], **fields: Any) -> Answer:
        """Run up to 16 searches of one scope at once (`POST /v1/search/batch`)."""
        return self._post("/v1/search/batch", self._in_scope(fields, searches=list(searches)))

    def feedback(self, id_: UUID | str) -> Answer:
        """Show the votes on a memory, and whether it is pinned (`GET /v1/memories/{id}/feedback`)."""
        return self._get(f"/v1/memories/{id_}/feedback")

    def vote(self, id_: UUID | str, vote: str) -> Answer:
        """Judge a memory that a search found: useful or wrong (`PUT /v1/memories/{id}/feedback`)."""
        return self.send(Call("PUT", f"/v1/memories/{id_}/feedback", {"vote": vote}))

    def take_vote_back(self, id_: UUID | str) -> Answer:
        """Take the own vote on a memory back (`DELETE /v1/memories/{id}/feedback`)."""
        return self.send(Call("DELETE", f"/v1/memories/{id_}/feedback"))

    def pin(self, id_: UUID | str) -> Answer:
        """Pin a memory (`PUT /v1/memories/{id}/pin`)."""
        return self.send(Call("PUT", f"/v1/memories/{id_}/pin"))

    def unpin(self, id_: UUID | str) -> Answer:
        """Let a pinned memory fade again (`DELETE /v1/memories/{id}/pin`)."""
        return self.send(Call("DELETE", f"/v1/memories/{id_}/pin"))

    def tenant_usage(self, **days: str) -> Answer:
        """Show what the tenant used by day (`GET /v1/usage`); needs an admin key."""
        return self._get("/v1/usage", days)

    def delete_scope(self, *, idempotency_key: str | None = None, **ids: Any) -> Answer:
        """Delete the memories of a session, a namespace, a workspace or the tenant (`POST /v1/scopes/delete`).

        The ids that this client sends with other calls do not count here. Needs an admin key.
        """
        return self._post("/v1/scopes/delete", ids, idempotency_key)

    def undo_operation(self, id_: UUID | str) -> Answer:
        """Bring back what a deletion of a scope took (`POST /v1/operations/{id}/undo`); needs an admin key."""
        return self.send(Call("POST", f"/v1/operations/{id_}/undo"))

    def ready(self) -> Answer:
        """Return the state of every part, ready or not (`GET /readyz`)."""
        return self._get("/readyz")

    def status(self) -> Answer:
        """Return the release, and how the embedding model is run (`GET /v1/status`)."""
        return self._get("/v1/status")

    def _in_scope(self, fields: Json, **own: Any) -> Json:
        return {**self._scope, **fields, **own}

    def _file(self, path: str, workspace: str | None) -> str:
        project = workspace or self._scope.get("workspace") or "default"
        return f"/v1/workspaces/{quote(str(project), safe='')}/files/{quote(path)}"

    def _file_ids(self, fields: Json) -> Json:
        own = {name: id_ for name, id_ in self._scope.items() if name in ("namespace", "user", "agent")}
        return {**own, **fields}

    def _get(self, path: str, params: Json | None = None) -> Answer:
        return self.send(Call("GET", path, params=params or {}))

    def _post(
        self, path: str, body: Json, idempotency_key: str | None = None, conditions: dict[str, str] | None = None
    ) -> Answer:
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self.send(Call("POST", path, body, headers=headers | (conditions or {})))


def _if_version(version: int | None) -> dict[str, str]:
    """Return the headers that ask for a version; 0 stands for no memory at all."""
    if version == 0:
        return {"If-None-Match": "*"}
    return {} if version is None else {"If-Match": f'"{version}"'}


def _conditions(if_match: str | None, if_none_match: str | None) -> dict[str, str]:
    given = {"If-Match": if_match, "If-None-Match": if_none_match}
    return {name: etag if etag == "*" else f'"{etag}"' for name, etag in given.items() if etag is not None}


def _given(**values: object) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _encode_content(document: Json) -> Json:
    """Replace a document's bytes, which JSON cannot hold, by base64."""
    content = document.get("content")
    if not isinstance(content, bytes):
        return document
    others = {name: value for name, value in document.items() if name != "content"}
    return {**others, "content_base64": base64.b64encode(content).decode()}
