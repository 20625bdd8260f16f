"""Every call of the API, written once: a client adds how it is sent, and the form of its answer."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from lamina.client.routes import Call, Command, Json, ListCall, ListRoute, Method, Route, segment

if TYPE_CHECKING:
    from lamina.client import models

__all__ = ["Call", "Calls", "Json"]
route, command, listing = Route, Command, ListRoute
QUERY_IDS = ("workspace", "namespace", "user", "agent", "swarm")


class Calls(ABC):
    """The methods of every client.

    `Client` and `Lamina` return answers, `AsyncClient` and `AsyncLamina` coroutines of them. A list, such as `notes`,
    also has `each`, which yields the items of all its pages.

    Args:
        scope: Ids sent with every request that has a scope.
    """

    def __init__(self, scope: Json) -> None:
        self._scope = {name: id_ for name, id_ in scope.items() if id_ is not None}

    @abstractmethod
    def answer(self, method: Method[Any, Any], call: Call[Any]) -> Any:
        """Send the call of a method and return its answer.

        Raises:
            LaminaError: The service's error, or that it does not answer.
        """

    @route
    def record(
        self, /, messages: Sequence[Json], *, idempotency_key: str | None = None, **fields: Any
    ) -> "Call[models.TurnOut]":
        """Hand over the messages of a turn, with its tool calls, usage and outcome (`POST /v1/turns`)."""
        return self._post("/v1/turns", self._in_scope(fields, messages=list(messages)), idempotency_key)

    @listing
    def turns(self, /, **fields: Any) -> "ListCall[models.AgentTurnsOut, models.AgentTurnOut]":
        """List turns with tool calls, usage or an outcome (`GET /v1/turns`)."""
        return self._list("turns", "/v1/turns", self._in_scope(fields))

    @route
    def usage(self, /, **fields: Any) -> "Call[models.UsageSumsOut]":
        """Return tokens, cost and outcomes of agents (`GET /v1/turns/usage`)."""
        return self._get("/v1/turns/usage", fields)

    @route
    def add(self, /, content: str, *, idempotency_key: str | None = None, **fields: Any) -> "Call[models.PutResult]":
        """Store a note (`POST /v1/notes`)."""
        return self._post("/v1/notes", self._in_scope(fields, content=content), idempotency_key)

    @route
    def add_many(
        self, /, notes: Sequence[str | Json], *, idempotency_key: str | None = None, **scope: Any
    ) -> "Call[models.BatchOut]":
        """Store notes, with a result per item (`POST /v1/notes/batch`)."""
        return self._post("/v1/notes/batch", self._in_scope(scope, notes=list(notes)), idempotency_key)

    @route
    def note(self, /, id_: UUID | str) -> "Call[models.NoteOut]":
        """Return a note (`GET /v1/notes/{id}`)."""
        return self._get(f"/v1/notes/{segment(id_)}")

    @route
    def note_versions(self, /, id_: UUID | str) -> "Call[models.NoteVersionsOut]":
        """List the earlier states of a note (`GET /v1/notes/{id}/versions`)."""
        return self._get(f"/v1/notes/{segment(id_)}/versions")

    @route
    def workspace_settings(self, /, workspace: str) -> "Call[models.WorkspaceSettingsOut]":
        """Return the settings of a workspace (`GET /v1/workspaces/{workspace}/settings`)."""
        return self._get(f"/v1/workspaces/{segment(workspace)}/settings")

    @route
    def set_workspace_settings(self, /, workspace: str, **settings: Any) -> "Call[models.WorkspaceSettingsOut]":
        """Replace the settings of a workspace (`PUT /v1/workspaces/{workspace}/settings`)."""
        return Call("PUT", f"/v1/workspaces/{segment(workspace)}/settings", settings)

    @route
    def change(self, /, id_: UUID | str, *, if_version: int | None = None, **fields: Any) -> "Call[models.NoteOut]":
        """Change fields of a note; with `if_version` only in that version (`PATCH /v1/notes/{id}`)."""
        return Call("PATCH", f"/v1/notes/{segment(id_)}", fields, headers=_if_version(if_version))

    @command
    def delete(self, /, id_: UUID | str, *, if_version: int | None = None) -> "Call[None]":
        """Delete a note; with `if_version` only in that version (`DELETE /v1/notes/{id}`)."""
        return Call("DELETE", f"/v1/notes/{segment(id_)}", headers=_if_version(if_version))

    @route
    def add_procedure(
        self, /, trigger: str, action: str, *, idempotency_key: str | None = None, **fields: Any
    ) -> "Call[models.PutProcedureOut]":
        """Store a procedure (`POST /v1/procedures`)."""
        return self._post("/v1/procedures", self._in_scope(fields, trigger=trigger, action=action), idempotency_key)

    @route
    def add_procedures(
        self, /, procedures: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any
    ) -> "Call[models.BatchOut]":
        """Store procedures, with a result per item (`POST /v1/procedures/batch`)."""
        body = self._in_scope(scope, procedures=list(procedures))
        return self._post("/v1/procedures/batch", body, idempotency_key)

    @listing
    def procedures(self, /, **fields: Any) -> "ListCall[models.ProceduresOut, models.ProcedureOut]":
        """List the procedures of a workspace (`GET /v1/procedures`)."""
        return self._list("procedures", "/v1/procedures", self._in_query(fields))

    @route
    def change_procedure(self, /, id_: UUID | str, **fields: Any) -> "Call[models.ProcedureOut]":
        """Change fields of a procedure (`PATCH /v1/procedures/{id}`)."""
        return Call("PATCH", f"/v1/procedures/{segment(id_)}", fields)

    @route
    def match_procedures(self, /, query: str, **fields: Any) -> "Call[models.MatchesOut]":
        """Return the procedures that a situation calls for (`POST /v1/procedures/match`)."""
        return self._post("/v1/procedures/match", self._in_scope(fields, query=query))

    @route
    def report_outcome(
        self, /, id_: UUID | str, *, succeeded: bool, idempotency_key: str | None = None, **fields: Any
    ) -> "Call[models.ReinforcedOut]":
        """Report the outcome of following a procedure (`POST /v1/procedures/{id}/outcomes`)."""
        return self._post(
            f"/v1/procedures/{segment(id_)}/outcomes", {**fields, "succeeded": succeeded}, idempotency_key
        )

    @listing
    def outcomes(self, /, id_: UUID | str, **page: Any) -> "ListCall[models.OutcomesOut, models.OutcomeOut]":
        """List the reported outcomes of a procedure (`GET /v1/procedures/{id}/outcomes`)."""
        return self._list("outcomes", f"/v1/procedures/{segment(id_)}/outcomes", page)

    @listing
    def learnt_procedures(self, /, **fields: Any) -> "ListCall[models.ProceduresOut, models.ProcedureOut]":
        """List the procedures that runs of agents taught (`GET /v1/procedures/learnt`)."""
        return self._list("procedures", "/v1/procedures/learnt", self._in_query(fields))

    @route
    def decide_procedure(self, /, id_: UUID | str, state: str) -> "Call[models.ProcedureOut]":
        """Confirm (`active`) or drop (`dropped`) a procedure (`PUT /v1/procedures/{id}/state`)."""
        return Call("PUT", f"/v1/procedures/{segment(id_)}/state", {"state": state})

    @listing
    def evidence(self, /, id_: UUID | str, **page: Any) -> "ListCall[models.AgentTurnsOut, models.AgentTurnOut]":
        """List the runs that taught a procedure (`GET /v1/procedures/{id}/evidence`)."""
        return self._list("turns", f"/v1/procedures/{segment(id_)}/evidence", page)

    @route
    def add_document(
        self,
        /,
        content: str | bytes,
        *,
        if_version: int | None = None,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> "Call[models.PutDocumentOut]":
        """Store a document, its text or the bytes of its file (`POST /v1/documents`).

        Args:
            content: Its text or bytes.
            if_version: The version that the document of its `key` has to have; 0 if it may not be there yet.
            idempotency_key: Identity of this write.
            fields: key, title, tags and the like, and the ids of its scope.
        """
        body = _encode_content(self._in_scope(fields, content=content))
        return self._post("/v1/documents", body, idempotency_key, _if_version(if_version))

    @route
    def add_documents(
        self, /, documents: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any
    ) -> "Call[models.PutDocumentsOut]":
        """Store documents, each with text or bytes as its content (`POST /v1/documents/batch`)."""
        body = self._in_scope(scope, documents=[_encode_content(document) for document in documents])
        return self._post("/v1/documents/batch", body, idempotency_key)

    @route
    def upload_document(
        self,
        /,
        content: bytes,
        name: str,
        *,
        media_type: str = "application/octet-stream",
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> "Call[models.PutDocumentOut]":
        """Store a document as the file that it is, without base64 (`POST /v1/documents/upload`)."""
        return Call(
            "POST",
            "/v1/documents/upload",
            form=self._in_scope(fields),
            file=(name, content, media_type),
            headers=_given(**{"Idempotency-Key": idempotency_key}),
        )

    @route
    def document(self, /, id_: UUID | str, *, content: bool = True) -> "Call[models.DocumentOut]":
        """Return a document, with its text if wanted (`GET /v1/documents/{id}`)."""
        return self._get(f"/v1/documents/{segment(id_)}", {"content": content})

    @listing
    def documents(self, /, **fields: Any) -> "ListCall[models.DocumentsOut, models.DocumentOut]":
        """List the documents of a scope (`GET /v1/documents`)."""
        return self._list("documents", "/v1/documents", self._in_query(fields))

    @listing
    def passages(self, /, id_: UUID | str, **page: Any) -> "ListCall[models.PassagesOut, models.PassageOut]":
        """Return the passages of a document (`GET /v1/documents/{id}/passages`)."""
        return self._list("passages", f"/v1/documents/{segment(id_)}/passages", page)

    @route
    def put_file(
        self,
        /,
        path: str,
        content: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        workspace: str | None = None,
        always: bool = False,
        mirror: str | None = None,
        **ids: Any,
    ) -> "Call[models.FileOut]":
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
        return Call("PUT", self._file(path, workspace), body, self._file_ids(ids), headers)

    @route
    def file(
        self, /, path: str, *, version: int | None = None, workspace: str | None = None, **ids: Any
    ) -> "Call[models.FileOut]":
        """Return a file with its text (`GET /v1/workspaces/{workspace}/files/{path}`)."""
        return self._get(self._file(path, workspace), self._file_ids(ids) | _given(version=version))

    @listing
    def files(self, /, *, workspace: str | None = None, **fields: Any) -> "ListCall[models.FilesOut, models.FileOut]":
        """List files by prefix, a page from a cursor on (`GET /v1/workspaces/{workspace}/files`)."""
        return self._list("files", self._files(workspace), self._file_ids(fields))

    @command
    def delete_file(
        self, /, path: str, *, if_match: str | None = None, workspace: str | None = None, **ids: Any
    ) -> "Call[None]":
        """Delete a file (`DELETE /v1/workspaces/{workspace}/files/{path}`)."""
        headers = _conditions(if_match, None)
        return Call("DELETE", self._file(path, workspace), None, self._file_ids(ids), headers)

    @command
    def delete_message(self, /, id_: UUID | str) -> "Call[None]":
        """Delete a message (`DELETE /v1/messages/{id}`)."""
        return Call("DELETE", f"/v1/messages/{segment(id_)}")

    @route
    def procedure(self, /, id_: UUID | str) -> "Call[models.ProcedureOut]":
        """Return a procedure (`GET /v1/procedures/{id}`)."""
        return self._get(f"/v1/procedures/{segment(id_)}")

    @command
    def delete_procedure(self, /, id_: UUID | str) -> "Call[None]":
        """Delete a procedure (`DELETE /v1/procedures/{id}`)."""
        return Call("DELETE", f"/v1/procedures/{segment(id_)}")

    @command
    def delete_entity(self, /, id_: UUID | str) -> "Call[None]":
        """Delete an entity with its edges (`DELETE /v1/graph/entities/{id}`)."""
        return Call("DELETE", f"/v1/graph/entities/{segment(id_)}")

    @command
    def retract_edge(self, /, id_: UUID | str) -> "Call[None]":
        """Retract an edge (`DELETE /v1/graph/edges/{id}`)."""
        return Call("DELETE", f"/v1/graph/edges/{segment(id_)}")

    @command
    def delete_document(self, /, id_: UUID | str, *, if_version: int | None = None) -> "Call[None]":
        """Delete a document; with `if_version` only in that version (`DELETE /v1/documents/{id}`)."""
        return Call("DELETE", f"/v1/documents/{segment(id_)}", headers=_if_version(if_version))

    @route
    def memory(self, /, id_: UUID | str) -> "Call[models.MemoryOut]":
        """Return a memory of any kind by the id that a search returned (`GET /v1/memories/{id}`)."""
        return self._get(f"/v1/memories/{segment(id_)}")

    @route
    def change_memory(self, /, id_: UUID | str, **fields: Any) -> "Call[models.MemoryOut]":
        """Change fields of a memory, those of its kind (`PATCH /v1/memories/{id}`)."""
        return Call("PATCH", f"/v1/memories/{segment(id_)}", fields)

    @route
    def delete_memory(self, /, id_: UUID | str) -> "Call[models.ForgottenOut]":
        """Delete a memory of any kind (`DELETE /v1/memories/{id}`)."""
        return Call("DELETE", f"/v1/memories/{segment(id_)}")

    @listing
    def workspaces(self, /, **page: Any) -> "ListCall[models.WorkspacesOut, models.WorkspaceOut]":
        """List the workspaces with what is in them (`GET /v1/workspaces`)."""
        return self._list("workspaces", "/v1/workspaces", page)

    @listing
    def namespaces(self, /, **fields: Any) -> "ListCall[models.NamespacesOut, models.NamespaceOut]":
        """List the namespaces of a workspace (`GET /v1/namespaces`)."""
        return self._list("namespaces", "/v1/namespaces", {**self._ids("workspace"), **fields})

    @listing
    def sessions(self, /, **fields: Any) -> "ListCall[models.SessionsOut, models.SessionOut]":
        """List the sessions of a namespace (`GET /v1/sessions`)."""
        return self._list("sessions", "/v1/sessions", self._in_query(fields))

    @listing
    def users(self, /, **fields: Any) -> "ListCall[models.UsersOut, models.UserOut]":
        """List the users of a namespace (`GET /v1/users`)."""
        return self._list("users", "/v1/users", {**self._ids("workspace", "namespace"), **fields})

    @listing
    def agents(self, /, **fields: Any) -> "ListCall[models.AgentsOut, models.AgentOut]":
        """List the agents of a namespace (`GET /v1/agents`)."""
        return self._list("agents", "/v1/agents", {**self._ids("workspace", "namespace"), **fields})

    @listing
    def entities(self, /, **fields: Any) -> "ListCall[models.EntitiesOut, models.EntityOut]":
        """List the entities of a namespace (`GET /v1/graph/entities`)."""
        return self._list("entities", "/v1/graph/entities", self._in_query(fields))

    @listing
    def notes(self, /, **fields: Any) -> "ListCall[models.NotesOut, models.NoteOut]":
        """List the notes of a scope, the latest event first (`GET /v1/notes`)."""
        return self._list("notes", "/v1/notes", self._in_query(fields))

    @route
    def profile(self, /, **scope: Any) -> "Call[models.ProfileOut]":
        """Return a user's profile (`GET /v1/profile`)."""
        return self._get("/v1/profile", self._in_query(scope))

    @route
    def patch_profile(self, /, patch: Json, **scope: Any) -> "Call[models.ProfileOut]":
        """Merge a patch into a user's profile (`PATCH /v1/profile`)."""
        return Call("PATCH", "/v1/profile", self._in_scope(scope, patch=patch))

    @listing
    def profile_versions(self, /, **scope: Any) -> "ListCall[models.ProfileVersionsOut, models.ProfileVersionOut]":
        """Return the earlier states of the user's profile (`GET /v1/profile/versions`)."""
        return self._list("versions", "/v1/profile/versions", self._in_query(scope))

    @route
    def revert_profile(self, /, version: int, **scope: Any) -> "Call[models.ProfileOut]":
        """Let an earlier state of the user's profile hold again (`POST /v1/profile/revert`)."""
        return self._post("/v1/profile/revert", self._in_scope(scope, version=version))

    @route
    def user_profile(self, /, user: str) -> "Call[models.ProfileOut]":
        """Return a user's profile of the whole tenant (`GET /v1/users/profile`)."""
        return self._get("/v1/users/profile", {"user": user})

    @route
    def patch_user_profile(self, /, user: str, patch: Json) -> "Call[models.ProfileOut]":
        """Merge a patch into a user's profile of the whole tenant (`PATCH /v1/users/profile`)."""
        return Call("PATCH", "/v1/users/profile", {"user": user, "patch": patch})

    @listing
    def user_profile_versions(
        self, /, user: str, **page: Any
    ) -> "ListCall[models.ProfileVersionsOut, models.ProfileVersionOut]":
        """Return the earlier states of that profile (`GET /v1/users/profile/versions`)."""
        return self._list("versions", "/v1/users/profile/versions", {"user": user, **page})

    @route
    def revert_user_profile(self, /, user: str, version: int) -> "Call[models.ProfileOut]":
        """Let an earlier state of that profile hold again (`POST /v1/users/profile/revert`)."""
        return self._post("/v1/users/profile/revert", {"user": user, "version": version})

    @route
    def search(self, /, query: str, **fields: Any) -> "Call[models.SearchOut]":
        """Search all tiers (`POST /v1/search`)."""
        return self._post("/v1/search", self._in_scope(fields, query=query))

    @route
    def context(self, /, query: str, **fields: Any) -> "Call[models.ContextOut]":
        """Return a block ready for a prompt (`POST /v1/context`); as a list with `format="messages"`."""
        return self._post("/v1/context", self._in_scope(fields, query=query))

    @route
    def add_entities(
        self, /, entities: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any
    ) -> "Call[models.PutNodesOut]":
        """Store entities of the graph (`POST /v1/graph/entities`)."""
        return self._post("/v1/graph/entities", self._in_scope(scope, entities=list(entities)), idempotency_key)

    @route
    def state(
        self, /, edges: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any
    ) -> "Call[models.PutNodesOut]":
        """State how entities stand to each other (`POST /v1/graph/edges`)."""
        return self._post("/v1/graph/edges", self._in_scope(scope, edges=list(edges)), idempotency_key)

    @route
    def state_fact(
        self, /, subject: str, relation: str, object_: str, *, idempotency_key: str | None = None, **fields: Any
    ) -> "Call[models.StatedFactOut]":
        """State a fact and which ones it replaces (`POST /v1/facts`)."""
        body = self._in_scope(fields, subject=subject, relation=relation, object=object_)
        return self._post("/v1/facts", body, idempotency_key)

    @listing
    def facts(self, /, subject: str, **fields: Any) -> "ListCall[models.FactsOut, models.FactOut]":
        """Return the facts about an entity with the time in which each holds (`GET /v1/facts`)."""
        return self._list("facts", "/v1/facts", self._in_query(fields, subject=subject))

    @route
    def neighbours(self, /, name: str, **scope: Any) -> "Call[models.NeighboursOut]":
        """Return the links of an entity (`GET /v1/graph/neighbours`)."""
        return self._get("/v1/graph/neighbours", self._in_query(scope, name=name))

    @route
    def traverse(self, /, names: Sequence[str], **fields: Any) -> "Call[models.TraverseOut]":
        """Follow links from entities (`POST /v1/graph/traverse`)."""
        return self._post("/v1/graph/traverse", self._in_scope(fields, names=list(names)))

    @route
    def audit(self, /, *, repair: bool = False) -> "Call[models.AuditOut]":
        """Compare every projection with Postgres (`POST /v1/audit`); needs an admin key."""
        return self._post("/v1/audit", {"repair": repair})

    @route
    def look_up_response(self, /, query: str, **fields: Any) -> "Call[models.LookupOut]":
        """Look for the response to a question that was put before (`POST /v1/responses/lookup`)."""
        return self._post("/v1/responses/lookup", self._in_scope(fields, query=query))

    @route
    def put_response(self, /, query: str, response: Any, **fields: Any) -> "Call[models.PutResponseOut]":
        """Keep the response to a question (`POST /v1/responses`)."""
        return self._post("/v1/responses", self._in_scope(fields, query=query, response=response))

    @route
    def cache_stats(self, /, workspace: str | None = None, agent: str | None = None) -> "Call[models.CacheStatsOut]":
        """Return the caches' counts and sizes (`GET /cache/stats`)."""
        return self._get("/cache/stats", _given(workspace=workspace, agent=agent))

    @route
    def clear_caches(
        self, /, workspace: str | None = None, agent: str | None = None, *, everything: bool = False
    ) -> "Call[models.ClearedOut]":
        """Clear the caches of an agent, a workspace or the tenant (`DELETE /cache`); needs an admin key."""
        params = _given(workspace=workspace, agent=agent, everything="true" if everything else None)
        return Call("DELETE", "/cache", params=params)

    @route
    def purge_expired_caches(self) -> "Call[models.ExpiredOut]":
        """Remove expired rows from the caches' tables (`DELETE /cache/stats/expired`); needs an admin key."""
        return Call("DELETE", "/cache/stats/expired")

    @route
    def cache_health(self) -> "Call[models.CacheHealthOut]":
        """Report whether the caches answer (`GET /cache/health`)."""
        return self._get("/cache/health")

    @route
    def record_cache_metrics(
        self, /, calls: Sequence[Json], *, idempotency_key: str | None = None
    ) -> "Call[models.RecordedOut]":
        """Record how much of its prompts a model's provider had cached (`POST /v1/providers/cache-metrics`)."""
        return self._post("/v1/providers/cache-metrics", {"calls": list(calls)}, idempotency_key)

    @route
    def cache_metrics(self, /, **fields: Any) -> "Call[models.ProviderRatesOut]":
        """Return the hit rates of the providers' caches (`GET /v1/providers/cache-metrics`)."""
        return self._get("/v1/providers/cache-metrics", fields)

    @route
    def forecast(self, /, session: str, **scope: Any) -> "Call[models.ForecastOut]":
        """Return how full a session is (`GET /v1/sessions/{session}/forecast`)."""
        return self._get(f"/v1/sessions/{segment(session)}/forecast", self._in_query(scope))

    @listing
    def messages(self, /, session: str, **fields: Any) -> "ListCall[models.HistoryOut, models.SessionMessageOut]":
        """List the messages of a session (`GET /v1/sessions/{session}/messages`)."""
        return self._list("messages", f"/v1/sessions/{segment(session)}/messages", self._in_query(fields))

    @route
    def share(
        self, /, to_workspace: str, part: str, *, idempotency_key: str | None = None, **fields: Any
    ) -> "Call[models.ShareOut]":
        """Let another workspace search a part of this one (`POST /v1/shares`); needs the right to share."""
        own = {"to_workspace": to_workspace, "segment": part}
        return self._post("/v1/shares", {**self._ids("workspace", "namespace"), **fields, **own}, idempotency_key)

    @route
    def shares(self, /, **fields: Any) -> "Call[models.SharesOut]":
        """List what a workspace shares, and what is shared with it (`GET /v1/shares`)."""
        return self._get("/v1/shares", {**self._ids("workspace"), **fields})

    @command
    def revoke_share(self, /, id_: UUID | str) -> "Call[None]":
        """End a share (`DELETE /v1/shares/{id}`)."""
        return Call("DELETE", f"/v1/shares/{segment(id_)}")

    @route
    def memory_profile(self, /, **scope: Any) -> "Call[models.MemoryProfileOut]":
        """Return how an agent searches by default (`GET /v1/memory-profile`)."""
        return self._get("/v1/memory-profile", self._in_query(scope))

    @route
    def set_memory_profile(self, /, **fields: Any) -> "Call[models.MemoryProfileOut]":
        """Replace how an agent searches by default (`PUT /v1/memory-profile`)."""
        return Call("PUT", "/v1/memory-profile", self._in_scope(fields))

    @command
    def delete_memory_profile(self, /, **scope: Any) -> "Call[None]":
        """Let an agent search by the defaults again (`DELETE /v1/memory-profile`)."""
        return Call("DELETE", "/v1/memory-profile", params=self._in_query(scope))

    @listing
    def archived_notes(self, /, **fields: Any) -> "ListCall[models.ArchivedNotesOut, models.ArchivedNoteOut]":
        """List archived notes (`GET /v1/archive/notes`)."""
        return self._list("notes", "/v1/archive/notes", {**self._ids("workspace", "namespace"), **fields})

    @route
    def restore_notes(self, /, ids: Sequence[UUID | str]) -> "Call[models.RestoredOut]":
        """Bring archived notes back (`POST /v1/archive/restore`); needs an admin key."""
        return self._post("/v1/archive/restore", {"ids": [str(id_) for id_ in ids]})

    @command
    def delete_archived_note(self, /, id_: UUID | str) -> "Call[None]":
        """Delete an archived note for good (`DELETE /v1/archive/notes/{id}`); needs an admin key."""
        return Call("DELETE", f"/v1/archive/notes/{segment(id_)}")

    @route
    def erase_user(self, /, user: str) -> "Call[models.ErasureOut]":
        """Erase everything that belongs to a user (`DELETE /v1/users`); needs an admin key."""
        return Call("DELETE", "/v1/users", params={"user": user})

    @listing
    def erasures(
        self, /, user: str | None = None, *, limit: int = 20, **page: Any
    ) -> "ListCall[models.ErasuresOut, models.ErasureOut]":
        """List the latest erasures (`GET /v1/erasures`); needs an admin key."""
        return self._list("erasures", "/v1/erasures", _given(user=user, limit=limit, **page))

    @route
    def erasure(self, /, id_: UUID | str) -> "Call[models.ErasureOut]":
        """Report on an erasure: its progress, or its receipt (`GET /v1/erasures/{id}`); needs an admin key."""
        return self._get(f"/v1/erasures/{segment(id_)}")

    @route
    def receipt_keys(self) -> "Call[models.ReceiptKeysOut]":
        """List the public keys that check receipts (`GET /v1/erasures/keys`); needs an admin key."""
        return self._get("/v1/erasures/keys")

    @listing
    def events(
        self, /, after: UUID | str | None = None, **fields: Any
    ) -> "ListCall[models.EventsOut, models.EventOut]":
        """List events, the oldest first, after one of them (`GET /v1/events`)."""
        return self._list("events", "/v1/events", _given(after=after, **fields))

    @listing
    def trash(self, /, **fields: Any) -> "ListCall[models.TrashOut, models.DiscardedOut]":
        """List the deleted memories of a scope that can be brought back (`GET /v1/trash`)."""
        return self._list("entries", "/v1/trash", self._in_query(fields))

    @route
    def restore(self, /, id_: str) -> "Call[models.DiscardedOut]":
        """Bring a deleted memory back (`POST /v1/trash/{id}/restore`)."""
        return Call("POST", f"/v1/trash/{segment(id_)}/restore")

    @route
    def make_webhook(self, /, url: str, **fields: Any) -> "Call[models.WebhookSecretOut]":
        """Have events sent to an address (`POST /v1/webhooks`); needs an admin key."""
        return self._post("/v1/webhooks", {**fields, "url": url})

    @listing
    def webhooks(
        self, /, workspace: str | None = None, **page: Any
    ) -> "ListCall[models.WebhooksOut, models.WebhookOut]":
        """List webhooks (`GET /v1/webhooks`); needs an admin key."""
        return self._list("webhooks", "/v1/webhooks", _given(workspace=workspace, **page))

    @route
    def webhook(self, /, id_: UUID | str) -> "Call[models.WebhookOut]":
        """Show how a webhook gets on (`GET /v1/webhooks/{id}`); needs an admin key."""
        return self._get(f"/v1/webhooks/{segment(id_)}")

    @route
    def rotate_webhook(self, /, id_: UUID | str) -> "Call[models.WebhookSecretOut]":
        """Give a webhook a new secret (`POST /v1/webhooks/{id}/rotate`); needs an admin key."""
        return Call("POST", f"/v1/webhooks/{segment(id_)}/rotate")

    @listing
    def dead_letters(self, /, id_: UUID | str, **page: Any) -> "ListCall[models.DeadLettersOut, models.DeadLetterOut]":
        """List the events that a webhook did not take (`GET /v1/webhooks/{id}/dead-letters`); needs an admin key."""
        return self._list("dead_letters", f"/v1/webhooks/{segment(id_)}/dead-letters", page)

    @route
    def retry_dead_letters(
        self, /, id_: UUID | str, events: Sequence[UUID | str] | None = None
    ) -> "Call[models.RetryOut]":
        """Send dead letters again, all or those of some events (`POST /v1/webhooks/{id}/dead-letters/retry`)."""
        return self._post(f"/v1/webhooks/{segment(id_)}/dead-letters/retry", _given(events=events))

    @command
    def delete_webhook(self, /, id_: str) -> "Call[None]":
        """Send nothing more to an address (`DELETE /v1/webhooks/{id}`); needs an admin key."""
        return Call("DELETE", f"/v1/webhooks/{segment(id_)}")

    @route
    def run_job(self, /, job: str, *, idempotency_key: str | None = None, **fields: Any) -> "Call[models.RunOut]":
        """Order a maintenance job on the key's tenant (`POST /v1/jobs`); needs an admin key."""
        return self._post("/v1/jobs", {**fields, "job": job}, idempotency_key)

    @listing
    def job_runs(
        self, /, job: str | None = None, *, limit: int = 20, **fields: Any
    ) -> "ListCall[models.RunsOut, models.RunOut]":
        """List the latest runs of jobs (`GET /v1/jobs`); needs an admin key."""
        return self._list("runs", "/v1/jobs", _given(job=job, limit=limit, **fields))

    @route
    def job_run(self, /, id_: str) -> "Call[models.RunOut]":
        """Report on a run: its progress, or its result (`GET /v1/jobs/{id}`); needs an admin key."""
        return self._get(f"/v1/jobs/{segment(id_)}")

    @route
    def undo_job(self, /, id_: str) -> "Call[models.RunOut]":
        """Take a run back (`POST /v1/jobs/{id}/undo`); needs an admin key."""
        return Call("POST", f"/v1/jobs/{segment(id_)}/undo")

    @route
    def job_schedule(self) -> "Call[models.ScheduleOut]":
        """Return when each job runs by itself (`GET /v1/jobs/schedule`); needs an admin key."""
        return self._get("/v1/jobs/schedule")

    @route
    def make_key(self, /, name: str, role: str, **narrowing: Any) -> "Call[models.SecretOut]":
        """Make a key, whose secret is in this answer alone (`POST /v1/keys`); needs an admin key."""
        return self._post("/v1/keys", {**narrowing, "name": name, "role": role})

    @listing
    def keys(self, /, **page: Any) -> "ListCall[models.KeysOut, models.KeyOut]":
        """List the tenant's keys, without their secrets (`GET /v1/keys`); needs an admin key."""
        return self._list("keys", "/v1/keys", page)

    @route
    def key(self, /, id_: UUID | str) -> "Call[models.KeyOut]":
        """Return a key without its secret (`GET /v1/keys/{id}`); needs an admin key."""
        return self._get(f"/v1/keys/{segment(id_)}")

    @route
    def rotate_key(self, /, id_: UUID | str) -> "Call[models.SecretOut]":
        """Give a key another secret (`POST /v1/keys/{id}/rotate`); needs an admin key."""
        return Call("POST", f"/v1/keys/{segment(id_)}/rotate")

    @command
    def revoke_key(self, /, id_: UUID | str, *, last: bool = False) -> "Call[None]":
        """Make a key invalid (`DELETE /v1/keys/{id}`); needs an admin key."""
        return Call("DELETE", f"/v1/keys/{segment(id_)}", params={"last": "true"} if last else {})

    @route
    def quotas(self) -> "Call[models.QuotasOut]":
        """Return the quotas of the tenant and of this key (`GET /v1/quotas`); needs an admin key."""
        return self._get("/v1/quotas")

    @route
    def set_key_quotas(self, /, id_: UUID | str, **amounts: int) -> "Call[models.KeyQuotasOut]":
        """Set the quotas of a key (`PUT /v1/keys/{id}/quotas`); needs an admin key."""
        return Call("PUT", f"/v1/keys/{segment(id_)}/quotas", amounts)

    @route
    def change_notes(self, /, *, idempotency_key: str | None = None, **fields: Any) -> "Call[models.BulkOut]":
        """Tag, change or move all notes that match (`POST /v1/notes/bulk`)."""
        return self._post("/v1/notes/bulk", self._in_scope(fields), idempotency_key)

    @route
    def delete_notes(self, /, *, idempotency_key: str | None = None, **fields: Any) -> "Call[models.BulkOut]":
        """Delete all notes that match (`POST /v1/notes/bulk/delete`)."""
        return self._post("/v1/notes/bulk/delete", self._in_scope(fields), idempotency_key)

    @route
    def delete_messages(
        self, /, *, idempotency_key: str | None = None, **fields: Any
    ) -> "Call[models.BulkMessagesOut]":
        """Delete all messages that match (`POST /v1/messages/bulk/delete`)."""
        return self._post("/v1/messages/bulk/delete", self._in_scope(fields), idempotency_key)

    @route
    def change_documents(
        self, /, *, idempotency_key: str | None = None, **fields: Any
    ) -> "Call[models.BulkDocumentsOut]":
        """Tag or move all documents that match (`POST /v1/documents/bulk`)."""
        return self._post("/v1/documents/bulk", self._in_scope(fields), idempotency_key)

    @route
    def delete_documents(
        self, /, *, idempotency_key: str | None = None, **fields: Any
    ) -> "Call[models.BulkDocumentsOut]":
        """Delete all documents that match (`POST /v1/documents/bulk/delete`)."""
        return self._post("/v1/documents/bulk/delete", self._in_scope(fields), idempotency_key)

    @listing
    def operations(self, /, **fields: Any) -> "ListCall[models.OperationsOut, models.OperationOut]":
        """List the latest operations over many memories (`GET /v1/operations`)."""
        return self._list("operations", "/v1/operations", self._in_query(fields))

    @route
    def operation(self, /, id_: UUID | str) -> "Call[models.OperationOut]":
        """Report on an operation over many memories (`GET /v1/operations/{id}`)."""
        return self._get(f"/v1/operations/{segment(id_)}")

    @route
    def search_many(self, /, searches: Sequence[str | Json], **fields: Any) -> "Call[models.SearchBatchOut]":
        """Run up to 16 searches of one scope at once (`POST /v1/search/batch`)."""
        return self._post("/v1/search/batch", self._in_scope(fields, searches=list(searches)))

    @route
    def feedback(self, id_: UUID | str) -> "Call[models.FeedbackOut]":
        """Show the votes on a memory, and whether it is pinned (`GET /v1/memories/{id}/feedback`)."""
        return self._get(f"/v1/memories/{segment(id_)}/feedback")

    @route
    def vote(self, id_: UUID | str, vote: str) -> "Call[models.FeedbackOut]":
        """Judge a memory that a search found: useful or wrong (`PUT /v1/memories/{id}/feedback`)."""
        return Call("PUT", f"/v1/memories/{segment(id_)}/feedback", {"vote": vote})

    @route
    def take_vote_back(self, id_: UUID | str) -> "Call[models.FeedbackOut]":
        """Take the own vote on a memory back (`DELETE /v1/memories/{id}/feedback`)."""
        return Call("DELETE", f"/v1/memories/{segment(id_)}/feedback")

    @route
    def pin(self, id_: UUID | str) -> "Call[models.FeedbackOut]":
        """Pin a memory (`PUT /v1/memories/{id}/pin`)."""
        return Call("PUT", f"/v1/memories/{segment(id_)}/pin")

    @route
    def unpin(self, id_: UUID | str) -> "Call[models.FeedbackOut]":
        """Let a pinned memory fade again (`DELETE /v1/memories/{id}/pin`)."""
        return Call("DELETE", f"/v1/memories/{segment(id_)}/pin")

    @route
    def tenant_usage(self, /, **days: str) -> "Call[models.UsageOut]":
        """Show what the tenant used by day (`GET /v1/usage`); needs an admin key."""
        return self._get("/v1/usage", days)

    @route
    def delete_scope(self, /, *, idempotency_key: str | None = None, **ids: Any) -> "Call[models.ScopeDeletionOut]":
        """Delete the memories of a session, a namespace, a workspace or the tenant (`POST /v1/scopes/delete`).

        The ids that this client sends with other calls do not count here. Needs an admin key.
        """
        return self._post("/v1/scopes/delete", ids, idempotency_key)

    @route
    def rename_scope(self, /, *, idempotency_key: str | None = None, **ids: Any) -> "Call[models.ScopeRenamingOut]":
        """Rename a session, a namespace or a workspace (`POST /v1/scopes/rename`).

        The ids that this client sends with other calls do not count here. Needs an admin key.
        """
        return self._post("/v1/scopes/rename", ids, idempotency_key)

    @route
    def undo_operation(self, id_: UUID | str) -> "Call[models.OperationOut]":
        """Undo a deletion or a renaming of a scope (`POST /v1/operations/{id}/undo`); needs an admin key."""
        return Call("POST", f"/v1/operations/{segment(id_)}/undo")

    @route
    def ready(self) -> "Call[models.ReadyOut]":
        """Return the state of every part, ready or not (`GET /readyz`)."""
        return self._get("/readyz")

    @route
    def alive(self) -> "Call[models.AliveOut]":
        """Report that the service answers (`GET /livez`)."""
        return self._get("/livez")

    @route
    def status(self) -> "Call[models.StatusOut]":
        """Return the release, and how the embedding model is run (`GET /v1/status`)."""
        return self._get("/v1/status")

    def _in_scope(self, fields: Json, **own: Any) -> Json:
        return {**self._scope, **fields, **own}

    def _in_query(self, fields: Json, **own: Any) -> Json:
        return {**self._ids(*QUERY_IDS), **fields, **own}

    def _ids(self, *names: str) -> Json:
        return {name: id_ for name, id_ in self._scope.items() if name in names}

    def _files(self, workspace: str | None) -> str:
        return f"/v1/workspaces/{segment(workspace or self._scope.get('workspace') or 'default')}/files"

    def _file(self, path: str, workspace: str | None) -> str:
        return f"{self._files(workspace)}/{'/'.join(segment(part) if part else part for part in path.split('/'))}"

    def _file_ids(self, fields: Json) -> Json:
        return {**self._ids("namespace", "user", "agent"), **fields}

    def _get(self, path: str, params: Json | None = None) -> Call[Any]:
        return Call("GET", path, params=params or {})

    def _list(self, items: str, path: str, params: Json) -> ListCall[Any, Any]:
        return ListCall("GET", path, params=params, items=items)

    def _post(
        self, path: str, body: Json, idempotency_key: str | None = None, conditions: dict[str, str] | None = None
    ) -> Call[Any]:
        headers = _given(**{"Idempotency-Key": idempotency_key}, **(conditions or {}))
        return Call("POST", path, body, headers=headers)


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
