"""The wheel: a client by itself, the whole application with its extras, and no general name beside the package."""

import email
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lamina import __version__

ROOT = Path(__file__).parents[2]
CLIENT_ALONE = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
sys.path[:] = [{wheel!r}, *(place for place in sys.path if place not in ("", {root!r}))]
"""
CLI_LIBRARIES = ("apscheduler", "numpy", "psycopg", "ray", "regex", "rich", "tenacity", "typer", "uuid_utils")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (built,) = folder.glob("*.whl")
    return built


def run_in(wheel: Path, code: str, missing: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter that finds Lamina in the wheel alone."""
    unpacked = wheel.parent / "unpacked"
    if not unpacked.exists():
        zipfile.ZipFile(wheel).extractall(unpacked)
    begin = CLIENT_ALONE.format(missing=missing, wheel=str(unpacked), root=str(ROOT))
    command = [sys.executable, "-P", "-c", begin + code]
    return subprocess.run(command, cwd=wheel.parent, env={}, capture_output=True, text=True, check=False)


def test_every_file_that_ships_is_in_the_package_and_nothing_lies_beside_it(wheel: Path) -> None:
    ours = ("lamina", "deployments", "actors", "jobs", "configs")
    files = [path for folder in ours for path in (ROOT / folder).rglob("*") if path.is_file()]
    names_here = [path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts]
    shipped = {name if name.startswith("lamina/") else f"lamina/application/{name}" for name in names_here}

    names = set(zipfile.ZipFile(wheel).namelist())

    assert shipped <= names
    assert {name.partition("/")[0] for name in names} == {"lamina", f"lamina_memory-{__version__}.dist-info"}


def test_without_extras_it_needs_httpx_and_pydantic_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        metadata = email.message_from_bytes(file.read(f"lamina_memory-{__version__}.dist-info/METADATA"))

    always = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]

    assert sorted(re.split(r"[<>= ]", line)[0] for line in always) == ["httpx", "pydantic"]


def test_the_client_is_imported_without_the_libraries_of_the_command_line(wheel: Path) -> None:
    done = run_in(wheel, "import lamina.client; print(lamina.client.__file__)", CLI_LIBRARIES)

    assert done.stdout.startswith(str(wheel.parent)), done.stderr


def test_the_command_line_without_its_libraries_names_the_extra(wheel: Path) -> None:
    done = run_in(wheel, "import lamina.cli; lamina.cli.main()", CLI_LIBRARIES)

    assert done.returncode == 1
    assert re.fullmatch(r"error this is .+, but \w+ is missing; install lamina-memory\[cli\]\n", done.stderr)


def test_an_installed_application_is_found_and_its_file_for_serve_names_its_place(wheel: Path) -> None:
    code = """
from lamina.cli.commands import _application, app
print(_application("deployments.up:run").__module__, sys.modules["deployments"].__file__)
app(["config", "serve"])
"""

    done = run_in(wheel, code)

    place = wheel.parent / "unpacked" / "lamina" / "application"
    assert done.stdout.startswith(f"deployments.up {place}/deployments/__init__.py\n"), done.stderr
    assert f"PYTHONPATH={place}\n" in done.stdout
    assert "import_path: deployments.app:build" in done.stdout


def test_the_changelog_begins_with_this_version() -> None:
    versions = re.findall(r"^## (\S+)", (ROOT / "docs" / "changelog.md").read_text(), re.MULTILINE)

    assert versions[0] == __version__
    assert len(versions) == len(set(versions))
