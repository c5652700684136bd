# SPDX-License-Identifier: Apache-2.0
"""Reads the GPUs of this machine from nvidia-smi and compares them with the probe."""

import re
import shutil
import subprocess
from dataclasses import dataclass

QUERY = ("name", "memory.total", "driver_version", "compute_cap", "mig.mode.current")


class NoGpuError(Exception):
    """This machine has no usable NVIDIA GPU; the text is the reason."""


@dataclass(frozen=True)
class Gpu:
    name: str
    mebibytes: int
    driver: str
    capability: str  # "9.0"
    has_mig: bool


@dataclass(frozen=True)
class Row:
    fact: str
    by_smi: str
    by_probe: str

    @property
    def agrees(self) -> bool:
        return self.by_smi == self.by_probe


def parse_query(text: str) -> list[Gpu]:
    """Reads the output of nvidia-smi --query-gpu=... --format=csv,noheader,nounits."""
    gpus = []
    for line in text.splitlines():
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(QUERY) or not fields[1].isdigit():
            raise ValueError(f"nvidia-smi: unexpected line: {line!r}")
        gpus.append(Gpu(fields[0], int(fields[1]), fields[2], fields[3], fields[4] == "Enabled"))
    return gpus


def parse_mig_profiles(text: str) -> list[str]:
    """Reads the profiles of all MIG instances from the output of nvidia-smi -L."""
    return re.findall(r"^\s+MIG (\S+)\s+Device", text, re.MULTILINE)


def query() -> tuple[list[Gpu], list[str]]:
    """The GPUs and MIG profiles of this machine. Raises NoGpuError if there is none."""
    if shutil.which("nvidia-smi") is None:
        raise NoGpuError("nvidia-smi is not installed")
    words = ["nvidia-smi", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    if answer.returncode != 0:
        reason = (answer.stdout + answer.stderr).strip().splitlines() or ["no output"]
        raise NoGpuError(f"nvidia-smi failed: {reason[-1]}")
    gpus = parse_query(answer.stdout)
    if not gpus:
        raise NoGpuError("nvidia-smi lists no GPU")
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60,
                            check=True)
    return gpus, parse_mig_profiles(listed.stdout)


def type_of(gpu: Gpu, profile: str = "") -> str:
    """The GPU type that cachewarm gives this GPU, by the rules of lib/fingerprint/gpu_type.h."""
    name = re.sub(r"[^a-z0-9.+]+", "-", gpu.name.lower()).strip("-").removeprefix("nvidia-")
    return (f"nvidia/{name}/sm_{gpu.capability.replace('.', '')}"
            + (f"/mig-{profile.lower()}" if profile else ""))


def expected_kinds(gpus: list[Gpu], profiles: list[str]) -> tuple[list[str], int]:
    """The kinds of device that the probe must report, sorted, and the number of devices."""
    whole = [gpu for gpu in gpus if not gpu.has_mig]
    split = [gpu for gpu in gpus if gpu.has_mig]
    kinds = {type_of(gpu) for gpu in whole}
    if split:
        kinds |= {type_of(split[0], profile) for profile in profiles}
    return sorted(kinds), len(whole) + (len(profiles) if split else 0)


def compare(gpus: list[Gpu], profiles: list[str], facts: dict) -> list[Row]:
    """Compares nvidia-smi with the output of cachewarm-agent --print-node-facts."""
    kinds, count = expected_kinds(gpus, profiles)
    rows = [
        Row("GPU type", " ".join(kinds), " ".join(facts.get("gpuKinds") or [facts["gpuType"]])),
        Row("devices", str(count), str(facts["deviceCount"])),
        Row("driver", gpus[0].driver, facts["driverVersion"]),
    ]
    if len({gpu.mebibytes for gpu in gpus}) == 1 and not any(gpu.has_mig for gpu in gpus):
        rows.append(Row("memory of one GPU (MiB)", str(gpus[0].mebibytes),
                        str(facts.get("gpuMemoryBytes", 0) // 2**20)))
    return rows
