"""`lamina config`: check configuration files, and show the settings in effect."""

import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from lamina.cli.common import ConfigOption, DataDirOption, application_folder, settings_of
from lamina.cli.console import console
from lamina.config_check import ConfigFile, Finding, check_files, settings_as_yaml
from lamina.config_check.serve import note_missing_schema
from lamina.errors import Misconfigured

SUFFIXES = (".yaml", ".yml", ".json")
app = typer.Typer(help="The configuration: check, show, serve.", no_args_is_help=True)


@app.command("check")
def check(
    files: Annotated[
        list[Path], typer.Argument(help="Settings, Serve's files, manifests, rules, dashboards; or folders of them.")
    ],
) -> None:
    """Check files of any kind without a server; exit 1 on errors, 0 with warnings alone."""
    chosen = list(_files_in(files))
    found = check_files([ConfigFile(str(path), _read(path)) for path in chosen], check_serve_schema)
    for name, finding in found:
        console.print(f"{escape(name)}: {escape(str(finding))}", highlight=False, soft_wrap=True)
    errors, warnings = (sum(item.severity == severity for _, item in found) for severity in ("error", "warning"))
    console.print(f"{len(chosen)} files, {errors} errors, {warnings} warnings", style="dim", highlight=False)
    raise typer.Exit(1 if errors else 0)


@app.command("show")
def show(config: ConfigOption = None, data_dir: DataDirOption = None) -> None:
    """Print the settings in effect as YAML, with a line on each; secrets are left out."""
    for line in settings_as_yaml(settings_of(config, data_dir)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command("serve")
def serve() -> None:
    """Print a file for `serve deploy`; its first lines tell how Ray is started, with the place of this installation."""
    folder = application_folder()
    print((folder / "configs" / "serve.yaml").read_text().replace("$PWD", str(folder)), end="")  # noqa: T201 - a file


def check_serve_schema(document: Mapping[str, Any]) -> Iterable[Finding]:
    """Check a Serve configuration against the schema of the installed Ray; without one, return a note."""
    sys.path.insert(0, str(application_folder()))
    try:
        module = importlib.import_module("deployments.serve_schema")  # Importing Ray takes seconds.
    except ModuleNotFoundError:
        return note_missing_schema(document)
    found: Iterable[Finding] = module.check_serve_schema(document)
    return found


def _files_in(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(inner for inner in path.rglob("*") if inner.suffix in SUFFIXES and inner.is_file())
        else:
            yield path


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise Misconfigured(f"{path} cannot be read: {reason}", "name existing files or folders") from error
