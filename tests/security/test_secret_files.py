from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, SecretStr

from lamina.cli.common import client_of
from lamina.client import Client
from lamina.config_check.fields import models_in
from lamina.config_check.settings_file import read_settings
from lamina.errors import Misconfigured
from lamina.settings.loading import Settings, load_settings

SECRET_NAMES = ("password", "api_key", "url", "token", "secret")
SCHEMES = {"neo4j": "bolt://", "falkordb": "redis://", "server": "postgresql://"}

# What a kind has no default for.
REQUIRED = {"endpoint": {"MODEL": "small", "DIMENSIONS": "8"}}


def secrets_in(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every field that may hold a secret, with the kind that has it."""
    for name, field in model.model_fields.items():
        is_secret = SecretStr in (field.annotation, *get_args(field.annotation))
        if is_secret or (name.endswith(SECRET_NAMES) and field.annotation is not bool):
            kind = model.model_fields.get("kind")
            yield (kind.default if kind else ""), (*path, name)
        for inner in models_in(field.annotation):
            yield from secrets_in(inner, (*path, name))


SECRETS = list(secrets_in(Settings))


def test_every_known_secret_is_walked() -> None:
    paths = {".".join(path) for _, path in SECRETS}

    assert paths >= {"postgres.url", "postgres.direct_url", "hybrid.api_key", "vectors.api_key", "graph.password"}
    assert paths >= {"graph.url", "language_model.api_key", "jobs.archival.url"}


@pytest.mark.parametrize(("kind", "path"), SECRETS, ids=lambda part: part if isinstance(part, str) else ".".join(part))
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_every_secret_comes_from_a_file(
    kind: str, path: tuple[str, ...], end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = f"{SCHEMES.get(kind, 'http://')}ann:päss wörd@host/with=#signs"
    (tmp_path / "secret").write_bytes((value + end).encode())
    section = "LAMINA_" + "__".join(path[:-1]).upper()
    of_kind = {f"{section}__KIND": kind, f"{section}__URL": SCHEMES.get(kind, "http://") + "host"} if kind else {}
    of_kind |= {f"{section}__{name}": given for name, given in REQUIRED.get(kind, {}).items() if path[0] == "embedding"}
    variable = f"{section}__{path[-1].upper()}"
    variables = {name: given for name, given in of_kind.items() if name != variable}
    variables[f"{variable}_FILE"] = str(tmp_path / "secret")
    for name, given in variables.items():
        monkeypatch.setenv(name, given)

    found: Any = load_settings()
    _, findings = read_settings(None, variables)

    for name in path:
        found = getattr(found, name)
    assert (found.get_secret_value() if isinstance(found, SecretStr) else found) == value
    assert [item for item in findings if "sets nothing" in item.fault] == []


def test_any_other_setting_comes_from_a_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "limit").write_text("7\n")
    (tmp_path / "options").write_text('{"token": "s3cret"}')
    monkeypatch.setenv("LAMINA_SEARCH__LIMIT_FILE", str(tmp_path / "limit"))
    monkeypatch.setenv("LAMINA_JOBS__ARCHIVAL__OPTIONS_FILE", str(tmp_path / "options"))

    settings = load_settings()

    assert settings.search.limit == 7
    assert settings.jobs.archival.options == {"token": "s3cret"}


def test_no_setting_has_a_name_that_would_be_read_as_a_file() -> None:
    def names(model: type[BaseModel]) -> Iterator[str]:
        for name, field in model.model_fields.items():
            yield name
            for inner in models_in(field.annotation):
                yield from names(inner)

    assert [name for name in names(Settings) if name.endswith("_file")] == []


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "No such file"), ("", "is empty"), ("\n", "is empty"), (b"\xff\xfe", "no UTF-8")],
)
def test_a_secret_that_cannot_be_read_is_refused_without_telling_it(
    content: str | bytes | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.setenv("LAMINA_LANGUAGE_MODEL__API_KEY_FILE", str(file))

    with pytest.raises(Misconfigured, match=told) as refused:
        load_settings()

    assert "LAMINA_LANGUAGE_MODEL__API_KEY_FILE" in str(refused.value)


def test_a_secret_from_two_places_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("one")
    monkeypatch.setenv("LAMINA_LANGUAGE_MODEL__API_KEY", "two")
    monkeypatch.setenv("LAMINA_LANGUAGE_MODEL__API_KEY_FILE", str(tmp_path / "secret"))

    with pytest.raises(Misconfigured, match="both set"):
        load_settings()


def test_a_file_of_no_setting_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("one")
    monkeypatch.setenv("LAMINA_LANGUAGE_MODEL__API_KYE_FILE", str(tmp_path / "secret"))

    with pytest.raises(Misconfigured, match="api_kye"):
        load_settings()


def test_the_key_of_a_client_comes_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMINA_API_KEY", raising=False)
    (tmp_path / "key").write_text("s3cret\n")
    monkeypatch.setenv("LAMINA_API_KEY_FILE", str(tmp_path / "key"))

    with Client("http://127.0.0.1:1") as client, client_of(None, None, "http://127.0.0.1:1", None) as of_command:
        for made in (client, of_command):
            assert made._http.headers["Authorization"] == "Bearer s3cret"
