"""Media types by the names of files."""

from pathlib import PurePath

TEXT, MARKDOWN, HTML, PDF = "text/plain", "text/markdown", "text/html", "application/pdf"
_BY_SUFFIX = {
    ".txt": TEXT,
    ".text": TEXT,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": HTML,
    ".pdf": PDF,
}
_UNSPECIFIED = ("", "application/octet-stream")


def media_type_of(name: str, declared: str | None = None) -> str:
    """Return a file's declared media type, or else that of its name; text if neither says one."""
    if (declared or "").split(";")[0].strip().lower() not in _UNSPECIFIED:
        return str(declared)
    return _BY_SUFFIX.get(PurePath(name).suffix.lower(), TEXT)


def is_known(name: str) -> bool:
    """Tell whether a file's name says that it can be read."""
    return PurePath(name).suffix.lower() in _BY_SUFFIX
