"""`lamina config`: what is wrong with a configuration, and what is in effect."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from lamina.cli.common import ConfigOption, DataDirOption, console, settings_of
from lamina.config_check import Finding, Source, check, lines_of
from lamina.errors import Misconfigured

SUFFIXES = (".yaml", ".yml", ".json")
app = typer.Typer(help="The configuration: check, show.", no_args_is_help=True)


@app.command("check")
def check_files(
    files: Annotated[
        list[Path], typer.Argument(help="Settings, Serve, KubeRay, Prometheus, Grafana or compose files; or folders.")
    ],
) -> None:
    """Say what is wrong with files of any kind, without a server; exit 1 on errors, 0 with warnings alone."""
    chosen = list(_files_in(files))
    found = check([Source(str(path), _text_of(path)) for path in chosen])
    for name, finding in found:
        _print(name, finding)
    wrong = sum(finding.is_error for _, finding in found)
    console.print(_summary(chosen, wrong, len(found) - wrong), style="dim", highlight=False)
    raise typer.Exit(1 if wrong else 0)


@app.command("show")
def show(config: ConfigOption = None, data_dir: DataDirOption = None) -> None:
    """Print the settings in effect as YAML, with a line on each; secrets are left out."""
    for line in lines_of(settings_of(config, data_dir)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _files_in(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(inner for inner in path.rglob("*") if inner.suffix in SUFFIXES and inner.is_file())
        else:
            yield path


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise Misconfigured(f"{path} cannot be read: {reason}", "name existing files or folders") from error


def _print(name: str, finding: Finding) -> None:
    console.print(f"{escape(name)}: {escape(str(finding))}", highlight=False, soft_wrap=True)


def _summary(files: Sequence[Path], errors: int, warnings: int) -> str:
    return f"{len(files)} files, {errors} errors, {warnings} warnings"
