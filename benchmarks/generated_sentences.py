"""Generated sentences: always the same for a seed, hardly ever the same twice in a row."""

import numpy as np

_PEOPLE = ["Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kenji"]
_VERBS = ["repaired", "ordered", "tested", "painted", "measured", "inspected", "replaced", "cleaned"]
_KINDS = ["red", "heavy", "broken", "spare", "wooden", "quiet", "narrow", "electric", "leaking", "borrowed"]
_THINGS = ["pump", "ladder", "engine", "window", "carpet", "sensor", "bicycle", "oven", "boiler", "desk", "printer"]
_PLACES = ["harbour", "workshop", "library", "greenhouse", "station", "attic", "kitchen", "museum"]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_MAX_NUMBER = 10_000


class Wording:
    """Sentences about people and things.

    Args:
        generator: Where chance comes from.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def statement(self) -> str:
        """Return something to remember."""
        return (
            f"{self._one(_PEOPLE)} {self._one(_VERBS)} the {self._one(_KINDS)} {self._one(_THINGS)} in the "
            f"{self._one(_PLACES)} on {self._one(_DAYS)}, order {self._generator.integers(_MAX_NUMBER)}."
        )

    def question(self) -> str:
        """Return something to ask."""
        return (
            f"When was it that {self._one(_PEOPLE)} {self._one(_VERBS)} the {self._one(_KINDS)} "
            f"{self._one(_THINGS)} in the {self._one(_PLACES)}?"
        )

    def _one(self, words: list[str]) -> str:
        return words[self._generator.integers(len(words))]
