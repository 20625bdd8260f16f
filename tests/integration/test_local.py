import os
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.cli.common import address_of
from lamina.cli.local import LocalService, data_dir_lock, find_service
from lamina.errors import Misconfigured

HOLDER = """
import sys, time
from pathlib import Path
from lamina.cli.local import data_dir_lock
with data_dir_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def announce(data_dir: Path) -> None:
    (data_dir / "local.key").write_text("lamina_k")
    (data_dir / "service.json").write_text(f'{{"url": "http://127.0.0.1:1", "pid": {os.getpid()}}}')


def test_what_a_dead_instance_left_is_no_service_even_if_its_process_id_lives_again(tmp_path: Path) -> None:
    with data_dir_lock(tmp_path):
        announce(tmp_path)

    assert find_service(tmp_path) is None


def test_an_instance_that_holds_its_directory_is_found_and_keeps_others_out(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    holder.stdout.readline()
    announce(tmp_path)

    found = find_service(tmp_path)
    with pytest.raises(Misconfigured, match="another Lamina runs"), data_dir_lock(tmp_path):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()

    assert found == LocalService("http://127.0.0.1:1", "lamina_k", os.getpid())
    assert find_service(tmp_path) is None


def test_the_address_that_a_killed_instance_left_is_not_that_of_the_next_one(tmp_path: Path) -> None:
    announce(tmp_path)

    with data_dir_lock(tmp_path):
        assert find_service(tmp_path) is None


def test_a_data_directory_that_is_named_goes_before_the_service_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("LAMINA_API_KEY", "lamina_elsewhere")
    key_file = tmp_path / "key"
    key_file.write_text("lamina_f\n")
    with data_dir_lock(tmp_path):
        announce(tmp_path)
        found = [
            address_of(None, tmp_path, None, None),
            address_of(None, tmp_path, None, "lamina_mine"),
            address_of(None, tmp_path, None, None, key_file),
            address_of(None, tmp_path, "http://127.0.0.1:2", None),
            address_of(None, None, None, None),
        ]
        monkeypatch.delenv("LAMINA_URL")
        with_key_alone = address_of(None, tmp_path, None, None)

    here = "http://127.0.0.1:1"
    assert found == [
        (here, "lamina_k"),
        (here, "lamina_mine"),
        (here, "lamina_f"),
        ("http://127.0.0.1:2", "lamina_elsewhere"),
        ("http://127.0.0.1:9", "lamina_elsewhere"),
    ]
    assert with_key_alone == (here, "lamina_elsewhere")
    with pytest.raises(Misconfigured, match="no Lamina runs"):
        address_of(None, tmp_path, None, None)


def test_a_command_away_from_its_data_directory_says_so_and_no_word_of_a_wrong_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LAMINA_URL", "LAMINA_API_KEY", "LAMINA_API_KEY_FILE", "LAMINA_DATA_DIR", "LAMINA_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(Misconfigured) as refused:
        address_of(None, None, None, None)
    beside = [
        address_of(None, None, None, None, needs_key=False),
        address_of(None, None, None, "lamina_k"),
        address_of(None, None, "http://127.0.0.1:2", None),
    ]

    told = str(refused.value)
    assert f"no Lamina runs on {tmp_path / '.lamina'}" in told
    assert all(word in told for word in ("--data-dir", "LAMINA_URL", "LAMINA_API_KEY", "lamina up"))
    assert beside == [(None, None), (None, "lamina_k"), ("http://127.0.0.1:2", None)]
