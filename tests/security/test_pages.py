import re
from html.parser import HTMLParser
from urllib.parse import urljoin

import pytest

from deployments.pages import POLICY
from tests.support.application import Application

BASE = "http://lamina"


class Sources(HTMLParser):
    """Collects the addresses that a page loads, and what stands in it as code."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.code: list[str] = []
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.addresses += [value for name, value in named.items() if name in {"src", "href"} and value]
        self.code += [name for name in named if name.startswith("on") or name == "style"]
        self._is_code = tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        if self._is_code and data.strip():
            self.code.append(data)


async def test_the_page_of_the_reference_loads_files_of_this_service_alone(application: Application) -> None:
    client = application.client()
    page = await client.get("/docs")
    found = Sources()
    found.feed(page.text)
    start = await client.get("/docs/start.js")
    (document,) = re.findall(r'url: "([^"]+)"', start.text)

    assert page.status_code == 200
    assert found.code == []  # The policy would refuse it.
    assert len(found.addresses) == 4
    for address in [*found.addresses, document]:
        assert urljoin(f"{BASE}/docs", address).startswith(BASE)
        answer = await client.get(urljoin("/docs", address))
        assert answer.status_code == 200, address
        assert len(answer.content) > 100
    script = (await client.get("/docs/swagger-ui-bundle.js")).text
    assert "SwaggerUIBundle" in script


@pytest.mark.parametrize("path", ["/docs", "/docs/start.js", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"])
async def test_the_page_and_its_files_carry_a_policy_of_own_sources(application: Application, path: str) -> None:
    answer = await application.client().get(path)
    rules = dict(rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";"))

    assert answer.headers["content-security-policy"] == POLICY
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"
    assert not re.search(r"https?:|\*", POLICY)
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_no_other_route_answers_a_page_without_a_policy(application: Application) -> None:
    client = application.client()
    paths = {getattr(route, "path", "") for route in application.api.routes}
    paths |= {"/", "/nothing", "/redoc", "/docs/oauth2-redirect", "/docs/../docs"}
    for path in sorted(paths):
        answer = await client.get(re.sub(r"\{[^}]*\}", "x", path) or "/")
        is_page = "html" in answer.headers.get("content-type", "")
        assert not is_page or answer.headers.get("content-security-policy") == POLICY, path


async def test_the_reference_that_everybody_may_ask_for_is_written_once(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = application.client()
    first = await client.get("/openapi.json")
    monkeypatch.setattr("deployments.api.json", None)

    again = await client.get("/openapi.json")

    assert first.json() == application.api.openapi()
    assert again.content == first.content
