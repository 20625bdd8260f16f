"""How memories are written, indexed, kept and erased."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from lamina.settings.section import MIB, Section


class IndexerSettings(Section):
    """How the outbox is applied to the projections."""

    batch_size: int = Field(256, ge=1, description="Most outbox rows applied at once.")
    flush_interval_s: float = Field(
        0.5,
        gt=0,
        description="Seconds for which applied changes wait for more, to be flushed together; they are visible "
        "already. While more keep coming, they wait until flushes take a twentieth of the time, and 1.5 s at most.",
    )
    poll_interval_s: float = Field(2.0, gt=0, description="Longest sleep without a notification, in seconds.")


class WriteSettings(Section):
    """The write path."""

    extraction: Literal["rules", "off", "language_model"] = Field(
        "rules", description="How notes, facts and names are extracted from messages; a language model costs tokens."
    )
    profile_scope: Literal["workspace", "user"] = Field(
        "workspace",
        description="Which profile of a user turns write: that of the workspace's namespace, or with user the one of "
        "the whole tenant, which every workspace shows beneath its own. A workspace's settings come first. A key that "
        "is bound to workspaces, namespaces or agents always writes the first.",
    )
    near_duplicate: float = Field(
        0.92, gt=0, le=1, description="Cosine from which a note that says nothing new reinforces the old one; 1: never."
    )
    similar_links: int = Field(
        3, ge=0, le=50, description="Nearest notes, or passages, to which a new one is linked in the graph; 0: to none."
    )
    similar_min: float = Field(
        0.5, ge=-1, le=1, description="Least cosine of two that are linked so; -1 links to the nearest in any case."
    )
    embed_deadline_s: float = Field(
        60.0,
        gt=0,
        description="Seconds after which a write gives up on the embedder, beside those that its texts take.",
    )
    embed_budget_s: float = Field(
        60.0,
        gt=0,
        description="Most seconds of the embedding model that one request's messages or notes may take, by "
        "`embedding.tokens_per_s`; larger requests are answered 413, and nothing of them is stored.",
    )
    max_metadata_bytes: int = Field(
        65_536,
        ge=1,
        le=MIB,
        description="Largest metadata of a memory, and largest patch of a profile, as JSON, in bytes.",
    )
    key_cache_s: float = Field(
        3.0,
        ge=0,
        le=5,
        description="Seconds for which a checked API key is trusted without another check; a revocation takes effect "
        "on every replica after them.",
    )
    idempotency_days: float = Field(
        1.0,
        gt=0,
        description="Days for which an `Idempotency-Key` gives its first answer again; then the job caches removes it.",
    )


class ErasureSettings(Section):
    """The erasure of users, and its receipts."""

    wait_s: float = Field(
        20.0, ge=0, description="Seconds for which `DELETE /v1/users` waits for its end before it answers 202."
    )
    rewrite_mib: int = Field(
        64,
        ge=0,
        description="Tables up to this size, in MiB with their indexes, are locked and written anew; larger ones are "
        "vacuumed, and the receipt names them.",
    )
    signing_key: Path | None = Field(
        None,
        description="File of the Ed25519 private key in PEM that signs receipts; `receipts.pem` in data_dir, which is "
        "made once, if not set.",
    )
    receipt_days: float = Field(
        3650.0,
        ge=30,
        description="Days after its end for which an erasure and its receipt can be read; then the job caches removes "
        "them. A receipt that was kept elsewhere is verified as before.",
    )


class HistorySettings(Section):
    """How long replaced and ended rows are kept."""

    note_versions: int = Field(
        100, ge=0, description="Most earlier versions of a note; with the next change the oldest one is removed."
    )
    profile_versions: int = Field(100, ge=0, description="Most earlier versions of a user's profile.")
    days: float = Field(
        365.0,
        gt=0,
        description="Days for which is kept: an earlier version of a note or profile after it was replaced, an outcome "
        "of a procedure, a key or share after it was revoked or expired. The jobs sweep and caches remove them.",
    )
    trash_days: float = Field(
        30.0,
        ge=0,
        description="Days for which a deleted note, message, procedure, document, entity or fact can be brought back; "
        "0: never. The job caches ends them.",
    )
    empty_days: float = Field(
        30.0,
        ge=1,
        description="Days after which the job caches forgets a namespace in which nothing is left, and a session "
        "without messages. Answers that are cached for longer than that prolong it.",
    )


class FilesSettings(Section):
    """Files of a workspace."""

    max_bytes: int = Field(1_000_000, ge=1, le=20_000_000, description="Largest text of a file, in bytes of UTF-8.")
    versions: int = Field(
        10, ge=0, le=1000, description="Most earlier texts of a file; with the next change the oldest one is removed."
    )


class DocumentsSettings(Section):
    """How uploaded documents are read and cut."""

    passage_chars: int = Field(
        800,
        ge=50,
        le=20_000,
        description="Most characters of a passage; with its title it should fit the model, which reads some 1 000.",
    )
    max_bytes: int = Field(20_000_000, ge=1, description="Largest file accepted, in bytes.")
    max_chars: int = Field(2_000_000, ge=1, description="Most characters of text in one document.")
    parse_deadline_s: float = Field(30.0, gt=0, description="Seconds after which a document counts as unreadable.")
    parse_memory_mib: int = Field(1024, ge=256, description="Most memory that reading one document takes, in MiB.")
    embed_budget_s: float = Field(
        1200.0,
        gt=0,
        description="Most seconds of the embedding model that the documents of one request may take, by "
        "`embedding.tokens_per_s`; larger requests are answered 413, and nothing of them is stored.",
    )
