"""The tools that a model is given: their arguments, and the calls of the API that they make."""

from typing import Any, ClassVar
from uuid import UUID

from pydantic import Field, ValidationError

from lamina.api.fields import ABSENT, Content, Count, Fraction, Id, MediaType, Moment, Question, Strict, Tags, Title
from lamina.api.procedures import Comment
from lamina.client.client import AsyncClient
from lamina.core.memories import Category
from lamina.core.principals import Verb
from lamina.core.queries import MAX_LIMIT
from lamina.core.tiers import TierName
from lamina.errors import InvalidInput
from lamina.text.hygiene import shorten

Json = dict[str, Any]
MAX_UPLOAD_CHARS = 150_000
"""Of a document that a model writes itself: each may be six bytes in JSON, and `/mcp` takes 1 MiB."""
DEFAULT_HITS = 10
MOST_ERRORS = 3
# Fields of a result that a model does without.
_LEFT_OUT = frozenset({"explain", "last_hit_at", "temperature", "metadata", "source", "ref"})


class Tool(Strict):
    """One call of a tool, made of its arguments.

    Attributes:
        name: Name of the tool.
        title: Name for people.
        verb: What a key must be allowed to do.
        is_destructive: Whether it takes away or replaces what is stored.
        is_idempotent: Whether the same call made twice does no more than once.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    verb: ClassVar[Verb]
    is_destructive: ClassVar[bool] = False
    is_idempotent: ClassVar[bool] = True

    async def call(self, api: AsyncClient) -> Json | str:
        """Make the call; a text is for the model as it is.

        Raises:
            LaminaError: The service's error.
        """
        raise NotImplementedError

    def given(self, *leave_out: str) -> Json:
        """Return the arguments that were given, as JSON, without some of them."""
        return self.model_dump(mode="json", include=self.model_fields_set - {*leave_out})


class ScopedTool(Tool):
    """A tool that works in a workspace, for a user where one is named."""

    workspace: Id = Field(ABSENT, description="Project whose memory is meant. Default: the configured one.")
    user: Id = Field(ABSENT, description="Person whom it is about. Default: the configured one, or nobody.")


class Remember(ScopedTool):
    """Store one thing that is worth knowing later, in plain words that stand alone.

    Store a decision, an outcome, a preference or a fact; one text a call. The same text is kept once. For how two
    things stand to each other use state_fact; for a long text use upload.
    """

    name = "remember"
    title = "Remember"
    verb = Verb.WRITE

    content: Content = Field(description="The text, with names and dates instead of 'he' or 'today'.")
    category: Category = Field(Category.NOTE, description="What kind of memory it is.")
    tags: Tags = Field(default_factory=list, description="Labels to filter by later.")
    importance: Fraction = Field(0.5, description="How much it matters, 0 to 1.")
    event_at: Moment = Field(ABSENT, description="When it happened, ISO 8601. Default: now.")

    async def call(self, api: AsyncClient) -> Json:
        """Store a note."""
        return await api.add(self.content, source="mcp", **self.given("content"))


class SearchMemory(ScopedTool):
    """Find memories by meaning and words: messages, notes, facts, procedures and passages of documents.

    Ask before you answer from memory. Each result has an id, which read, update and forget take.
    """

    name = "search"
    title = "Search memory"
    verb = Verb.READ

    query: Question = Field(description="A question, or words.")
    limit: Count = Field(DEFAULT_HITS, ge=1, le=MAX_LIMIT, description="Most results.")
    tiers: list[TierName] = Field(ABSENT, min_length=1, max_length=8, description="Only these kinds of memory.")
    tags: Tags = Field(default_factory=list, description="Only memories with all of these labels.")
    since: Moment = Field(ABSENT, description="Only what happened at or after this time, ISO 8601.")
    until: Moment = Field(ABSENT, description="Only what happened before this time, ISO 8601.")

    async def call(self, api: AsyncClient) -> Json:
        """Search all tiers."""
        answer = await api.search(self.query, **{"limit": self.limit, **self.given("query")})
        missing = {"degraded": answer["degraded"]} if answer["degraded"] else {}
        return {"results": [brief(result) for result in answer["results"]], **missing}


class Context(ScopedTool):
    """Return a block of text with all that is worth knowing for a question: the profile, then the best memories.

    Use it once at the beginning of a task, with the task or the latest message as the query.
    """

    name = "context"
    title = "Context for a task"
    verb = Verb.READ

    query: Question = Field(description="The task, or the latest message.")
    budget_tokens: Count = Field(ABSENT, ge=16, le=100_000, description="Most tokens of the block.")
    session: Id = Field(ABSENT, description="Conversation that it is for.")

    async def call(self, api: AsyncClient) -> str:
        """Build a context block."""
        answer = await api.context(self.query, **self.given("query"))
        text = answer["text"] or "Nothing is remembered about this yet."
        return f"{text}\n\n(did not answer: {', '.join(answer['degraded'])})" if answer["degraded"] else text


class Read(Tool):
    """Return one memory whole, by the id that a search returned.

    A document is long: of a passage, read the passage first; the id under `document` reads the whole.
    """

    name = "read"
    title = "Read a memory"
    verb = Verb.READ

    id: UUID = Field(description="Its id.")

    async def call(self, api: AsyncClient) -> Json:
        """Read a memory of any kind."""
        found = await api.memory(self.id)
        return brief(found[found["kind"]], leave_out=frozenset())


class Update(Tool):
    """Change a note or a message: correct its text, or give a note other labels. A note's state before is a version.

    Only what you give changes. Of a fact give the object: another fact takes its place, whose id is returned. To
    replace a document upload it under the same key.
    """

    name = "update"
    title = "Update a memory"
    verb = Verb.WRITE
    is_destructive = True

    id: UUID = Field(description="Its id, as a search returned it.")
    content: Content = Field(ABSENT, description="New text, in place of the old.")
    category: Category = Field(ABSENT, description="New kind.")
    tags: Tags = Field(ABSENT, description="New labels, in place of all old ones.")
    importance: Fraction = Field(ABSENT, description="New importance, 0 to 1.")
    object: Id = Field(ABSENT, description="Of a fact: what it says instead.")

    async def call(self, api: AsyncClient) -> Json:
        """Change a memory."""
        changes = self.given("id")
        if not changes:
            raise InvalidInput(
                "content", "is missing; give what is to change: content, category, tags, importance or object"
            )
        found = await api.change_memory(self.id, **changes)
        return brief(found[found["kind"]])


class Forget(Tool):
    """Delete one memory: a note, message, document, procedure, fact or entity, by its id.

    No search returns it from then on. An entity goes with its facts, a document with its passages. All of them can be
    restored for a time.
    """

    name = "forget"
    title = "Forget a memory"
    verb = Verb.DELETE
    is_destructive = True

    id: UUID = Field(description="Its id, as a search returned it.")

    async def call(self, api: AsyncClient) -> Json:
        """Delete the memory with the id."""
        return {**await api.delete_memory(self.id), "forgotten": True}


class Profile(ScopedTool):
    """Return the facts that are certain about a user: name, preferences, settings."""

    name = "profile"
    title = "Profile of a user"
    verb = Verb.READ

    async def call(self, api: AsyncClient) -> Json:
        """Read a profile."""
        return await api.profile(**self.given())


class GraphNeighbours(ScopedTool):
    """Return how a person, place or thing stands to others: its facts, with the ids of both sides."""

    name = "graph_neighbours"
    title = "Neighbours in the graph"
    verb = Verb.READ

    name_of_entity: Id = Field(alias="name", description="Its name.")

    async def call(self, api: AsyncClient) -> Json:
        """Read the links of an entity."""
        return await api.neighbours(self.name_of_entity, **self.given("name_of_entity"))


class StateFact(ScopedTool):
    """State how two things stand to each other: subject, relation, object, e.g. Ann, lives_in, Lisbon.

    What can hold only once, such as where somebody lives, ends the older fact by itself.
    """

    name = "state_fact"
    title = "State a fact"
    verb = Verb.WRITE

    subject: Id = Field(description="Name of whom or what it is about.")
    relation: Id = Field(description="In lower case with underscores: lives_in, works_at, has_status.")
    object: Id = Field(description="Name of the other side.")
    valid_from: Moment = Field(ABSENT, description="Since when it holds, ISO 8601. Default: now.")
    confidence: Fraction = Field(0.9, description="How sure it is, 0 to 1.")

    async def call(self, api: AsyncClient) -> Json:
        """State a fact."""
        others = self.given("subject", "relation", "object")
        return await api.state_fact(self.subject, self.relation, self.object, source="mcp", **others)


class MatchProcedures(ScopedTool):
    """Return the procedures that a situation calls for, each with its steps and how often it worked.

    Ask before you begin something that was done before; afterwards tell report_procedure how it went.
    """

    name = "match_procedures"
    title = "Match procedures"
    verb = Verb.READ

    query: Question = Field(description="The situation, or what is asked.")
    limit: Count = Field(5, ge=1, le=MAX_LIMIT, description="Most procedures.")

    async def call(self, api: AsyncClient) -> Json:
        """Match procedures."""
        found = await api.match_procedures(self.query, **{"limit": self.limit, **self.given("query")})
        return {**found, "matches": [brief(match) for match in found["matches"]]}


class ReportProcedure(Tool):
    """Report whether a procedure worked that you followed; it becomes stronger or weaker."""

    name = "report_procedure"
    title = "Report an outcome"
    verb = Verb.WRITE
    is_idempotent = False

    id: UUID = Field(description="Id of the procedure.")
    succeeded: bool = Field(strict=True, description="Whether it worked.")
    comment: Comment = Field(ABSENT, description="What there is to say about it.")
    run: Id = Field(ABSENT, description="Your id of the run, which then counts once.")

    async def call(self, api: AsyncClient) -> Json:
        """Report an outcome."""
        return await api.report_outcome(self.id, succeeded=self.succeeded, **self.given("id", "succeeded"))


class UploadDocument(ScopedTool):
    """Store a longer text as a document, which is found by its passages.

    The same key replaces the document before. At most 150 000 characters; larger files go through the HTTP API.
    """

    name = "upload"
    title = "Upload a document"
    verb = Verb.WRITE
    is_destructive = True

    content: str = Field(max_length=MAX_UPLOAD_CHARS, description="Its text.")
    title_of_document: Title = Field(ABSENT, alias="title", description="Its title. Default: the one that it has.")
    key: Id = Field(ABSENT, description="Your own name for it, such as its path.")
    media_type: MediaType = Field("text/markdown", description="text/plain, text/markdown or text/html.")
    tags: Tags = Field(default_factory=list, description="Labels to filter by later.")

    async def call(self, api: AsyncClient) -> Json:
        """Store a document."""
        titled = {"title": self.title_of_document} if self.title_of_document is not None else {}
        others = {"media_type": self.media_type, **self.given("content", "title_of_document"), **titled}
        return await api.add_document(self.content, source="mcp", **others)


TOOLS: tuple[type[Tool], ...] = (
    Context,
    SearchMemory,
    Remember,
    Read,
    Update,
    Forget,
    Profile,
    StateFact,
    GraphNeighbours,
    MatchProcedures,
    ReportProcedure,
    UploadDocument,
)
"""In the order in which they are listed, the one to begin with first."""
BY_NAME = {tool.name: tool for tool in TOOLS}


def input_schema(tool: type[Tool]) -> Json:
    """Return the JSON schema of a tool's arguments, without references and without words that tell a model nothing."""
    schema = tool.model_json_schema()
    definitions = schema.pop("$defs", {})
    schema.pop("description", None)  # The tool itself has it.
    plain: Json = _plain(schema, definitions)
    return plain


def _plain(schema: Any, definitions: Json) -> Any:
    if isinstance(schema, list):
        return [_plain(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    referred = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    whole = {**referred, **schema}
    # A property may be named title; the noise is always a text.
    noise = {"$ref"} | ({"title"} if isinstance(whole.get("title"), str) else set())
    noise |= {"default"} if "default" in whole and whole["default"] is None else set()
    return {name: _plain(part, definitions) for name, part in whole.items() if name not in noise}


def read_call(tool: type[Tool], arguments: Json) -> Tool:
    """Return the call that the arguments stand for.

    Raises:
        InvalidInput: Naming the arguments that are wrong, and those that the tool takes.
    """
    try:
        return tool.model_validate(arguments)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        told = [(".".join(map(str, one["loc"])) or "arguments", one["msg"].lower()) for one in found[:MOST_ERRORS]]
        first, *others = told
        more = "".join(f"; {shorten(field, 80)}: {shorten(reason, 200)}" for field, reason in others)
        known = ", ".join(field.alias or name for name, field in tool.model_fields.items())
        reason = f"{shorten(first[1], 200)}{more}; {tool.name} takes {known}"
        raise InvalidInput(shorten(first[0], 80), reason) from error


def brief(result: Json, leave_out: frozenset[str] = _LEFT_OUT) -> Json:
    """Return a result without empty fields and those that a model does without."""
    kept = {name: value for name, value in result.items() if name not in leave_out and value not in (None, [], {}, "")}
    if isinstance(result.get("score"), float):
        kept["score"] = round(result["score"], 3)
    return kept
