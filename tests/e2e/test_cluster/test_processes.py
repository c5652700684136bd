# SPDX-License-Identifier: Apache-2.0
"""How the launcher knows whether a process of its own lives. No cluster."""

import signal
import socket
import sys
from pathlib import Path

import pytest
from harness.cluster import REPOSITORY
from harness.waiting import wait_for

sys.path.insert(0, str(REPOSITORY / "tests" / "cluster"))
from launcher.process import Daemon  # noqa: E402

# The first thread ends at once and leaves a zombie in /proc; the second one still listens. A
# killed server with many threads looks like this for some milliseconds.
HEADLESS = """
import ctypes, socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", 0))
open(sys.argv[1], "w").write(str(listener.getsockname()[1]))
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall(60, 0)
"""


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_process_lives_until_its_last_thread_ends(tmp_path: Path):
    daemon = Daemon(tmp_path, "headless")
    port_file = tmp_path / "port"
    daemon.start(sys.executable, "-c", HEADLESS, port_file)
    pid = daemon.pid()
    wait_for("its first thread has ended", lambda: state(pid) == "Z", 30)
    assert daemon.pid() == pid
    daemon.kill(signal.SIGKILL)
    assert daemon.pid() is None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port_file.read_text())), timeout=10)


def test_reused_pid_is_not_mistaken_for_the_process(tmp_path: Path):
    daemon = Daemon(tmp_path, "sleeper")
    daemon.start("/usr/bin/sleep", "600")
    pid_file = tmp_path / "sleeper.pid"
    content = pid_file.read_text()
    pid, started = content.split()
    try:
        pid_file.write_text(f"{pid} {int(started) + 1}\n")
        assert daemon.pid() is None
    finally:
        pid_file.write_text(content)
        daemon.kill()
