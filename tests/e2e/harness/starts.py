# SPDX-License-Identifier: Apache-2.0
"""Parses the READY line in the log of the model server, which describes its start."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Start:
    total_s: float
    import_s: float
    compile_s: float
    fx_hit: int
    fx_miss: int
    aot_hit: int
    aot_miss: int
    new_so: int
    max_diff: float
    isa: str
    dir: str

    @property
    def full_hit(self) -> bool:
        """Nothing was compiled, by the engine's counters and by its directory. aot_miss is no
        observer: a dynamic model counts one on a full hit too."""
        return self.fx_hit > 0 and self.fx_miss == 0 and self.new_so == 0

    @property
    def cold(self) -> bool:
        return self.fx_hit == 0 and self.fx_miss > 0 and self.new_so > 0

    @property
    def right(self) -> bool:
        """The numbers agree with eager mode (NaN does not)."""
        return self.max_diff < 1e-3


def parse(log: str) -> Start | None:
    """The last READY line of a log, or None while there is none."""
    lines = [line for line in log.splitlines() if line.startswith("READY ")]
    if not lines:
        return None
    words = dict(word.split("=", 1) for word in lines[-1].split()[1:])
    kinds = Start.__annotations__
    missing = kinds.keys() - words.keys()
    if missing:
        raise ValueError(f"READY line without {sorted(missing)}: {lines[-1]}")
    return Start(**{name: kind(words[name]) for name, kind in kinds.items()})
