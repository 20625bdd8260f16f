"""Options, console, client and error lines that all commands share."""

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Concatenate, NoReturn, ParamSpec

import typer
from rich.markup import escape

import lamina
from lamina.cli.console import console, errors
from lamina.cli.local import find_service
from lamina.client import Client
from lamina.client.client import DEFAULT_TIMEOUT_S
from lamina.embedded import running_url
from lamina.errors import LaminaError, Misconfigured
from lamina.host.private_files import deny_others
from lamina.host.secret_files import read_secret, variable_or_file
from lamina.settings.loading import Settings, load_settings
from lamina.settings.stores import EmbeddedPostgresSettings, PostgresServerSettings

_PACKAGE = Path(lamina.__file__).parent
# One retry of a refused connection, without a pause: at a terminal, a quick error is better than seven seconds.
AT_ONCE = 1
# For an answer that may take as long as the embedding model works on documents (`documents.embed_budget_s` and
# `write.embed_deadline_s`, 1 260 s together), or a comparison of all that is stored.
LONG_TIMEOUT_S = 1300.0

ConfigOption = Annotated[Path | None, typer.Option("--config", help="YAML file of settings.", envvar="LAMINA_CONFIG")]
DataDirOption = Annotated[Path | None, typer.Option("--data-dir", help="Directory of the embedded stores.")]
# `address_of` reads the environment: what it names gives way to a data directory that is named here.
UrlOption = Annotated[str | None, typer.Option("--url", help="Where Lamina listens; else LAMINA_URL.")]
KeyOption = Annotated[str | None, typer.Option("--key", help="API key; else LAMINA_API_KEY.")]
KeyFileOption = Annotated[Path | None, typer.Option("--key-file", help="File with the API key.")]
WorkspaceOption = Annotated[str, typer.Option("--workspace", "-w", help="Project.")]
UserOption = Annotated[str | None, typer.Option("--user", "-u", help="Person.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", help="Most results.")]

Given = ParamSpec("Given")
_SERVICE = {"config": ConfigOption, "data_dir": DataDirOption, "url": UrlOption, "key": KeyOption}


def application_folder() -> Path:
    """Return the folder of deployments, actors, jobs and configs: within an installed package, or of the checkout."""
    installed = _PACKAGE / "application"
    return installed if installed.is_dir() else _PACKAGE.parent


def guarded(app: typer.Typer) -> None:
    """Run a command line; an error of ours is one line, never a traceback, and files are their owner's alone."""
    deny_others()
    try:
        app()
    except LaminaError as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("interrupted", code=130)
    except Exception as error:  # noqa: BLE001 - it is reported, and the process ends
        if os.environ.get("LAMINA_DEBUG"):
            fail(traceback.format_exc())
        first = next(iter(str(error).strip().splitlines()), "")
        fail(f"unexpected {type(error).__name__}: {first}; LAMINA_DEBUG=1 shows where")


def fail(reason: str, code: int = 1) -> NoReturn:
    """Print an error in one line and end the process."""
    errors.print(f"[bold red]error[/] {escape(reason)}", highlight=False, soft_wrap=True)
    sys.exit(code)


def settings_of(config: Path | None, data_dir: Path | None, **overrides: Any) -> Settings:
    """Return the settings that the options choose."""
    chosen = {"data_dir": data_dir} if data_dir is not None else {}
    return load_settings(config, **chosen, **overrides)


def client_of(
    config: Path | None,
    data_dir: Path | None,
    url: str | None,
    key: str | None,
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    needs_key: bool = True,
    **scope: str | None,
) -> Client:
    """Return a client of the service that the options name, or of the one that runs on the data directory.

    Raises:
        Misconfigured: As :func:`address_of`.
    """
    ids = {name: id_ for name, id_ in scope.items() if id_ is not None}
    address = address_of(config, data_dir, url, key, needs_key=needs_key)
    return Client(*address, scope=ids, timeout_s=timeout_s, connect_retries=AT_ONCE)


def with_client(
    *, is_scoped: bool = False, timeout_s: float = DEFAULT_TIMEOUT_S
) -> Callable[[Callable[Concatenate[Client, Given], None]], Callable[..., None]]:
    """Return a decorator that gives a command a client, and the options that name its service.

    Args:
        is_scoped: Whether the client is of the workspace and the user of two more options.
        timeout_s: Longest time for an answer.
    """
    scope = [_option("workspace", WorkspaceOption, "default"), _option("user", UserOption)] if is_scoped else []
    options = [*scope, *(_option(name, annotation) for name, annotation in _SERVICE.items())]

    def decorate(command: Callable[Concatenate[Client, Given], None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            chosen = {option.name: given.pop(option.name) for option in options}
            with client_of(**chosen, timeout_s=timeout_s) as client:
                command(client, **given)  # type: ignore[call-arg]  # Typer gives what the signature names

        _, *own = signature(command).parameters.values()
        own = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in own]
        run.__signature__ = Signature([*own, *options])  # type: ignore[attr-defined]
        return run

    return decorate


def _option(name: str, annotation: Any, default: str | None = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def address_of(
    config: Path | None,
    data_dir: Path | None,
    url: str | None,
    key: str | None,
    key_file: Path | None = None,
    *,
    needs_key: bool = True,
) -> tuple[str | None, str | None]:
    """Return the URL and the key of the service that the options name, or of the one that runs on the data directory.

    A data directory among the options goes before LAMINA_URL, whose key is then not sent to it.

    Raises:
        Misconfigured: If none runs on the data directory that was named, or on that of this folder while no key is
            named that another service would take; or if the file with the key cannot be read.
    """
    url, elsewhere = url or url_of_environment(data_dir), os.environ.get("LAMINA_URL")
    if key_file is not None:
        key = read_secret("--key-file", str(key_file))
    elif key is None and not (url is None and elsewhere):
        key = variable_or_file("LAMINA_API_KEY")
    if url is None:
        chosen = settings_of(config, data_dir).data_dir
        service = find_service(chosen)
        if service is not None:
            return service.url, key or service.key
        if data_dir is not None:
            raise Misconfigured(
                f"no Lamina runs on {data_dir}", "start it with `lamina up --data-dir`, or name its --url"
            )
        if needs_key and not key:
            # The default address may be that of a service; without a key it would only say that one is missing.
            where = f"no Lamina runs on {chosen.absolute()}, where its key would be, and no other key is named"
            remedy = "name the data directory of yours with --data-dir, or its LAMINA_URL and LAMINA_API_KEY"
            raise Misconfigured(where, f"{remedy}; `lamina up` starts one here")
    return url, key


def url_of_environment(data_dir: Path | None) -> str | None:
    """Return the URL that the environment names for commands without a data directory of their own."""
    return os.environ.get("LAMINA_URL") or None if data_dir is None else None


def server_of(config: Path | None, data_dir: Path | None) -> PostgresServerSettings:
    """Return the settings of the database's server; of the embedded one, while it runs."""
    settings = settings_of(config, data_dir)
    match settings.postgres:
        case PostgresServerSettings() as chosen:
            return chosen
        case EmbeddedPostgresSettings():
            return PostgresServerSettings(url=running_url(settings.data_dir / "postgres"))


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar in a terminal, nothing elsewhere; the function it yields moves the bar on."""
    from rich.progress import Progress  # noqa: PLC0415 - only long work needs it

    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
