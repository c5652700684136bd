# SPDX-License-Identifier: Apache-2.0
"""The material from pinned packages: ptxas, real Python text, real machine code."""
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SITE = Path(sys.prefix) / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
PTXAS_SECONDS = 120
# ELF64, little endian, shared object for x86-64, without tables: cut code is still a whole file.
ELF_HEADER = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 0, 0, 0,
                         64, 56, 0, 64, 0, 0)


class Material:
    """The packages of tests/bench/requirements.txt; raises SystemExit when they are not there."""

    def __init__(self, site=SITE):
        found = sorted(site.glob("nvidia/*/bin/ptxas"))
        self.texts = sorted(p for p in site.glob("numpy/**/*.py")
                            if 1000 < p.stat().st_size < 120000)
        self.libraries = sorted(p for p in [*site.glob("numpy/**/*.so"),
                                            *site.glob("numpy.libs/*.so*")]
                                if p.stat().st_size > 20000)
        self.large = [p for p in self.libraries if p.stat().st_size > 1500000]
        if not (found and self.texts and self.large):
            raise SystemExit(f"corpus: {site} lacks ptxas or numpy; run it by the Python of "
                             "`tools/setup/bench-venv`")
        self.ptxas = found[0]

    def compile(self, ptx, path):
        """Writes the cubin of `ptx`. In a folder of its own: ptxas writes its arguments down."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "kernel.ptx").write_text(ptx)
            subprocess.run([str(self.ptxas), "-arch=sm_90a", "-lineinfo", "kernel.ptx", "-o",
                            "kernel.cubin"], cwd=folder, check=True, timeout=PTXAS_SECONDS,
                           stdout=subprocess.DEVNULL)
            path.write_bytes(Path(folder, "kernel.cubin").read_bytes())

    def text(self, index):
        """Python that people wrote."""
        return self.texts[index % len(self.texts)].read_text(errors="replace")

    def code(self, rng, index, stub):
        """A shared object: a launcher stub of 20-200 KB, or 1-8 MB of an extension."""
        sources = self.libraries if stub else self.large
        source = sources[index % len(sources)]
        available = source.stat().st_size
        wanted = (min(2e5, max(2e4, rng.lognormvariate(11, 0.8))) if stub else
                  min(8e6, max(1e6, rng.lognormvariate(15.2, 0.6))))
        wanted = min(available, int(wanted))
        offset = 0 if available == wanted else rng.randrange(available - wanted) // 4096 * 4096
        with source.open("rb") as stream:
            stream.seek(offset)
            return ELF_HEADER + stream.read(wanted)
