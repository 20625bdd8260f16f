"""The tasks that a test may have left running, apart from those of the applications that all tests share."""

import asyncio
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import ModuleType
from typing import Any


def tasks_of(*modules: ModuleType) -> AbstractSet["asyncio.Task[Any]"]:
    """Return the running tasks whose code stands in one of these modules.

    Connection pools and Ray's own threads of work come and go beside a test, whatever it does.
    """
    files = {str(Path(module.__file__ or "")) for module in modules}
    return {task for task in asyncio.all_tasks() if _file_of(task) in files}


def _file_of(task: "asyncio.Task[Any]") -> str:
    code = getattr(task.get_coro(), "cr_code", None)
    return "" if code is None else str(code.co_filename)
