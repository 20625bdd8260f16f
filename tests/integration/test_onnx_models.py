"""Models of other families, sizes and layouts on ONNX Runtime, compared with sentence-transformers."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from lamina.core.ports import Model
from lamina.errors import Misconfigured
from lamina.models.onnx.folder import identity_by_files
from lamina.models.onnx.graph import _ACTIVATIONS, _NAMES, make_graph, read_encoder
from lamina.models.onnx.model import OnnxModel
from lamina.models.packaged import model_path
from lamina.models.passes import passes
from lamina.models.sentence_transformers import SentenceTransformerModel
from lamina.settings import PACKAGED_MODEL, SentenceTransformersSettings, load_settings
from lamina.wiring.stores import build_model, model_identity

CONFIG = {"vocab_size": 30522, "pad_token_id": 0, "max_position_embeddings": 80, "type_vocab_size": 2}
WIDTH, INNER = 24, 40
FEED_FORWARD = ((INNER, WIDTH), (WIDTH, INNER))
SIZES = {
    "hidden_size": WIDTH,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "intermediate_size": INNER,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}
DISTILBERT_SIZES = {"dim": WIDTH, "n_heads": 3, "n_layers": 2, "hidden_dim": INNER, "activation": "gelu"}
TEXTS = ("", "tea", "The Cat sleeps on the warm windowsill [PAD] all day.", "мой кот", "long " * 90)
TOKENIZER_FILES = ("tokenizer.json", "special_tokens_map.json", "vocab.txt")

Make = Callable[..., Path]


@pytest.fixture
def new_model(tmp_path: Path) -> Make:
    """Make a small model of random weights in a folder of its own."""

    def make(kind: str = "bert", pooling: Mapping[str, Any] | None = None, **config: Any) -> Path:
        folder = tmp_path / "model"
        folder.mkdir()
        given = CONFIG | (DISTILBERT_SIZES if kind == "distilbert" else SIZES) | {"model_type": kind} | config
        write(folder / "config.json", given)
        save_file(random_weights(given), folder / "model.safetensors", metadata={"format": "pt"})
        for name in TOKENIZER_FILES:
            shutil.copy(Path(model_path(PACKAGED_MODEL)) / name, folder / name)
        write(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"})
        write(folder / "modules.json", [module(0, "", "Transformer"), module(1, "1_Pooling", "Pooling")])
        write(folder / "sentence_bert_config.json", {"max_seq_length": 60})
        flags = pooling or {"pooling_mode_mean_tokens": True}
        write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 24, **flags})
        return folder

    return make


@pytest.fixture(autouse=True)
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no graph checked against torch, which takes seconds; the check has tests of its own."""
    monkeypatch.setattr("lamina.models.onnx.model.is_torch_installed", lambda: False)


def random_weights(config: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    """Weights of every part of an encoder, its norms included."""
    random = np.random.default_rng(len(config["model_type"]))
    names = _NAMES[config["model_type"]]
    rows = (config["vocab_size"], config["max_position_embeddings"], config["type_vocab_size"])
    tables = {name: (count, WIDTH) for name, count in zip(names["embeddings"], rows, strict=True) if name}
    dense, norms = {}, [names["embeddings_norm"]]
    for number in range(2):
        prefix = f"{names['layer']}{number}."
        dense |= {prefix + name: (WIDTH, WIDTH) for name in names["attention"]}
        dense |= {prefix + name: shape for name, shape in zip(names["feed_forward"], FEED_FORWARD, strict=True)}
        norms += [prefix + name for name in names["norms"]]
    weights = {f"{name}.weight": random.normal(0, 0.5, shape) for name, shape in (tables | dense).items()}
    weights |= {f"{name}.bias": random.normal(0, 0.5, shape[0]) for name, shape in dense.items()}
    weights |= {f"{name}.weight": random.uniform(0.5, 1.5, WIDTH) for name in norms}
    weights |= {f"{name}.bias": random.normal(0, 0.2, WIDTH) for name in norms}
    return {name: array.astype(np.float32) for name, array in weights.items()}


def module(number: int, path: str, kind: str) -> dict[str, Any]:
    return {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def chosen(folder: Path) -> SentenceTransformersSettings:
    return SentenceTransformersSettings(model=str(folder), precision="float32")


def opened(folder: Path) -> OnnxModel:
    return OnnxModel(chosen(folder), "cpu", folder.parent / "graphs")


def apart(model: Model, folder: Path) -> float:
    return float(np.abs(model.encode(TEXTS) - SentenceTransformerModel(chosen(folder), "cpu").encode(TEXTS)).max())


@pytest.mark.torch
@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("bert", {"hidden_act": "gelu"}),
        ("bert", {"hidden_act": "relu", "layer_norm_eps": 0.1}),
        ("bert", {"hidden_act": "gelu_new", "type_vocab_size": 1}),
        ("roberta", {}),
        ("xlm-roberta", {}),
        ("distilbert", {}),
    ],
)
def test_a_model_of_each_family_has_the_vectors_of_torch(new_model: Make, kind: str, config: dict[str, Any]) -> None:
    folder = new_model(kind, **config)

    assert apart(opened(folder), folder) < 1e-5


@pytest.mark.torch
@pytest.mark.parametrize(
    "flags",
    [
        {"pooling_mode_cls_token": True},
        {"pooling_mode_max_tokens": True},
        {"pooling_mode_lasttoken": True},
        {"pooling_mode_weightedmean_tokens": True},
        {"pooling_mode_mean_sqrt_len_tokens": True, "pooling_mode_cls_token": True},
        {"pooling_mode": "cls"},
    ],
)
def test_a_model_is_pooled_as_its_own_files_say(new_model: Make, flags: dict[str, Any]) -> None:
    folder = new_model(pooling=flags)

    assert apart(opened(folder), folder) < 1e-5


@pytest.mark.torch
@pytest.mark.parametrize("includes", [True, False])
def test_a_default_prompt_stands_before_each_text(new_model: Make, includes: bool) -> None:
    folder = new_model(pooling={"pooling_mode_mean_tokens": True, "include_prompt": includes})
    write(
        folder / "config_sentence_transformers.json",
        {"prompts": {"query": "Represent this: "}, "default_prompt_name": "query"},
    )

    assert apart(opened(folder), folder) < 1e-5


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_weights_in_half_precision_are_read(new_model: Make, kind: str) -> None:
    folder = new_model()
    weights = load_file(folder / "model.safetensors")
    halves = {name: np.asarray(array, dtype=np.dtype(kind)) for name, array in weights.items()}
    save_file(halves, folder / "model.safetensors")

    assert apart(opened(folder), folder) < 1e-5


def test_weights_named_from_a_head_on_are_found(new_model: Make) -> None:
    folder = new_model()
    weights = load_file(folder / "model.safetensors")
    plain = opened(folder).encode(TEXTS)
    save_file({f"bert.{name}": array for name, array in weights.items()}, folder / "model.safetensors")

    assert np.array_equal(opened(folder).encode(TEXTS), plain)


@pytest.mark.torch
def test_a_bare_encoder_is_averaged_up_to_its_own_length(new_model: Make) -> None:
    folder = new_model()
    for name in ("modules.json", "sentence_bert_config.json"):
        (folder / name).unlink()

    assert apart(opened(folder), folder) < 1e-5


@pytest.mark.parametrize("place", ["model.onnx", "onnx/model.onnx"])
def test_the_onnx_file_that_a_folder_carries_is_used_as_it_is(new_model: Make, place: str) -> None:
    folder = new_model()
    made = opened(folder).encode(TEXTS)
    graph = make_graph(read_encoder(json.loads((folder / "config.json").read_text())), weights_of(folder))
    (folder / place).parent.mkdir(exist_ok=True)
    onnx.save_model(graph, str(folder / place))
    (folder / "model.safetensors").unlink()
    shutil.rmtree(folder.parent / "graphs")

    model = opened(folder)

    assert np.allclose(model.encode(TEXTS), made, atol=1e-6)
    assert model.report.checked == "the model's own file"
    assert not (folder.parent / "graphs").exists()


def weights_of(folder: Path) -> dict[str, Any]:
    return dict(load_file(folder / "model.safetensors"))


def test_a_graph_is_made_once_and_anew_when_the_weights_are_others(new_model: Make) -> None:
    folder = new_model()
    before = opened(folder).encode(TEXTS)
    graphs = folder.parent / "graphs"
    (file,) = graphs.glob("*/encoder.onnx")
    written = file.stat().st_mtime_ns

    opened(folder)
    assert file.stat().st_mtime_ns == written
    save_file({name: array * 2 for name, array in weights_of(folder).items()}, folder / "model.safetensors")

    assert not np.allclose(opened(folder).encode(TEXTS), before, atol=1e-3)
    assert len(list(graphs.iterdir())) == 2


def test_replicas_that_start_at_once_make_one_graph(new_model: Make) -> None:
    folder = new_model()

    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(opened, [folder] * 4))

    assert len({model.encode(["tea"]).tobytes() for model in models}) == 1
    assert len(list((folder.parent / "graphs").iterdir())) == 1


def test_a_graph_that_gives_other_vectors_than_the_recorded_ones_is_refused_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_ACTIVATIONS, "gelu", "Relu")

    with pytest.raises(Misconfigured, match="differ from the recorded ones"):
        OnnxModel(SentenceTransformersSettings(), "cpu", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_packaged_model_is_checked_and_one_without_recorded_vectors_says_that_it_is_not(
    new_model: Make, minilm: OnnxModel, caplog: pytest.LogCaptureFixture
) -> None:
    folder = new_model()

    assert minilm.report.checked == "recorded vectors"
    assert opened(folder).report.checked == "unchecked"
    assert opened(folder).report.checked == "unchecked"
    assert f"the ONNX graph of {folder} is unchecked" in caplog.text


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("config.json", None, "config.json is missing"),
        ("config.json", "{", "config.json is no JSON"),
        ("config.json", '{"model_type": "modernbert", "hidden_size": 24, "max_position_embeddings": 80}', "modernbert"),
        ("config.json", '{"model_type": "t5", "n_positions": 80}', "no hidden_size: its model_type is t5"),
        ("tokenizer.json", None, "tokenizer.json is missing"),
        ("model.safetensors", None, "model.safetensors is missing"),
        ("1_Pooling/config.json", '{"pooling_mode": "attention"}', "pooled by"),
        (
            "modules.json",
            json.dumps([module(0, "", "Transformer"), module(1, "d", "Dense")]),
            "d/config.json is missing",
        ),
        ("modules.json", json.dumps([module(0, "", "Transformer"), module(1, "l", "LSTM")]), "has LSTM, which runs on"),
        ("modules.json", json.dumps([module(0, "", "CLIPModel")]), "has CLIPModel, which runs on"),
    ],
)
def test_a_folder_of_which_no_graph_can_be_made_is_refused_with_a_remedy(
    new_model: Make, file: str, content: str | None, expected: str
) -> None:
    folder = new_model()
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)

    with pytest.raises(Misconfigured, match=expected):
        opened(folder)


def test_a_model_by_name_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"some/model is neither a folder nor in the local cache of the hub; give"):
        OnnxModel(SentenceTransformersSettings(model="some/model"), "cpu", tmp_path)


@pytest.mark.parametrize("lengths", [[], [5], [300, 1, 20, 20, 7], [10] * 200, [5_000, 2]])
def test_every_text_is_in_one_pass_with_those_of_its_length(lengths: list[int]) -> None:
    found = list(passes(lengths, most_texts=8, most_tokens=400))

    assert sorted(number for batch in found for number in batch) == list(range(len(lengths)))
    assert [lengths[number] for batch in found for number in batch] == sorted(lengths)
    assert all(len(batch) <= 8 for batch in found)
    assert all(len(batch) == 1 or len(batch) * max(lengths[number] for number in batch) <= 400 for batch in found)


def test_the_settings_choose_onnx_runtime_and_its_graph_lies_in_the_data_directory(
    new_model: Make, tmp_path: Path
) -> None:
    folder = new_model()
    embedding = {"kind": "sentence_transformers", "model": str(folder), "runtime": "onnx"}
    settings = load_settings(embedding=embedding, data_dir=tmp_path / "data")

    model = build_model(settings, "cpu")

    assert isinstance(model, OnnxModel)
    assert model.identity == model_identity(settings) == identity_by_files(chosen(folder))
    assert len(list((tmp_path / "data" / "models").glob("*/encoder.onnx"))) == 1


def test_neither_torch_nor_transformers_are_loaded(tmp_path: Path) -> None:
    code = f"""
import sys
from lamina.settings import load_settings
from lamina.wiring.stores import build_model, model_identity
settings = load_settings(embedding={{"kind": "sentence_transformers", "runtime": "onnx"}}, data_dir={str(tmp_path)!r})
model = build_model(settings, "cpu")
assert model.identity == model_identity(settings) and len(model.spans("Some words. " * 900)) > 5
model.encode(["tea"])
print(sorted({{"torch", "transformers", "sentence_transformers", "scipy", "sklearn"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]", done.stdout


def test_a_missing_onnx_runtime_is_named_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for name in ("encoder", "model"):
        monkeypatch.delitem(sys.modules, f"lamina.models.onnx.{name}")
    settings = load_settings(embedding={"kind": "sentence_transformers", "runtime": "onnx"}, data_dir=tmp_path)

    with pytest.raises(Misconfigured, match=r"onnxruntime is missing; install lamina\[model\]"):
        build_model(settings, "cpu")
