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
from onnxruntime import InferenceSession
from safetensors.numpy import load_file, save_file

from lamina.core.ports import Model, ReportingModel
from lamina.errors import Misconfigured
from lamina.models.onnx import graph_files
from lamina.models.onnx.agreement import RECORDED
from lamina.models.onnx.folder import identity_by_files
from lamina.models.onnx.graph import _ACTIVATIONS, GRAPH_VERSION, make_graph, read_encoder
from lamina.models.onnx.model import OnnxModel
from lamina.models.packaged import model_path
from lamina.models.passes import passes
from lamina.models.sentence_transformers import SentenceTransformerModel
from lamina.settings.loading import load_settings
from lamina.settings.models import PACKAGED_MODEL, SentenceTransformersSettings
from lamina.wiring.stores import build_model, model_identity
from tests.support.small_models import add_dense, make_small_model, module, write

WEIGHTS = "model.safetensors"
TEXTS = ("", "tea", "The Cat sleeps on the warm windowsill [PAD] all day.", "мой кот", "long " * 90)
Make = Callable[..., Path]


@pytest.fixture
def new_model(tmp_path: Path) -> Make:
    """Make a small model of random weights in a folder of its own."""

    def make(kind: str = "bert", pooling: Mapping[str, Any] | None = None, **config: Any) -> Path:
        return make_small_model(tmp_path / "model", kind, pooling, **config)

    return make


@pytest.fixture(autouse=True)
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no graph checked against torch, which takes seconds; the check has tests of its own."""
    monkeypatch.setattr("lamina.models.onnx.model.is_torch_installed", lambda: False)


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
        ("camembert", {"pad_token_id": 1}),
        ("electra", {"embedding_size": 24}),
        ("mpnet", {"pad_token_id": 1}),
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


@pytest.mark.torch
@pytest.mark.parametrize("activation", ["activation.Tanh", "linear.Identity", "activation.ReLU", "activation.Sigmoid"])
@pytest.mark.parametrize("inner", [True, False])
def test_a_dense_layer_follows_pooling(new_model: Make, activation: str, inner: bool) -> None:
    folder = add_dense(new_model(), activation, inner=inner)

    assert apart(opened(folder), folder) < 1e-5
    assert opened(folder).identity.dimension == identity_by_files(chosen(folder)).dimension == 16


@pytest.mark.torch
def test_a_graph_of_unrecorded_vectors_is_checked_against_torch_where_that_is_installed(
    new_model: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.models.onnx.model.is_torch_installed", lambda: True)
    report = opened(new_model()).report

    assert (report.checked, report.may_be_mixed) == ("torch", True)


@pytest.mark.torch
def test_a_graph_whose_vectors_are_not_torchs_is_refused_and_auto_takes_torch(
    new_model: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.models.onnx.model.is_torch_installed", lambda: True)
    monkeypatch.setitem(_ACTIVATIONS, "gelu", "Relu")
    folder = new_model()

    with pytest.raises(Misconfigured, match="differ from the ones by torch"):
        opened(folder)
    assert built(folder, tmp_path).report.runtime == "torch"


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["modernbert", "bare pytorch", "another dense layer"])
def test_auto_gives_to_torch_what_onnx_runtime_cannot_run(new_model: Make, tmp_path: Path, kind: str) -> None:
    folder = unfit(new_model(), kind)

    model = built(folder, tmp_path)

    assert model.report.runtime == "torch"
    assert model.encode(["tea"]).shape == (1, model.identity.dimension)


def unfit(folder: Path, kind: str) -> Path:
    """Make a model one that ONNX Runtime cannot run."""
    match kind:
        case "bare pytorch":
            import torch

            torch.save(
                {name: torch.from_numpy(array) for name, array in weights_of(folder).items()},
                folder / "pytorch_model.bin",
            )
            (folder / "model.safetensors").unlink()
        case "another dense layer":
            add_dense(folder, "activation.GELU")
        case "modernbert":
            from transformers import AutoConfig, AutoModel

            sizes = {"hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 40}
            config = AutoConfig.for_model("modernbert", vocab_size=30522, pad_token_id=0, **sizes)
            AutoModel.from_config(config).save_pretrained(folder)
    return folder


def built(folder: Path, data_dir: Path, **fields: Any) -> ReportingModel:
    embedding = {"kind": "sentence_transformers", "model": str(folder), **fields}
    return build_model(load_settings(embedding=embedding, data_dir=data_dir), "cpu")


@pytest.mark.parametrize(
    ("name", "obstacle"), [("unfit", "model_type is modernbert"), ("some/where", "is neither a folder nor in the")]
)
def test_auto_without_torch_names_the_model_the_obstacle_and_the_extra(
    new_model: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, obstacle: str
) -> None:
    monkeypatch.setattr("lamina.wiring.stores.is_torch_installed", lambda: False)
    folder = new_model().rename(tmp_path / "unfit")
    config = json.loads((folder / "config.json").read_text())
    write(folder / "config.json", config | {"model_type": "modernbert"})
    model = folder if name == "unfit" else Path(name)

    with pytest.raises(Misconfigured) as refused:
        built(model, tmp_path)

    assert f"ONNX Runtime cannot run embedding.model {model}: " in str(refused.value)
    assert obstacle in str(refused.value)
    assert "torch, which may, is missing; install lamina-memory[gpu]" in str(refused.value)


def test_weights_in_several_files_are_read(new_model: Make) -> None:
    folder = new_model()
    whole = opened(folder).encode(TEXTS)
    weights = weights_of(folder)
    names = sorted(weights)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, kept in shards.items():
        save_file({name: weights[name] for name in kept}, folder / file)
    index = {name: file for file, kept in shards.items() for name in kept}
    write(folder / "model.safetensors.index.json", {"weight_map": index})
    (folder / "model.safetensors").unlink()

    assert np.array_equal(opened(folder).encode(TEXTS), whole)

    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(Misconfigured, match=r"model-00002-of-00002\.safetensors is missing"):
        opened(folder)


def test_a_name_is_found_in_the_local_cache_of_the_hub(
    new_model: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = opened(new_model())
    cached = tmp_path / "hub" / "models--acme--small"
    (cached / "snapshots").mkdir(parents=True)
    (tmp_path / "model").rename(cached / "snapshots" / "1234567890123456789012345678901234567890")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("1234567890123456789012345678901234567890")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))

    model = OnnxModel(SentenceTransformersSettings(model="acme/small"), "cpu", tmp_path / "graphs")

    assert model.identity.model == "acme/small"
    assert np.array_equal(model.encode(TEXTS), plain.encode(TEXTS))


def test_a_lone_onnx_file_of_another_name_is_used_and_of_several_none(new_model: Make) -> None:
    folder = new_model()
    graph = make_graph(read_encoder(json.loads((folder / "config.json").read_text())), weights_of(folder))
    onnx.save_model(graph, str(folder / "model_O2.onnx"))
    assert opened(folder).report.checked == "the model's own file"

    onnx.save_model(graph, str(folder / "model_O3.onnx"))
    assert opened(folder).report.checked == "unchecked"


def test_an_onnx_file_that_cannot_be_read_is_named(new_model: Make) -> None:
    folder = new_model()
    (folder / "model.onnx").write_bytes(b"no graph")

    with pytest.raises(Misconfigured, match=r"ONNX Runtime cannot read .*model\.onnx"):
        opened(folder)


@pytest.mark.parametrize("missing", ["embeddings.position_embeddings.weight", "encoder.layer.1.output.dense.bias"])
def test_weights_that_are_missing_are_named(new_model: Make, missing: str) -> None:
    folder = new_model()
    save_file({name: array for name, array in weights_of(folder).items() if name != missing}, folder / WEIGHTS)

    with pytest.raises(Misconfigured, match=f"has no weights '{missing}'"):
        opened(folder)


def test_the_same_weights_otherwise_used_are_not_compared_with_the_recorded_vectors(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model_path(PACKAGED_MODEL), folder)
    (folder / "modules.json").unlink()
    write(folder / "sentence_bert_config.json", {"max_seq_length": 8})

    assert opened(folder).report.checked == "unchecked"


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "mpnet"])
def test_a_model_in_int8_points_where_float32_does_in_every_batch(new_model: Make, kind: str) -> None:
    folder = new_model(kind, pad_token_id=1)
    full = opened(folder)
    short = built(folder, folder.parent, precision="int8")

    vectors = short.encode(TEXTS)

    assert (vectors * full.encode(TEXTS)).sum(axis=1).min() > 0.99
    assert np.array_equal(np.concatenate([short.encode([text]) for text in TEXTS]), vectors)


def test_int8_is_another_model_to_the_stores_and_has_a_graph_of_its_own(tmp_path: Path) -> None:
    embedding = {"kind": "sentence_transformers", "precision": "int8"}
    settings = load_settings(embedding=embedding, data_dir=tmp_path)

    short = build_model(settings, "cpu")

    assert short.identity == model_identity(settings)
    assert short.identity.model == "all-MiniLM-L6-v2 int8"
    assert (short.report.precision, short.report.checked, short.report.may_be_mixed) == ("int8", RECORDED, False)
    assert build_model(load_settings(embedding=embedding | {"precision": "float32"}, data_dir=tmp_path), "cpu")
    assert len(list((tmp_path / "models").iterdir())) == 2


def test_int8_of_a_folder_that_carries_its_graph_is_refused(new_model: Make, tmp_path: Path) -> None:
    folder = new_model()
    (folder / "model.onnx").write_bytes(b"")

    with pytest.raises(Misconfigured, match=r"precision is int8, but .* is used as it is"):
        built(folder, tmp_path, precision="int8")


def test_an_execution_provider_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"provider is openvino, but the installed ONNX Runtime has only"):
        OnnxModel(SentenceTransformersSettings(provider="openvino"), "cpu", tmp_path)


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


def test_padding_is_computed_by_attention_alone(new_model: Make) -> None:
    folder = new_model()
    graph = make_graph(read_encoder(json.loads((folder / "config.json").read_text())), weights_of(folder))
    products = [node.output[0] for node in graph.graph.node if node.op_type == "MatMul"]
    graph.graph.output.extend(onnx.ValueInfoProto(name=name) for name in products)
    ids, mask = np.array([[2, 3, 0, 0, 0], [2, 5, 6, 7, 3]], np.int32), np.array([[1, 1, 0, 0, 0], [1] * 5], np.int32)
    places = np.broadcast_to(np.arange(5, dtype=np.int32), ids.shape).copy()
    session = InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])

    hidden, *rows = session.run(None, {"input_ids": ids, "attention_mask": mask, "position_ids": places})

    assert {row.shape[:2] for row in rows} == {(1, 7)}
    assert hidden.shape[:2] == ids.shape
    short = {"input_ids": ids[:1, :2], "attention_mask": mask[:1, :2], "position_ids": places[:1, :2]}
    assert np.allclose(session.run(["last_hidden_state"], short)[0], hidden[:1, :2], atol=1e-5)


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


def test_what_an_earlier_release_made_of_a_model_is_removed_once_there_is_a_later_graph(
    new_model: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new_model()
    graphs = folder.parent / "graphs"
    (broken := graphs / "broken").mkdir(parents=True)
    (broken / "origin.json").write_text("[")
    monkeypatch.setattr(graph_files, "GRAPH_VERSION", GRAPH_VERSION - 1)
    opened(folder)
    weights = weights_of(folder)
    save_file({name: array * 2 for name, array in weights.items()}, folder / "model.safetensors")
    opened(folder)
    of_others = {path.name for path in graphs.iterdir()}
    monkeypatch.setattr(graph_files, "GRAPH_VERSION", GRAPH_VERSION)

    opened(folder)

    left = {path.name for path in graphs.iterdir()}
    assert len(left & of_others) == 2  # The other weights' graph, and what is no graph.
    assert len(left - of_others) == 1


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
from lamina.settings.loading import load_settings
from lamina.wiring.stores import build_model, model_identity
from tests.support.small_models import make_small_model, module, write
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

    with pytest.raises(Misconfigured, match=r"onnxruntime is missing; install lamina-memory\[model\]"):
        build_model(settings, "cpu")
