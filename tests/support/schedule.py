"""Which worker has which tests."""

from xdist.scheduler import LoadFileScheduling

_RAY = ("tests/serve/", "tests/cluster/")
_NO_RAY = "tests/serve/test_composition.py"


def needs_ray(test: str) -> bool:
    """Tell whether a test starts a dozen processes: two cores are not quick enough for two such at the same time."""
    return test.startswith(_RAY) and not test.startswith(_NO_RAY)


def needs_neo4j(test: str) -> bool:
    """Tell whether a test asks a real Neo4j, by its name or that of its file: one worker has them all."""
    return "on_neo4j" in test or "/test_neo4j" in test


class FilesAndRay(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Give each worker whole files, one of them all tests that need Ray, and one all those that need a Neo4j.

    The marker for groups of `--dist loadgroup` does nothing in xdist 3.8 under pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        if needs_ray(nodeid):
            return "ray"
        return "neo4j" if needs_neo4j(nodeid) else str(super()._split_scope(nodeid))
