"""A stand-in for an endpoint that serves models."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Mapping[str, str], Any]


@dataclass
class ModelEndpoint:
    """A server on this machine: ``answer`` makes the reply of each request; failing replies may come before.

    Args:
        answer: Of the path and the body.
        failing: Replies of the first requests, before any answer.
        delay_s: Waits this long before each reply.
    """

    answer: Callable[[str, Any], Any]
    failing: list[Reply] = field(default_factory=list)
    delay_s: float = 0.0
    asked: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    url: str = ""

    def reply(self, path: str, key: str | None, body: Any) -> Reply:
        """Record a request and return its reply."""
        self.paths.append(path)
        self.keys.append(key)
        self.asked.append(body)
        return self.failing.pop(0) if self.failing else (200, {}, self.answer(path, body))


@contextmanager
def serving(endpoint: ModelEndpoint) -> Iterator[ModelEndpoint]:
    """Run the server."""
    lock = threading.Lock()

    def answer(path: str, headers: Mapping[str, str], body: Any) -> Reply:
        with lock:
            reply = endpoint.reply(path, headers.get("authorization"), body)
        time.sleep(endpoint.delay_s)
        return reply

    with http_server(answer) as url:
        endpoint.url = f"{url}/v1"
        yield endpoint


@contextmanager
def http_server(answer: Callable[[str, Mapping[str, str], Any], Reply]) -> Iterator[str]:
    """Serve POST on this machine, a thread for each request; gives the URL.

    Args:
        answer: Makes the reply of a path, of headers with lower names, and of the JSON that was sent.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = {name.lower(): value for name, value in self.headers.items()}
            status, headers, reply = answer(self.path, sent, json.loads(self.rfile.read(int(sent["content-length"]))))
            data = reply if isinstance(reply, bytes | Iterator) else json.dumps(reply).encode()
            # What comes in parts ends with the connection.
            length = {"Content-Length": str(len(data))} if isinstance(data, bytes) else {}
            self.send_response(status)
            for name, value in {**headers, **length}.items():
                self.send_header(name, value)
            self.end_headers()
            for part in [data] if isinstance(data, bytes) else data:
                self.wfile.write(part)
                self.wfile.flush()

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *args: object) -> None:
            pass  # A client that stopped waiting.

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
