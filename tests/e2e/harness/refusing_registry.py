# SPDX-License-Identifier: Apache-2.0
"""A registry that is there and says no to everything, as one does whose credentials are missing."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = ("10.100.0.1", 5002)
WORDS = "requested access to the resource is denied"


class _Refusal(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _refuse(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.dumps({"errors": [{"code": "DENIED", "message": WORDS}]}).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _refuse

    def log_message(self, *_) -> None:
        pass


@contextmanager
def refusing_registry():
    """Gives HOST:PORT while it runs."""
    server = ThreadingHTTPServer(ADDRESS, _Refusal)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{ADDRESS[0]}:{ADDRESS[1]}"
    finally:
        server.shutdown()
        server.server_close()
