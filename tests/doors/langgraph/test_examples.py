from collections.abc import Callable


def test_an_agent_remembers_across_threads(printed: Callable[[str], str]) -> None:
    assert printed("langgraph_store.py") == "It hangs behind the barometer.\n[('users', 'ann', 'facts')]\n"


def test_the_documents_program_prints_what_they_say(pasted: Callable[[str], None]) -> None:
    pasted("langgraph")


def test_a_deep_agent_has_its_memories_in_the_store(printed: Callable[[str], str]) -> None:
    *read, keys = printed("deepagents_memory.py").splitlines()

    assert read[-1].endswith("Deploy on Tuesdays only.")
    assert keys == "['/rules.md']"
