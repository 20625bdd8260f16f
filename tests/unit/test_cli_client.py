"""Tests of the options that commands over a client share."""

import pytest
import typer
from typer.testing import CliRunner

from lamina.cli.common import LimitOption, with_client
from lamina.client import Client
from lamina.client.client import DEFAULT_TIMEOUT_S

SERVICE = ["--url", "http://127.0.0.1:1", "--key", "k"]


@pytest.mark.parametrize(
    ("is_scoped", "options", "scope"),
    [
        (False, [], {}),
        (True, [], {"workspace": "default"}),
        (True, ["-w", "atlas", "--user", "ann"], {"workspace": "atlas", "user": "ann"}),
    ],
)
def test_a_command_gets_a_client_of_the_service_and_scope_that_its_options_name(
    is_scoped: bool, options: list[str], scope: dict[str, str]
) -> None:
    app, seen = typer.Typer(), []

    @app.command()
    @with_client(is_scoped=is_scoped, timeout_s=DEFAULT_TIMEOUT_S)
    def ask(client: Client, question: str, limit: LimitOption = 10) -> None:
        """Ask."""
        seen.append((client._scope, str(client._http.base_url), question, limit))

    done = CliRunner().invoke(app, ["why", *SERVICE, *options, "-n", "3"])

    assert (done.exit_code, done.output) == (0, "")
    assert seen == [(scope, "http://127.0.0.1:1", "why", 3)]


def test_a_command_without_a_scope_refuses_a_workspace() -> None:
    app = typer.Typer()

    @app.command()
    @with_client()
    def ask(client: Client) -> None:
        """Ask."""

    assert CliRunner().invoke(app, [*SERVICE, "--workspace", "atlas"]).exit_code == 2
