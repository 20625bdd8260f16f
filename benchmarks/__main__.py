"""`python -m benchmarks NAME`: measure a running Lamina, or one that is started for the purpose."""

import signal
import sys

import typer
from rich.markup import escape

from benchmarks import (
    abuse,
    agent_runs,
    answers,
    cache,
    changes,
    chats,
    dedup,
    embedding,
    extraction,
    fit,
    fit_present,
    fit_time,
    freshness,
    gateway,
    hostile,
    jobs,
    latency,
    learning,
    overload,
    peers,
    retrieval,
    rollout,
    scaling,
    start,
    swarm,
)
from benchmarks.report import errors
from lamina.errors import LaminaError

app = typer.Typer(
    name="benchmarks",
    help="Each prints a table and, as the last line, its figures as one JSON object.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("retrieval")(retrieval.measure)
app.command("freshness")(freshness.measure)
app.command("gateway")(gateway.measure)
app.command("latency")(latency.measure)
app.command("peers")(peers.measure)
app.command("overload")(overload.measure)
app.command("cache")(cache.measure)
app.command("procedures")(agent_runs.measure)
app.command("learning")(learning.measure)
app.command("dedup")(dedup.measure)
app.command("changes")(changes.measure)
app.command("chats")(chats.measure)
app.command("fit-present")(fit_present.fit)
app.command("answers")(answers.measure)
app.command("fit-time")(fit_time.fit)
app.command("extraction")(extraction.measure)
app.command("fit")(fit.measure)
app.command("jobs")(jobs.measure)
app.command("scaling")(scaling.measure)
app.command("rollout")(rollout.measure)
app.command("hostile")(hostile.measure)
app.command("abuse")(abuse.measure)
app.command("embedding")(embedding.measure)
app.command("start")(start.measure)
app.command("swarm")(swarm.measure)


def main() -> None:
    """Run a benchmark; an error of the library is one line, never a traceback."""
    # `timeout` and supervisors end it so; what it has started ends with it, as by Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except LaminaError as error:
        errors.print(f"[bold red]error[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
