"""A real file server on this machine, for the tests of downloads."""

import hashlib
import http.server
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest


class Server(http.server.ThreadingHTTPServer):
    """A real server; the tests set its answers and count its requests."""

    content = bytes(range(256)) * 12_000  # 3 MB: more than one chunk
    stops_after: int | None = None  # bytes, then the connection is closed
    status: int | None = None
    sends_length = True
    slow = 0.0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests = 0

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file.bin"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.server.requests += 1
        if self.server.status is not None:
            return self.send_error(self.server.status)
        self.send_response(200)
        if self.server.sends_length:
            self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        time.sleep(self.server.slow)
        self.wfile.write(self.server.content[: self.server.stops_after])
        return None


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as it:
        thread = threading.Thread(target=it.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield it
        it.shutdown()
        thread.join()
