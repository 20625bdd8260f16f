"""Which packages may be imported where a start, a command or a replica waits for it.

Each is paid by everybody who waits. One that is needed is added here, with the cost in mind that the message names.
"""

import re
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pytest

from tests.support.service import ROOT

# Prints, after each of some statements, the packages that are there.
CODE = """
import sys
for statement in sys.argv[1:]:
    exec(statement)
    loaded = {name.split(".")[0] for name, module in list(sys.modules.items()) if module is not None}
    print("loaded:", *loaded - set(sys.stdlib_module_names))
"""
OURS = {"lamina", "deployments", "actors", "jobs"}
# The interpreter's own, and those of compiled packages.
_RUNTIME = re.compile(
    r"__\w+__|_distutils_hack|_sysconfigdata_\w+|_cython_\w+|cython_runtime|_cffi_backend|.*-linux-gnu"
)

CLIENT = {"annotated_types", "click", "httpx", "idna", "pydantic", "pydantic_core", "pygments", "rich"} | {
    "typing_extensions",
    "typing_inspection",
}
SETTINGS = {"dotenv", "numpy", "pydantic_settings", "regex", "uuid_utils", "yaml"}
POSTGRES = {"pgvector", "psycopg", "psycopg_binary", "psycopg_pool", "tenacity"}
CRON = {"apscheduler", "tzlocal"}
COMMANDS = CLIENT | SETTINGS | POSTGRES | CRON | {"annotated_doc", "cachetools", "shellingham", "typer"}
RAY = {"attr", "attrs", "certifi", "charset_normalizer", "colorama", "filelock", "google", "jsonschema"} | {
    "jsonschema_specifications",
    "msgpack",
    "packaging",
    "psutil",
    "ray",
    "referencing",
    "requests",
    "rpds",
    "tqdm",
    "urllib3",
    "uvloop",
}
SERVE = {"annotated_doc", "anyio", "fastapi", "grpc", "grpc_reflection", "opentelemetry", "python_multipart"} | {
    "sniffio",
    "starlette",
    "uvicorn",
    "watchfiles",
}
BASE = (CLIENT - {"httpx", "pygments", "rich"}) | SETTINGS | POSTGRES | RAY
REPLICA = BASE | SERVE
SEARCH = {"cachetools", "qdrant_edge"}
WRITE = CRON | {"_openssl", "cryptography", "fastapi_offline", "httptools", "prometheus_client", "rfc8785"}
HELP = (
    "# lamina --help\nsys.argv = ['lamina', '--help']\ntry:\n    import lamina.cli\n    lamina.cli.main()\n"
    "except SystemExit:\n    pass"
)
COMMAND = "import lamina.cli.commands, deployments.up"
MAY_BE_IMPORTED = {
    "import lamina.client": CLIENT,
    HELP: COMMANDS | {"attr", "markdown_it", "mdurl"},
    COMMAND: COMMANDS | {"starlette"},
    f"{COMMAND}, deployments.local_ray, deployments.starter": COMMANDS | RAY | {"cachetools", "starlette"},
    "import deployments.fork_worker": set(),
    "import deployments.embedder": REPLICA | {"cachetools"},
    "import deployments.searcher": REPLICA | SEARCH,
    "import deployments.indexer": REPLICA | SEARCH,
    "import deployments.router": REPLICA | SEARCH | WRITE,
    "import deployments.app": REPLICA | SEARCH | WRITE,
    "import actors.cache": BASE,
    "import actors.scheduler": BASE | CRON | {"cachetools"},
}


# Run one after another, in one process: what may be imported by one may be imported by the next.
CHAINS = (
    ("import lamina.client", HELP),
    (COMMAND, f"{COMMAND}, deployments.local_ray, deployments.starter"),
    ("import deployments.fork_worker",),
    ("import actors.scheduler",),
    (
        "import actors.cache",
        "import deployments.embedder",
        "import deployments.searcher",
        "import deployments.indexer",
        "import deployments.router",
        "import deployments.app",
    ),
)


class Imports(NamedTuple):
    """What a chain of statements imported.

    Args:
        loaded: The packages that were there after each of them.
        cost_ms: What each package took.
    """

    loaded: dict[str, set[str]]
    cost_ms: Counter[str]


@cache
def imports_of(chain: tuple[str, ...]) -> Imports:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", CODE, *chain], cwd=ROOT, capture_output=True, text=True, check=True
    )
    said = [line.removeprefix("loaded:").split() for line in done.stdout.splitlines() if line.startswith("loaded:")]
    return Imports(dict(zip(chain, map(set, said), strict=True)), milliseconds(done.stderr))


@pytest.mark.parametrize("statement", MAY_BE_IMPORTED, ids=lambda statement: statement.splitlines()[0])
def test_nothing_is_imported_at_a_start_that_is_not_needed_there(statement: str) -> None:
    (chain,) = (chain for chain in CHAINS if statement in chain)

    found = imports_of(chain)

    packages = {name for name in found.loaded[statement] if not _RUNTIME.fullmatch(name)} - OURS
    surplus = packages - MAY_BE_IMPORTED[statement]
    assert {name: f"{found.cost_ms[name]} ms" for name in surplus} == {}


@pytest.mark.parametrize("chain", CHAINS)
def test_what_one_statement_imports_first_does_not_stand_against_the_next(chain: tuple[str, ...]) -> None:
    for first, then in pairwise(chain):
        assert MAY_BE_IMPORTED[first] <= MAY_BE_IMPORTED[then]


def test_the_client_and_the_models_of_its_answers_need_httpx_and_pydantic_alone() -> None:
    others = (COMMANDS | REPLICA | SEARCH | WRITE | {"click", "pygments", "rich", "snowballstemmer"}) - {
        *({"annotated_types", "anyio", "certifi", "httpx", "idna", "pydantic", "pydantic_core", "sniffio"}),
        *({"typing_extensions", "typing_inspection"}),
    }
    code = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(others)}))
from lamina.client import AsyncClient, Lamina, models
Lamina("http://127.0.0.1:9", "k", scope={{"user": "ann"}}).close()
print(models.PutResult.model_validate({{"id": "00000000-0000-0000-0000-000000000007", "existed": False}}).id.int)
print(models.SearchOut.model_json_schema()["title"])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("7\nSearchOut\n", "")


def milliseconds(importtime: str) -> Counter[str]:
    """Return the time that each top-level package took to import."""
    spent_us: Counter[str] = Counter()
    for own, name in re.findall(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$", importtime, re.MULTILINE):
        spent_us[name.partition(".")[0]] += int(own)
    return Counter({name: us // 1000 for name, us in spent_us.items()})


def test_the_cost_of_an_import_is_told_by_package() -> None:
    told = "import time: self [us] | cumulative | imported package\nimport time:      1500 |       9000 |   a.b\n"

    assert milliseconds(told + "import time:      2600 |       2600 | a\n") == {"a": 4}
