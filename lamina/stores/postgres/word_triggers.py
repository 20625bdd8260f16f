"""The trigger that makes the words of warm notes, in place of the application."""

from contextlib import suppress

from lamina.errors import Unavailable
from lamina.stores.postgres.connection import alter_table, connect_directly
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("word_triggers.sql")


def switch_word_trigger(url: str, *, is_on: bool) -> None:
    """Switch the trigger on or off; its table is locked for a moment, and only where that changes something.

    Words that the application made stay. Those of the trigger are made anew by the indexer once it is off: they are not
    cut where a script has no spaces.

    Raises:
        Unavailable: If the table stays locked by others for two minutes.

    Source:
        NovaMem, Warm tier.
    """
    with connect_directly(url) as connection:
        row = connection.execute(QUERIES["read_trigger"]).fetchone()
        if row is None:
            return
        is_switched = row["is_enabled"] != is_on
        if is_switched:
            switching = [QUERIES["enable_trigger"]]
            if not is_on:
                switching = [QUERIES["disable_trigger"], QUERIES["note_words_of_trigger"]]
            alter_table(connection, "note_chunks", *switching)
        if not is_on and (is_switched or row["has_unmarked_words"]):
            # After the lock of the table: of many notes this takes seconds.
            connection.execute(QUERIES["mark_words_of_trigger"])
            with suppress(Unavailable):  # Then the next start marks them once more.
                alter_table(connection, "note_chunks", QUERIES["forget_words_of_trigger"])
