import os
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.errors import Misconfigured
from lamina.local import LocalService, data_dir_lock, find_service

HOLDER = """
import sys, time
from pathlib import Path
from lamina.local import data_dir_lock
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
