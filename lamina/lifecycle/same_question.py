"""When two questions that are near by meaning are the same one."""


def is_same_question(first: str, second: str) -> bool:
    """Tell whether two near questions want the same response."""
    return first == second
