"""A memory of CrewAI that is kept in Lamina: `pip install lamina-memory[crewai]`.

It takes LAMINA_URL and LAMINA_API_KEY. The vectors are counts of letters, so that nothing but Lamina is called; leave
`embedder` out for CrewAI's own model.
"""

import os

from crewai.memory.types import MemoryRecord

from lamina.integrations.crewai import LaminaStorage

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def embed(text: str) -> list[float]:
    """Return the counts of the letters of a text, in place of a model."""
    return [float(text.lower().count(letter)) for letter in LETTERS]


storage = LaminaStorage({"workspace": os.environ.get("LAMINA_WORKSPACE", "default")})
for text in ("The spare key hangs behind the barometer", "Ann drinks tea"):
    storage.save([MemoryRecord(content=text, scope="/house/keys", embedding=embed(text))])
(record, score), *_ = storage.search(embed("behind the barometer hangs the spare key"), scope_prefix="/house")
print(record.content, storage.list_scopes("/"))
storage.close()
