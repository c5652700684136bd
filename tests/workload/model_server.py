#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model server that compiles at start (torch.compile on CPU), then serves GET /readyz and /run.

It knows nothing of cachewarm: TORCHINDUCTOR_CACHE_DIR decides where its compile cache is, and
without it every start has a private, empty one. When ready it prints one line:

  READY total_s= import_s= compile_s= fx_hit= fx_miss= aot_hit= aot_miss= max_diff= isa=
        new_so= dir=

total_s counts from the start of the process; new_so is the number of *.main.so files that this
start built; max_diff is the largest absolute difference to the same model in eager mode.

Environment: MODEL_SIZE small | large, MODEL_THREADS, MODEL_EXIT=1 (end after the line, for Jobs),
PORT, MODEL_ISA_FILE (a node-local file, may be absent, whose content becomes ATEN_CPU_CAPABILITY).
"""

import http.server
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

ISA_FILE = Path(os.environ.get("MODEL_ISA_FILE", "/etc/cachewarm-test/isa"))
STATE: dict[str, object] = {"ready": False}


def process_age() -> float:
    """Seconds since the kernel started this process: interpreter start and imports are in it."""
    started = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19]
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return uptime - int(started) / os.sysconf("SC_CLK_TCK")


def prepare_environment() -> Path:
    """Everything that torch reads when it is imported."""
    if ISA_FILE.is_file():
        os.environ["ATEN_CPU_CAPABILITY"] = ISA_FILE.read_text().strip()
    # The precompiled header is outside the cache directory and saves time only above three kernels;
    # the instruction set probes cost g++ runs on every empty directory.
    os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")
    os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
    if "TORCHINDUCTOR_CACHE_DIR" not in os.environ:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="inductor-")
    return Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])


def native_objects(directory: Path) -> set[tuple[str, int, int]]:
    found = set()
    for path in directory.rglob("*.main.so"):
        status = path.stat()
        found.add((str(path), status.st_ino, status.st_mtime_ns))
    return found


class Handler(http.server.BaseHTTPRequestHandler):
    run_model = None

    def do_GET(self) -> None:
        if self.path == "/readyz":
            self.answer(200 if STATE["ready"] else 503, json.dumps(STATE))
        elif self.path == "/run" and STATE["ready"]:
            self.answer(200, str(Handler.run_model()))
        else:
            self.answer(404, "")

    def answer(self, code: int, text: str) -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_) -> None:
        pass


def build_model(torch, size: str):
    nn = torch.nn

    class Mlp(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.up = nn.Linear(width, 2 * width)
            self.down = nn.Linear(2 * width, width)

        def forward(self, x):
            return x + self.down(nn.functional.silu(self.up(x)))

    class Attention(nn.Module):
        def __init__(self, width: int, heads: int = 4):
            super().__init__()
            self.heads = heads
            self.norm = nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)

        def forward(self, x):
            batch, tokens, width = x.shape
            shape = (batch, tokens, 3, self.heads, width // self.heads)
            q, k, v = self.qkv(self.norm(x)).view(shape).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + self.out(y.transpose(1, 2).reshape(batch, tokens, width))

    if size == "small":
        return nn.Sequential(Mlp(64), Mlp(64))
    layers = []
    for width in (64, 96, 128, 160, 192, 224, 256):  # each width gives kernels of its own
        layers += [nn.Linear(64, width), Attention(width), nn.LayerNorm(width), Mlp(width)]
        layers += [nn.Linear(width, 64)]
    return nn.Sequential(*layers)


def compile_model(size: str, threads: int) -> dict[str, object]:
    began = time.monotonic()
    import torch

    import_s = time.monotonic() - began
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    model = build_model(torch, size).eval()
    compiled = torch.compile(model, fullgraph=True)
    x = torch.randn(1, 32, 64)
    began = time.monotonic()
    with torch.no_grad():
        y = compiled(x)
        compile_s = time.monotonic() - began
        max_diff = (y - model(x)).abs().max().item()

    def run() -> float:
        with torch.no_grad():
            return float(compiled(x).sum())

    Handler.run_model = run
    from torch._dynamo.utils import counters

    inductor, aot = counters["inductor"], counters["aot_autograd"]
    return {
        "import_s": round(import_s, 2),
        "compile_s": round(compile_s, 2),
        "fx_hit": inductor["fxgraph_cache_hit"],
        "fx_miss": inductor["fxgraph_cache_miss"],
        "aot_hit": aot["autograd_cache_hit"],
        "aot_miss": aot["autograd_cache_miss"],
        "max_diff": f"{max_diff:.3g}",
        "isa": os.environ.get("ATEN_CPU_CAPABILITY", "default"),
    }


def main() -> None:
    size = os.environ.get("MODEL_SIZE", "small")
    if size not in ("small", "large"):
        sys.exit(f"MODEL_SIZE={size!r}: expected small or large")
    port = int(os.environ.get("PORT", "8080"))
    server = http.server.ThreadingHTTPServer(("0.0.0.0", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    directory = prepare_environment()
    before = native_objects(directory)
    seen = compile_model(size, int(os.environ.get("MODEL_THREADS", "2")))
    built = len(native_objects(directory) - before)
    STATE.update(
        total_s=round(process_age(), 2), **seen, new_so=built, dir=str(directory), ready=True
    )
    words = " ".join(f"{name}={value}" for name, value in STATE.items() if name != "ready")
    print("READY " + words, flush=True)
    if os.environ.get("MODEL_EXIT") == "1":
        os._exit(0)
    threading.Event().wait()


if __name__ == "__main__":
    main()
