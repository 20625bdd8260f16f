"""The trigger that makes the words of warm notes, in place of the application."""

from lamina.stores.postgres.connection import connect_directly
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("word_triggers.sql")


def switch_word_trigger(url: str, *, is_on: bool) -> None:
    """Switch the trigger on or off; its table is locked for a moment, and only where that changes something.

    What was written before keeps its words.

    Source:
        NovaMem, Warm tier.
    """
    with connect_directly(url) as connection:
        row = connection.execute(QUERIES["read_trigger"]).fetchone()
        if row is not None and row["is_enabled"] != is_on:
            connection.execute(QUERIES["enable_trigger"] if is_on else QUERIES["disable_trigger"])
