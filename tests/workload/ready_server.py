# SPDX-License-Identifier: Apache-2.0
"""The frame of a small model server: answers GET /readyz on PORT (default 8080) while an engine
compiles, with 503 until it is ready, and prints one line "READY name=value ..." then."""

import http.server
import os
import threading
import time
from collections.abc import Callable


def serve(compile_model: Callable[[], dict[str, object]]) -> None:
    """Runs `compile_model` and serves until the process is killed. The line has what it returns and
    compile_s, the seconds that it took."""
    ready = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if ready.is_set() and self.path == "/readyz" else 503)
            self.end_headers()

        def log_message(self, *_) -> None:
            pass

    address = ("0.0.0.0", int(os.environ.get("PORT", "8080")))
    server = http.server.ThreadingHTTPServer(address, Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    began = time.monotonic()
    found = compile_model()
    words = {"compile_s": round(time.monotonic() - began, 2), **found}
    print("READY " + " ".join(f"{name}={value}" for name, value in words.items()), flush=True)
    ready.set()
    threading.Event().wait()
