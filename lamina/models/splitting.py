"""Cut long texts into chunks that a model sees whole, by its own word pieces."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from lamina.text.parts import parts

PART_CHARS = 20_000
"""The splitter's time grows with the square of a text's length, and no other thread runs meanwhile."""
ADDED = 2
"""Word pieces that a BERT-family model adds to each text: [CLS] and [SEP]."""
_FILL = 0.6  # Chunks close at this share of the model's length, so that sentences can end.


class Splitter:
    """Cuts texts at their sentences and paragraphs.

    Args:
        tokenizer: The model's tokenizer, as JSON.
        capacity: Word pieces that the model sees, without those that it adds.
        prefix: Stands before each chunk.
    """

    def __init__(self, tokenizer: str, capacity: int, prefix: str = "") -> None:
        from tokenizers import Tokenizer  # noqa: PLC0415 - comes with the models

        self._tokenizer = Tokenizer.from_str(tokenizer)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._capacity = max(1, capacity - len(self._tokenizer.encode(prefix, add_special_tokens=False)))

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the (start, end) of a text's chunks, in order, at least one."""
        if self._is_short(text):
            return [(0, len(text))]
        return [
            (begin + start, begin + start + len(chunk))
            for begin, end in parts(text, 0, len(text), PART_CHARS)
            for start, chunk in self._splitter.chunk_indices(text[begin:end])
        ]

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        """Return the word pieces of each text that the model sees, with those that it adds."""
        found = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [min(len(pieces), self._capacity) + ADDED for pieces in found]

    def _is_short(self, text: str) -> bool:
        # A word piece is at least one character: such a text cannot be too long.
        if len(text) <= self._capacity:
            return True
        return len(self._tokenizer.encode(text, add_special_tokens=False)) <= self._capacity

    @cached_property
    def _splitter(self) -> Any:
        from semantic_text_splitter import TextSplitter  # noqa: PLC0415 - only long texts need it

        capacity = (int(self._capacity * _FILL), self._capacity)
        return TextSplitter.from_huggingface_tokenizer(self._tokenizer, capacity)
