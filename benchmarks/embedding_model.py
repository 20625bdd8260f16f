"""`python -m benchmarks.embedding_model RUNTIME PRECISION`: measure the embedding model alone; prints one JSON object.

In a process of its own, so that its memory and its loading are its own.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.generated_sentences import Wording
from benchmarks.timing import Latencies
from lamina.core.ports import Model
from lamina.models.onnx.agreement import RECORDED_FILE
from lamina.models.passes import passes
from lamina.settings.loading import Settings
from lamina.settings.models import SentenceTransformersSettings
from lamina.wiring.stores import build_model

PASSAGES, LONG_MESSAGES, QUESTIONS = 120, 32, 60
PASSAGE_SENTENCES, LONG_SENTENCES = 9, 26
"""Sentences of about 23 word pieces each: a passage that the model sees whole, and a message of 600."""
BATCH_TOKENS = 2_048
LENGTHS = (16, 64, 250)
SEED = 16

Json = dict[str, Any]


def main() -> None:
    """Measure a model on the processor and print the figures."""
    runtime, precision = sys.argv[1:]
    chosen = SentenceTransformersSettings.model_validate({"runtime": runtime, "precision": precision})
    with tempfile.TemporaryDirectory(prefix="lamina-benchmark-") as folder:
        settings = Settings(embedding=chosen, data_dir=Path(folder))
        # A graph is made once, and loaded at every start.
        build_model(settings, "cpu")
        began = time.perf_counter()
        model = build_model(settings, "cpu")
        load_s = time.perf_counter() - began
        print(json.dumps({"load_s": load_s, **measured(model), "rss_mb": _rss_mb()}))


def passage_texts(wording: Wording, count: int) -> list[str]:
    """Return passages that the model sees whole."""
    return [" ".join(wording.statement() for _ in range(PASSAGE_SENTENCES)) for _ in range(count)]


def long_texts(wording: Wording, count: int) -> list[str]:
    """Return messages of about 600 word pieces."""
    return [" ".join(wording.statement() for _ in range(LONG_SENTENCES)) for _ in range(count)]


def measured(model: Model) -> Json:
    """Return the figures of a model that is loaded."""
    wording = Wording(np.random.default_rng(SEED))
    questions = [wording.question() for _ in range(QUESTIONS)]
    passages, long = passage_texts(wording, PASSAGES), long_texts(wording, LONG_MESSAGES)
    model.encode(passages[:8])
    times, cpu_s = list[float](), time.process_time()
    for question in questions:
        began = time.perf_counter()
        model.encode([question])
        times.append((time.perf_counter() - began) * 1000)
    query_cpu_ms = (time.process_time() - cpu_s) / QUESTIONS * 1000
    return {
        "query_ms": Latencies.of(times).p50_ms,
        "query_cpu_ms": query_cpu_ms,
        "query_cpu_ms_of_16": _cpu_ms(lambda: model.encode(questions[:16])) / 16,
        "tokens_per_cpu_s": {str(length): _tokens_per_cpu_s(model, passages, length) for length in LENGTHS},
        "passages_per_s": PASSAGES / _seconds_at_once(model, passages),
        "long_messages_per_s": LONG_MESSAGES / _seconds_at_once(model, long),
        "cosine": _cosine(model),
    }


def _seconds_at_once(model: Model, texts: Sequence[str]) -> float:
    """Return the seconds that the model takes for texts, with all of its threads and no queue before it."""
    pieces = [text[start:end] for text in texts for start, end in model.spans(text)]
    planned = passes(model.lengths(pieces), most_texts=64, most_tokens=model.pass_tokens)
    together = [[pieces[number] for number in numbers] for numbers in planned]
    with ThreadPoolExecutor(model.passes_at_once) as threads:
        began = time.perf_counter()
        list(threads.map(model.encode, together))
        return time.perf_counter() - began


def _tokens_per_cpu_s(model: Model, texts: Sequence[str], length: int) -> float:
    """Return the tokens that a second of one processor embeds, in batches of texts of about so many."""
    cut = [" ".join(text.split()[: max(1, length * 2 // 3)]) for text in texts[: max(1, BATCH_TOKENS // length)]]
    return sum(model.lengths(cut)) / _cpu_ms(lambda: model.encode(cut)) * 1000


def _cpu_ms(act: Callable[[], object]) -> float:
    """Return the milliseconds of processors that an act takes, the least of three."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        act()
        taken.append((time.process_time() - began) * 1000)
    return min(taken)


def _cosine(model: Model) -> float:
    """Return the least cosine with the vectors of torch in float32 that come with Lamina."""
    with np.load(RECORDED_FILE) as recorded:
        found = model.encode([str(text) for text in recorded["texts"]])
        return float((found * recorded["vectors"]).sum(axis=1).min())


def _rss_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


if __name__ == "__main__":
    main()
