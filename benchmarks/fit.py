"""Fit the weights of the second stage on the odd half of the chats, and write their file.

Everything that is not the fit is the product's own: vectors, candidates' number, signals. Only the keyword index is
replaced by BM25 over the same words, since a fit has no service. Nothing is fitted on LoCoMo.

Source:
    A listwise softmax (Cao et al., ICML 2007): each question counts once, its evidence shares the target. Pairs with
    hard negatives transferred worse by 5 points, since evidence that nobody marked is among the negatives.
"""

import hashlib
import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.chat_data import Conversation, Session, load_chats
from benchmarks.chats import FILE, LONG_FILE
from benchmarks.report import publish, stage, table
from lamina.core.conversations import Utterance
from lamina.core.memories import Message, Role
from lamina.core.ports import Model
from lamina.models.passes import passes
from lamina.policies.ranking.conversation_signals import REACH, Flow, signals_around
from lamina.policies.ranking.message_traits import MessageTraits, message_traits, question_traits
from lamina.policies.ranking.second_stage import WEIGHTS_FILE, Design, StageWeights, design
from lamina.search.fitted_conversation import near_found
from lamina.settings.loading import Settings
from lamina.settings.models import SentenceTransformersSettings
from lamina.text.words import index_words, question_words
from lamina.wiring.stores import build_model

COMMAND = "python -m benchmarks fit --data DIR"
PEOPLE = ("two_people", "group")
L2, AROUND_L2 = 0.2, 0.02
PARTS = 3
NEWTON_STEPS = 100
TINY_STEP = 1e-9
# Of these more is never worse, whatever the gates say. Freely fitted, a message with all the words of the question lost
# where few messages were there to compare; recall on the unseen half and on LoCoMo stays within a point.
RISING = frozenset(
    (
        *("bm25", "bm25_rank", "bm25_raw", "engine_rank", "coverage", "bm25_1", "bm25_2", "bm25_before", "bm25_after"),
        *("cos", "cos_standard", "cos_rank", "cos_1", "cos_1_standard", "cos_1_rank", "cos_3", "cos_before"),
        *("cos_after", "cos_neighbours", "bm25_x_cos_1", "question_before", "trigrams", "trigrams_standard"),
        *("trigrams_1", "session_cos", "session_bm25", "session_mean", "session_rank", "session_document"),
        *("date", "at_end_x_now", "number_x_when", "number_x_cos_1", "speaker_named"),
    )
)
DEPTHS = (1, 5, 10, 20)
K1, B = 1.2, 0.75
BATCH_TEXTS = 64

Vectors = NDArray[np.float32]
Figures = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Group:
    """The messages among which one question is answered.

    Args:
        conversation: That it is asked in.
        stage: Their signals.
        traits: Their traits.
        is_candidate: Whether each may be an answer; the others stand near one.
        evidence: Of each candidate, 1 if it answers, else 0.
        wanted: How many messages answer, found or not.
    """

    conversation: Conversation
    stage: Design
    traits: Sequence[MessageTraits]
    is_candidate: NDArray[np.bool_]
    evidence: Figures
    wanted: int


@contextmanager
def packaged_model() -> Iterator[tuple[Model, Settings]]:
    """Load the packaged model on the processor; its files go into a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="lamina-benchmark-") as folder:
        settings = Settings(embedding=SentenceTransformersSettings(), data_dir=Path(folder))
        yield build_model(settings, "cpu"), settings


def measure(
    data: Annotated[Path, typer.Option("--data", help="Folder of the chats.")],
    output: Annotated[Path, typer.Option(help="Where to write the weights.")] = WEIGHTS_FILE,
) -> None:
    """Fit the second stage of the search of conversations, and write its weights; the same data give the same file."""
    files = [data / FILE, data / LONG_FILE]
    conversations = load_chats(files)
    with packaged_model() as (model, settings):
        groups = [group for item in conversations for group in groups_of(item, model, settings)]
        swapped = [
            group
            for item in conversations
            if item.is_fitted and item.flavour in PEOPLE
            for group in groups_of(with_roles(item), model, settings)
        ]
    stage(f"signals of {len(groups)} questions")
    weights = fit_weights(
        [group for group in groups if group.conversation.is_fitted] + swapped, data_hash(files), model
    )
    output.write_text(weights.to_json(), encoding="utf-8")
    stage(f"weights written to {output}")
    found = {
        half: recalls([group for group in groups if group.conversation.is_fitted == is_fitted], weights)
        for half, is_fitted in (("fitted", True), ("unseen", False))
    }
    publish(_tables(found), {"fit": {**found, "data_sha256": weights.origin["data_sha256"]}})


def data_hash(files: Sequence[Path]) -> str:
    """Return the hash of the files, one after another."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def with_roles(conversation: Conversation) -> Conversation:
    """Return a conversation of people in which every second of them has the role of the assistant.

    Services store the chat of two people so. Without such conversations the stage takes a person for a machine.
    """
    names = list(dict.fromkeys(message["name"] for session in conversation.sessions for message in session.messages))

    def assigned(session: Session) -> Session:
        roles = ("user", "assistant")
        messages = (message | {"role": roles[names.index(message["name"]) % 2]} for message in session.messages)
        return replace(session, messages=tuple(messages))

    return replace(conversation, sessions=tuple(map(assigned, conversation.sessions)))


# -- signals, as the product makes them --------------------------------------------------------------------------------


def groups_of(conversation: Conversation, model: Model, settings: Settings) -> Iterator[Group]:
    """Yield the candidates of each question that has evidence."""
    said = [message for session in conversation.sessions for message in session.messages]
    sessions = np.repeat(np.arange(len(conversation.sessions)), [len(item.messages) for item in conversation.sessions])
    positions = np.concatenate([np.arange(len(item.messages)) for item in conversation.sessions])
    texts = [Message(Role(item["role"]), item["content"], name=item["name"]).text() for item in said]
    traits = [
        message_traits(Utterance(item["role"], item["name"], item["content"], moment(item["occurred_at"]), vectors))
        for item, vectors in zip(said, _vectors(model, texts), strict=True)
    ]
    by_words = bm25([index_words(text) for text in texts])
    asked = [question for question in conversation.questions if question.evidence]
    for question, vector in zip(asked, _encoded(model, [question.text for question in asked]), strict=True):
        words = by_words(question_words(question.text))
        found, words_rank = _found(words, _cosines(traits, vector), settings)
        rows = _within(found, sessions, positions, REACH)
        traits_near = [traits[row] for row in rows]
        flow = Flow(traits_near, sessions[rows], positions[rows], words_rank[rows])
        signals = design(question_traits(question.text, vector), flow)
        is_candidate = near_found(sessions[rows], positions[rows], found[rows])
        evidence = np.array([said[row]["ref"] in question.evidence for row in rows], float)
        yield Group(conversation, signals, traits_near, is_candidate, evidence[is_candidate], len(question.evidence))


def moment(text: str) -> datetime:
    """Return the time of an ISO text."""
    return datetime.fromisoformat(text)


def _encoded(model: Model, texts: Sequence[str]) -> Vectors:
    vectors = np.zeros((len(texts), model.identity.dimension), np.float32)
    for numbers in passes(model.lengths(texts), most_texts=BATCH_TEXTS, most_tokens=model.pass_tokens):
        vectors[list(numbers)] = model.encode([texts[number] for number in numbers])
    return vectors


def _vectors(model: Model, texts: Sequence[str]) -> list[NDArray[np.float16]]:
    """Return the vectors of each text's chunks."""
    pieces = [[text[start:end] for start, end in model.spans(text)] for text in texts]
    encoded = _encoded(model, [piece for of_one in pieces for piece in of_one]).astype(np.float16)
    return np.split(encoded, np.cumsum([len(of_one) for of_one in pieces])[:-1])


def _cosines(traits: Sequence[MessageTraits], vector: Vectors) -> Figures:
    return np.array([float((item.vectors.astype(np.float32) @ vector).max()) for item in traits])


def _found(words: Figures, cosines: Figures, settings: Settings) -> tuple[NDArray[np.bool_], Figures]:
    """Return which messages the two sources find, and each one's rank by words."""
    most, least = settings.search.context_candidates, settings.search.min_similarity
    by_words = [row for row in np.argsort(-words, kind="stable")[:most].tolist() if words[row] > 0]
    by_vector = [row for row in np.argsort(-cosines, kind="stable")[:most].tolist() if cosines[row] >= least]
    is_found, ranks = np.zeros(len(words), bool), np.full(len(words), np.inf)
    is_found[by_words + by_vector] = True
    ranks[by_words] = np.arange(len(by_words))
    return is_found, ranks


def _within(
    found: NDArray[np.bool_], sessions: NDArray[np.int64], positions: NDArray[np.int64], reach: int
) -> NDArray[np.int64]:
    """Return the rows within so many positions of a found one, in its session."""
    near = np.zeros(len(found), bool)
    for row in np.flatnonzero(found).tolist():
        near |= (sessions == sessions[row]) & (np.abs(positions - positions[row]) <= reach)
    return np.flatnonzero(near)


def bm25(documents: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], Figures]:
    """Return BM25 over the documents, as a function of a question's words."""
    counts = [Counter(words) for words in documents]
    lengths = np.array([len(words) for words in documents], float)
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, of_one in enumerate(counts):
        for word, count in of_one.items():
            postings[word].append((row, count))

    def score(words: Sequence[str]) -> Figures:
        scores = np.zeros(len(documents))
        for word in sorted(set(words)):
            having = postings.get(word, [])
            idf = math.log(1 + (len(documents) - len(having) + 0.5) / (len(having) + 0.5))
            for row, count in having:
                scores[row] += idf * count * (K1 + 1) / (count + norm[row])
        return scores

    return score


# -- fit ---------------------------------------------------------------------------------------------------------------


def fit_weights(groups: Sequence[Group], data_sha256: str, model: Model) -> StageWeights:
    """Return the weights that the groups ask for."""
    answerable = [group for group in groups if group.evidence.any()]
    origin = {
        "data": f"{FILE} and {LONG_FILE}, conversations with odd numbers (CC0)",
        "data_sha256": data_sha256,
        "questions": len(answerable),
        "model": model.identity.model,
        "l2": L2,
        "command": COMMAND,
    }
    return replace(_fit_signals(answerable), around=_fit_around(answerable), origin=origin)


def _fit_signals(groups: Sequence[Group]) -> StageWeights:
    """Return the weights of the signals alone."""
    matrices = [group.stage.matrix() for group in groups]
    columns = matrices[0][1]
    mixed, is_rising = mixing(columns)
    values = [matrix[group.is_candidate] @ mixed for (matrix, _), group in zip(matrices, groups, strict=True)]
    parts: dict[str, dict[str, float]] = {"plain": {}, "short": {}, "usual": {}}
    for (part, name), weight in zip(columns, mixed @ _scaled_fit(groups, values, L2, is_rising), strict=True):
        parts[part][name] = float(weight)
    return StageWeights(**parts, around={}, origin={})


def _fit_around(groups: Sequence[Group]) -> dict[str, float]:
    """Return the weights of the scores around, by weights that were fitted without their conversation."""
    names = sorted({group.conversation.name for group in groups})
    part_of = {name: at % PARTS for at, name in enumerate(names)}
    others = [
        _fit_signals([group for group in groups if part_of[group.conversation.name] != part]) for part in range(PARTS)
    ]
    values: list[Figures] = []
    around: tuple[str, ...] = ()
    for group in groups:
        own = group.stage.own_scores(others[part_of[group.conversation.name]])
        signals = signals_around(group.stage.flow, own)
        around = tuple(signals)
        values.append(np.column_stack([own, *signals.values()])[group.is_candidate])
    fitted = _scaled_fit(groups, values, AROUND_L2, np.zeros(len(around) + 1, bool))
    return dict(zip(around, (fitted[1:] / fitted[0]).tolist(), strict=True))


def _scaled_fit(groups: Sequence[Group], values: Sequence[Figures], l2: float, is_rising: NDArray[np.bool_]) -> Figures:
    """Return the weights of the values, for which large weights cost as if all varied by one."""
    scale = np.concatenate(values).std(axis=0) + 1e-6
    scaled = [
        (of_one / scale, group.evidence / group.evidence.sum()) for of_one, group in zip(values, groups, strict=True)
    ]
    return np.asarray(newton(scaled, l2=l2, is_rising=is_rising) / scale)


def mixing(columns: Sequence[tuple[str, str]]) -> tuple[Figures, NDArray[np.bool_]]:
    """Return the map from columns of the fit to signals, and which columns have no weight below 0.

    A rising signal with gates has a column for each end of each gate: with weights of 0 and above, it rises
    everywhere between them.
    """
    place = {column: at for at, column in enumerate(columns)}
    gated = {name for part, name in columns if part != "plain"}
    made, is_rising = [], []
    for part, name in columns:
        column = np.zeros(len(columns))
        column[place[part, name]] = 1
        if name in RISING & gated:
            if part != "plain":
                other_end = -column
                other_end[place["plain", name]] = 1
                made += [column, other_end]
                is_rising += [True, True]
            continue
        made.append(column)
        is_rising.append(name in RISING)
    return np.stack(made, axis=1), np.array(is_rising)


def newton(groups: Sequence[tuple[Figures, Figures]], *, l2: float, is_rising: NDArray[np.bool_]) -> Figures:
    """Return the weights of least mean cross-entropy + l2 · |weights|², which is convex, by projected Newton steps.

    Args:
        groups: Values of each question's candidates, and the target's share of each.
        l2: How much large weights cost.
        is_rising: Which weights may not be below 0.

    Source:
        Bertsekas, SIAM Journal on Control and Optimization 1982.
    """
    weights = np.zeros(groups[0][0].shape[1])
    for _ in range(NEWTON_STEPS):
        slope: Figures = 2 * l2 * weights
        curve = 2 * l2 * np.eye(len(weights))
        for values, target in groups:
            shares = _softmax(values @ weights)
            mean = shares @ values
            slope += values.T @ (shares - target) / len(groups)
            curve += ((values.T * shares) @ values - np.outer(mean, mean)) / len(groups)
        free = ~(is_rising & (weights <= 0) & (slope > 0))
        step = np.zeros(len(weights))
        step[free] = np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        after = _stepped(groups, weights, step, l2, is_rising)
        if np.abs(after - weights).max() < TINY_STEP:
            break
        weights = after
    return weights


def _stepped(
    groups: Sequence[tuple[Figures, Figures]],
    weights: Figures,
    step: Figures,
    l2: float,
    is_rising: NDArray[np.bool_],
) -> Figures:
    """Return the weights after a step, which is halved until the loss falls."""
    before, part = _loss(groups, weights, l2), 1.0
    while part > TINY_STEP:
        after = weights - part * step
        after = np.where(is_rising, np.maximum(after, 0.0), after)
        if _loss(groups, after, l2) < before:
            return after
        part /= 2
    return weights


def _loss(groups: Sequence[tuple[Figures, Figures]], weights: Figures, l2: float) -> float:
    total = 0.0
    for values, target in groups:
        scores = values @ weights
        most = scores.max()
        total += most + math.log(np.exp(scores - most).sum()) - float(target @ scores)
    return total / len(groups) + l2 * float(weights @ weights)


def _softmax(scores: Figures) -> Figures:
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())


def recalls(groups: Sequence[Group], weights: StageWeights) -> dict[str, float]:
    """Return the mean recall at each depth."""
    found = dict.fromkeys(DEPTHS, 0.0)
    for group in groups:
        order = np.argsort(-group.stage.scores(weights)[group.is_candidate], kind="stable")
        for depth in DEPTHS:
            found[depth] += float(group.evidence[order[:depth]].sum()) / group.wanted / len(groups)
    return {f"recall_at_{depth}": value for depth, value in found.items()}


def _tables(found: dict[str, dict[str, float]]) -> tuple[Table, ...]:
    shown = table("Recall of evidence among the candidates, per cent", "half", *(f"@{depth}" for depth in DEPTHS))
    for half, of_half in found.items():
        shown.add_row(half, *(f"{100 * value:.1f}" for value in of_half.values()))
    return (shown,)
