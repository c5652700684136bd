# SPDX-License-Identifier: Apache-2.0
"""A real redis-server on a free port of loopback, with an empty data set."""

import os
import socket
import subprocess
import time

SECONDS_MAX = 10


class RedisServer:
    """A context. `package` is the directory of tools/setup/redis."""

    def __init__(self, package, place):
        self._program = package / "usr/bin/redis-server"
        self._libraries = package / "usr/lib/x86_64-linux-gnu"
        self._place = place
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]

    @property
    def url(self):
        return f"redis://127.0.0.1:{self._port}/0"

    def __enter__(self):
        self._process = subprocess.Popen(
            [self._program, "--port", str(self._port), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no", "--dir", self._place],
            env={**os.environ, "LD_LIBRARY_PATH": str(self._libraries)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        limit = time.monotonic() + SECONDS_MAX
        while time.monotonic() < limit:
            try:
                if self._ask("PING") == [b"+PONG"]:
                    return self
            except OSError:
                time.sleep(0.05)
        self.__exit__()
        raise OSError(f"{self._program}: no answer on port {self._port} in {SECONDS_MAX} s")

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

    def value_bytes(self):
        """Bytes of all values that it stores, as it received them."""
        keys = self._ask("KEYS *")
        names = [line for line in keys[1:] if not line.startswith(b"$")]
        return sum(int(self._ask(f"STRLEN {name.decode()}")[0][1:]) for name in names)

    def _ask(self, command):
        """Returns the lines of the answer to one command, whose words have no blanks."""
        with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
            connection.sendall(f"{command}\r\nQUIT\r\n".encode())
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(1 << 16):
                answer += part
        lines = answer.split(b"\r\n")
        return lines[:lines.index(b"+OK")]
