"""Notes of a year for the jobs: generated, always the same for a seed, and written past the recorder.

About a third of the notes is due for the sweep and 2 % nearly repeat an earlier one of their namespace. A tenth as
many entities, edges and messages stand beside them. Vectors are sums of two out of a thousand: the jobs do not ask
what they mean.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

import numpy as np
import psycopg
from numpy.typing import NDArray

SEED = 20_240_601
VOCABULARY = 50_000
WORDS = 20
REPEATS_EVERY = 50
VECTORS = 1_000
DIMENSION = 384
STAGED_AT_ONCE = 50_000
_CONSONANTS, _VOWELS = "bdfgklmnprstvzhj", "aeiou"
_SYLLABLES = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]

# Numbers of words, shape (n, 20), one row a text.
Words = NDArray[np.int64]
Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class NoteBatch:
    """Notes to generate and write.

    Args:
        notes: How many notes.
        scopes: Over how many namespaces they are spread, ``scope-0`` the first.
        moment: When the year ends.
    """

    tenant: str
    workspace: str
    notes: int
    scopes: int
    moment: datetime

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the statements."""
        names = ("tenant", "workspace", "notes", "scopes", "moment")
        return {name: getattr(self, name) for name in names} | {"tenth": max(1, self.notes // 10)}


def word(number: int) -> str:
    """Return a word for a number below 512 000: three syllables, another one for each number."""
    first, rest = divmod(number, len(_SYLLABLES) ** 2)
    return "".join(_SYLLABLES[place] for place in (rest % len(_SYLLABLES), rest // len(_SYLLABLES), first))


def draw(generator: np.random.Generator, count: int, scopes: int) -> Words:
    """Return the words of so many texts by Zipf's law; of fifty, the last repeats one but for a word.

    Args:
        generator: Where chance comes from.
        count: How many texts.
        scopes: A text repeats the one so many places before it, which is of the same namespace.
    """
    drawn = (VOCABULARY ** generator.random((count, WORDS))).astype(np.int64) - 1
    places = np.arange(max(REPEATS_EVERY - 1, scopes), count)
    again = places[places % REPEATS_EVERY == REPEATS_EVERY - 1]
    drawn[again, 1:] = drawn[again - scopes, 1:]
    return drawn


def texts(batch: NoteBatch) -> Iterator[list[str]]:
    """Yield the texts, many at a time."""
    generator = np.random.default_rng(SEED)
    vocabulary = np.array([word(number) for number in range(VOCABULARY)], dtype=object)
    for start in range(0, batch.notes, STAGED_AT_ONCE):
        count = min(STAGED_AT_ONCE, batch.notes - start)
        yield [" ".join(row) for row in vocabulary[draw(generator, count, batch.scopes)].tolist()]


def load(url: str, batch: NoteBatch) -> None:
    """Write notes, chunks, entities, edges and messages; the database has a generation of vectors.

    Cost: about two minutes for a million notes without the indexes of vectors and words.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        _stage_texts(connection, batch)
        _stage_vectors(connection)
        for text in _WRITES:
            connection.execute(text, batch.parameters())


def settle(url: str) -> None:
    """Leave nothing to do that would be counted to the first who reads: statistics, hint bits, dirty pages."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


def drop_search_indexes(url: str) -> list[str]:
    """Drop the indexes of vectors and words; return the statements that make them again."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(_SEARCH_INDEXES).fetchall()
        for name, _ in found:
            connection.execute(f"DROP INDEX {name}".encode())
    return [definition for _, definition in found]


def make_indexes(url: str, definitions: list[str]) -> None:
    """Make indexes again, of all rows at once, which is much faster than row by row."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET maintenance_work_mem = '1GB'")
        for definition in definitions:
            connection.execute(definition.encode())


def enqueue_all(url: str, workspace: str) -> None:
    """Have the indexes of a running service take over a workspace's notes."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_ENQUEUE, {"workspace": workspace})
        connection.execute("NOTIFY lamina_outbox")


def _stage_texts(connection: Connection, batch: NoteBatch) -> None:
    connection.execute(_STAGE)
    place = 0
    with connection.cursor().copy("COPY told (place, content) FROM STDIN") as copy:
        for some in texts(batch):
            copy.write("".join(f"{place + offset}\t{text}\n" for offset, text in enumerate(some)))
            place += len(some)
    connection.execute(_NAME, batch.parameters())


def _stage_vectors(connection: Connection) -> None:
    vectors = np.random.default_rng(SEED).standard_normal((VECTORS, DIMENSION)).astype(np.float32)
    connection.execute(_STAGE_VECTORS)
    with connection.cursor().copy("COPY vectors (place, embedding) FROM STDIN") as copy:
        for place, vector in enumerate(vectors.tolist()):
            copy.write_row((place, str(vector)))
    connection.execute("ANALYZE vectors")


_SEARCH_INDEXES: LiteralString = """
SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am a ON a.oid = c.relam AND a.amname IN ('hnsw', 'gin')
WHERE i.indrelid IN ('note_chunks'::regclass, 'message_chunks'::regclass, 'entities'::regclass)
"""

_ENQUEUE: LiteralString = """
INSERT INTO outbox (projection, memory_id) SELECT 'notes', id FROM notes WHERE workspace = %(workspace)s
"""

_STAGE: LiteralString = """
DROP TABLE IF EXISTS told, named, vectors;
CREATE TEMPORARY TABLE told (place bigint, content text);
"""

_STAGE_VECTORS: LiteralString = """
CREATE TEMPORARY TABLE vectors (place integer PRIMARY KEY, embedding vector);
"""

# Ids as the recorder gives them: by time. A third was never found; a third was found often, ten days ago the last
# time; a third was found within the week.
_NAME: LiteralString = """
CREATE TEMPORARY TABLE named AS
SELECT t.place, t.content, t.at, 'scope-' || (t.place %% %(scopes)s) AS namespace,
       (lpad(to_hex((extract(epoch FROM t.at) * 1000)::bigint), 12, '0') || '7'
        || substr(md5(%(workspace)s || t.place), 1, 19))::uuid AS id,
       CASE t.place %% 3 WHEN 1 THEN 15 ELSE 1 END AS hits,
       greatest(t.at, CASE t.place %% 3 WHEN 0 THEN t.at
                      WHEN 1 THEN %(moment)s::timestamptz - interval '10 days'
                      ELSE %(moment)s::timestamptz - interval '1 day' * (1 + t.place %% 5) END) AS last_hit_at
FROM (
    SELECT place, content,
           %(moment)s::timestamptz - interval '365 days' * ((%(notes)s - place) / %(notes)s::double precision) AS at
    FROM told
) t
"""

_NOTES: LiteralString = """
INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance, confidence, source,
                   hits, event_at, last_hit_at, created_at, updated_at, temperature_changed_at)
SELECT id, %(tenant)s, %(workspace)s, namespace, 'note', content, sha256(convert_to(content, 'UTF8')), 0.5, 1,
       'benchmark', hits, at, last_hit_at, at, at, at
FROM named ORDER BY place
ON CONFLICT DO NOTHING
"""

_CHUNKS: LiteralString = """
INSERT INTO note_chunks (note_id, chunk, tenant, workspace, namespace, text_start, text_end, tsv, generation, embedding)
SELECT t.id, 0, %(tenant)s, %(workspace)s, t.namespace, 0, length(t.content), to_tsvector('lamina', t.content),
       (SELECT generation FROM embedding_generations WHERE is_active), l2_normalize(a.embedding + b.embedding)
FROM named t
JOIN vectors a ON a.place = t.place %% 1000
JOIN vectors b ON b.place = (t.place + t.place / 1000 * 37 + 1) %% 1000
WHERE EXISTS (SELECT FROM notes n WHERE n.id = t.id)
"""

# Each is what three notes tell about, and the start of one edge to the next entity of its namespace.
_ENTITIES: LiteralString = """
CREATE TEMPORARY TABLE things AS
SELECT t.place / 10 AS place, t.namespace, t.at, t.id AS note_id, md5(%(workspace)s || 'entity' || t.place)::uuid AS id,
       lead(md5(%(workspace)s || 'entity' || t.place)::uuid) OVER (PARTITION BY t.namespace ORDER BY t.place) AS next
FROM named t WHERE t.place %% 10 = t.place / 10 %% 10;
"""

_ENTITY_ROWS: LiteralString = """
INSERT INTO entities (id, tenant, workspace, namespace, key, name, type, confidence, generation, embedding,
                      first_seen_at, last_seen_at)
SELECT t.id, %(tenant)s, %(workspace)s, t.namespace, 'thing ' || t.place, 'Thing ' || t.place, 'thing', 0.8,
       (SELECT generation FROM embedding_generations WHERE is_active), v.embedding, t.at, t.at
FROM things t JOIN vectors v ON v.place = t.place %% 1000
"""

_LINKS: LiteralString = """
INSERT INTO memory_links (from_id, to_id, kind, from_tier, tenant, workspace, namespace, source, strength, seen_at)
SELECT md5(t.id::text || teller)::uuid, t.id, 'mentions', 2, %(tenant)s, %(workspace)s, t.namespace,
       'note:' || teller, 1, t.at
FROM things t, generate_series(1, 3) AS teller
"""

_EDGES: LiteralString = """
INSERT INTO edges (id, tenant, workspace, namespace, from_id, to_id, type, strength, confidence, first_seen_at,
                   last_seen_at)
SELECT md5(id::text || 'edge')::uuid, %(tenant)s, %(workspace)s, namespace, id, next, 'near', 0.8, 0.8, at, at
FROM things WHERE next IS NOT NULL
"""

_EVIDENCE: LiteralString = """
INSERT INTO edge_evidence (edge_id, source, memory_id, strength, confidence, seen_at)
SELECT md5(id::text || 'edge')::uuid, 'benchmark', note_id, 0.8, 0.8, at FROM things WHERE next IS NOT NULL
"""

# Sessions of 200 messages: more than the budget of a session.
_MESSAGES: LiteralString = """
INSERT INTO messages (id, tenant, workspace, namespace, session_id, position, role, content, content_hash, occurred_at)
SELECT md5(id::text || 'message')::uuid, %(tenant)s, %(workspace)s, namespace, 'session-' || (nth / 200), nth, 'user',
       content || '. ' || content, sha256(convert_to(content, 'UTF8')), at
FROM (SELECT *, row_number() OVER (PARTITION BY namespace ORDER BY place) AS nth FROM named WHERE place %% 10 = 0) t
"""

_MESSAGE_CHUNKS: LiteralString = """
INSERT INTO message_chunks (message_id, chunk, tenant, workspace, namespace, session_id, occurred_at, text_start,
                            text_end, generation, embedding)
SELECT m.id, 0, m.tenant, m.workspace, m.namespace, m.session_id, m.occurred_at, 0, length(m.content),
       (SELECT generation FROM embedding_generations WHERE is_active), v.embedding
FROM messages m JOIN vectors v ON v.place = m.position %% 1000
WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s
"""

# Every namespace that was ever written has an epoch.
_EPOCHS: LiteralString = """
INSERT INTO epochs (tenant, workspace, namespace)
SELECT DISTINCT %(tenant)s, %(workspace)s, namespace FROM named
ON CONFLICT DO NOTHING
"""

_WRITES: tuple[LiteralString, ...] = (
    _NOTES,
    _CHUNKS,
    _ENTITIES,
    _ENTITY_ROWS,
    _LINKS,
    _EDGES,
    _EVIDENCE,
    _MESSAGES,
    _MESSAGE_CHUNKS,
    _EPOCHS,
)
