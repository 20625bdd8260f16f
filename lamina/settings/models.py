"""The embedding model and the language model."""

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from lamina.settings.section import Section

PACKAGED_MODEL = "all-MiniLM-L6-v2"

# Cosines whose good values depend on the model.
ThresholdName = Literal[
    "search.min_similarity",
    "search.graph_min_similarity",
    "write.near_duplicate",
    "caches.semantic.threshold",
    "jobs.consolidation.cosine",
]

Cosine = Annotated[float, Field(ge=-1, le=1)]


class _ModelSection(Section):
    thresholds: dict[ThresholdName, Cosine] = Field(
        {},
        description="Cosines for this model, by the names of the settings that they replace; stored with its vectors.",
    )
    tokens_per_s: float = Field(
        2000.0,
        gt=0,
        description="Tokens that one replica embeds in a second: the packaged model 4 000 to 5 500 on one CPU thread "
        "that computes in bfloat16, a third of it on others; limits are reckoned by it.",
    )


class _PrefixedSection(_ModelSection):
    query_prefix: str = Field(
        "", description="Stands before each question that is embedded, as in `query: `; a change embeds anew."
    )
    document_prefix: str = Field(
        "", description="The same before each text that is written, as in `passage: `; a change embeds anew."
    )


class EndpointCalls(Section):
    """Key, patience and tries of calls of an endpoint."""

    api_key: SecretStr | None = Field(None, description="Bearer token, if the endpoint needs one.")
    timeout_s: float = Field(10.0, gt=0, description="Longest wait for one answer, in seconds.")
    deadline_s: float = Field(60.0, gt=0, description="Longest wait for one batch, retries included.")
    max_retries: int = Field(3, ge=0, description="Further tries after 408, 409, 429, 5xx and broken connections.")
    backoff_s: float = Field(
        0.5, gt=0, description="Wait before the first retry where the endpoint names none; it doubles, with jitter."
    )


class EndpointSettings(_PrefixedSection, EndpointCalls):
    """A model behind an endpoint of OpenAI's form, such as text-embedding-3-small, or Gemini's of that form."""

    kind: Literal["endpoint"] = "endpoint"
    url: str = Field(
        pattern="^https?://[^/]", description="URL before `/embeddings`, as in `https://api.openai.com/v1`."
    )
    model: str = Field(min_length=1, description="Name of the model, as the endpoint knows it.")
    dimensions: int = Field(ge=1, le=4000, description="Length of its vectors; 1536 of text-embedding-3-small.")
    sends_dimensions: bool = Field(
        default=False, description="Whether each call names `dimensions`, by which some models shorten their vectors."
    )
    text_tokens: int = Field(
        512, ge=128, description="Most tokens of a chunk, as estimated; longer texts have several."
    )
    batch_texts: int = Field(64, ge=1, description="Most texts of one call.")
    batch_tokens: int = Field(16_000, ge=128, description="Most tokens of one call, as estimated.")
    max_concurrency: int = Field(4, ge=1, description="Most calls of one process at a time.")
    daily_tokens: int = Field(
        100_000_000, ge=0, description="Most tokens of one process in a day of UTC; then texts are searched by words."
    )
    tokens_per_s: float = Field(
        10_000.0, gt=0, description="Tokens that one replica embeds in a second; limits are reckoned by it."
    )

    @model_validator(mode="after")
    def _leaves_room(self) -> Self:
        longest = max(len(self.query_prefix), len(self.document_prefix))
        if longest > self.text_tokens:
            message = f"a prefix has {longest} characters, more than text_tokens ({self.text_tokens}); shorten it"
            raise ValueError(message)
        return self


class SentenceTransformersSettings(_PrefixedSection):
    """A model in sentence-transformers' layout, run by torch or by ONNX Runtime."""

    kind: Literal["sentence_transformers"] = "sentence_transformers"
    runtime: Literal["auto", "onnx", "torch"] = Field(
        "auto",
        description="What runs it: torch, or ONNX Runtime, which runs BERT-family models in a local folder; auto is "
        "torch where it is installed and Ray sees a GPU, or ONNX Runtime cannot run the model, and ONNX Runtime "
        "elsewhere. The vectors of both may be mixed.",
    )
    model: str = Field(PACKAGED_MODEL, description="The packaged model, or a path or name to load.")
    threads: int | None = Field(
        None,
        ge=1,
        description="CPU threads of one embedder replica, and no more than its machine or container has processors; "
        "all of these, but at most four, if null.",
    )
    provider: Literal["auto", "cpu", "cuda", "tensorrt", "openvino"] = Field(
        "auto",
        description="ONNX Runtime's execution provider, of those that the installed one has; auto is CUDA on a GPU and "
        "the processor elsewhere.",
    )
    precision: Literal["auto", "float32", "bfloat16", "float16", "int8"] = Field(
        "auto",
        description="Type of the weights: half precision is torch's alone, and its auto where the GPU or the CPU "
        "computes in it; int8 is ONNX Runtime's alone, and another model to the stores: a change of it embeds anew.",
    )
    batch_size: int = Field(64, ge=1, description="Most texts in one forward pass.")
    own_prefixes: bool = Field(
        default=False,
        description="Whether the prompts that the model's `config_sentence_transformers.json` names query, and "
        "document or passage, are the prefixes; a change embeds anew.",
    )

    @model_validator(mode="after")
    def _has_prefixes_once(self) -> Self:
        if self.own_prefixes and (self.query_prefix or self.document_prefix):
            message = "own_prefixes is set beside query_prefix or document_prefix; leave one of them out"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _runs_in_its_precision(self) -> Self:
        if self.runtime == "onnx" and self.precision in {"bfloat16", "float16"}:
            message = f"precision is {self.precision}, but runtime onnx computes in float32; leave precision out"
            raise ValueError(message)
        if self.precision == "int8" and (self.runtime == "torch" or self.provider in {"cuda", "tensorrt"}):
            message = "precision is int8, which ONNX Runtime computes on processors alone; leave precision out"
            raise ValueError(message)
        return self


class HashingSettings(_ModelSection):
    """Hashed words instead of a model: for tests, and for machines that cannot run one."""

    kind: Literal["hashing"] = "hashing"
    dimension: int = Field(384, ge=8, description="Length of the vectors.")
    tokens_per_s: float = Field(100_000.0, gt=0, description="Tokens that one replica embeds in a second.")
    seed: int = Field(0, ge=0, description="Another seed is another model, for tests of a change of model.")


class LanguageModelSettings(Section):
    """An OpenAI-compatible endpoint, where `write.extraction` or `jobs.summaries.by` says `language_model`."""

    base_url: str | None = Field(
        None, pattern="^https?://", description="URL before `/chat/completions`, as in `http://localhost:8000/v1`."
    )
    model: str | None = Field(None, description="Name of the model, as the endpoint knows it.")
    api_key: SecretStr | None = Field(None, description="Bearer token, if the endpoint needs one.")
    timeout_s: float = Field(20.0, gt=0, description="Longest wait for one answer, in seconds.")
    deadline_s: float = Field(
        45.0, gt=0, description="Longest wait for one turn, retries included; then the rules extract."
    )
    max_retries: int = Field(3, ge=0, description="Further tries after 408, 409, 429, 5xx and broken connections.")
    backoff_s: float = Field(0.5, gt=0, description="Wait before the first retry; it doubles, with jitter.")
    max_concurrency: int = Field(8, ge=1, description="Most calls of one process at a time.")
    call_tokens: int = Field(16_000, ge=256, description="Most tokens of one call, answer included.")
    answer_tokens: int = Field(2_000, ge=64, description="Most tokens of one answer.")
    daily_tokens: int = Field(2_000_000, ge=0, description="Most tokens of one process in a day of UTC.")
    temperature: float | None = Field(0.0, ge=0, le=2, description="Sampling temperature; none is sent if not set.")
    limit_parameter: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens", description="The endpoint's name for the limit of an answer."
    )


class NoRerankSettings(Section):
    """The order of the fusion is the order of the answer."""

    kind: Literal["off"] = "off"


class _RerankSection(Section):
    by_default: bool = Field(
        default=True, description="Whether it orders searches that do not say so themselves by `rerank`."
    )
    pool: int = Field(30, ge=2, le=100, description="Most hits of a search that it reads; 20 to 50 are usual.")
    deadline_s: float = Field(
        0.8, gt=0, description="Seconds after which the first order stands, and `degraded` names the reranker."
    )
    failures: int = Field(5, ge=1, description="Failures in a row after which it is not asked for a while.")
    pause_s: float = Field(5.0, gt=0, description="Seconds for which it is not asked then.")


class CrossEncoderSettings(_RerankSection):
    """A cross-encoder of your own, in a deployment of its own (`serve.reranker`)."""

    kind: Literal["cross_encoder"] = "cross_encoder"
    model: str = Field(min_length=1, description="Its folder, or its name in the local cache of the hub.")
    runtime: Literal["auto", "onnx", "torch"] = Field(
        "auto",
        description="What runs it: ONNX Runtime, which needs an ONNX file and a tokenizer.json in the folder, or "
        "sentence-transformers; auto is torch where that is installed and the folder has no ONNX file.",
    )
    batch_size: int = Field(16, ge=1, description="Most pairs of question and text in one pass.")
    max_length: int | None = Field(None, ge=16, description="Most word pieces of a pair; the model's own if null.")
    threads: int | None = Field(None, ge=1, description="CPU threads of one pass, as of `embedding`.")


class RerankEndpointSettings(_RerankSection, EndpointCalls):
    """An endpoint of the form of Cohere, Jina or Text Embeddings Inference."""

    kind: Literal["endpoint"] = "endpoint"
    url: str = Field(pattern="^https?://[^/]", description="URL before `/rerank`, as in `https://api.jina.ai/v1`.")
    form: Literal["cohere", "jina", "tei"] = Field(
        "cohere",
        description="Form of a call: `query` and `documents`, or `query` and `texts` (Text Embeddings Inference).",
    )
    model: str | None = Field(None, description="Name of the model, where the endpoint asks for one.")
    timeout_s: float = Field(2.0, gt=0, description="Longest wait for one answer, in seconds.")
    max_retries: int = Field(0, ge=0, description="Further tries after 408, 409, 429, 5xx and broken connections.")
    max_concurrency: int = Field(16, ge=1, description="Most calls of one replica at a time.")


RerankSettings = Annotated[
    NoRerankSettings | CrossEncoderSettings | RerankEndpointSettings, Field(discriminator="kind")
]
EmbeddingSettings = Annotated[
    SentenceTransformersSettings | EndpointSettings | HashingSettings, Field(discriminator="kind")
]
