"""The console of every command: it shows stored text and never lets the terminal obey it."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from lamina.text.visible import show_controls


class SafeConsole(Console):
    """A console on which no stored text moves the cursor, changes the title or turns the direction of writing."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text to show, with its controls written out before its width is measured."""
        return super().render_str(show_controls(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render anything; the texts that others made, such as log lines and bars, are written out here."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(show_controls(segment.text), segment.style)


console = SafeConsole()
errors = SafeConsole(stderr=True)
