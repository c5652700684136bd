# SPDX-License-Identifier: Apache-2.0
"""Writes a corpus: python -m corpus {small|big} DIRECTORY [--second]

DIRECTORY/tree is what an engine's cache directory holds, DIRECTORY/second the same after an
upgrade that changed 5 % of it. Run it by the Python of tools/setup/bench-venv.
"""
import argparse
from pathlib import Path

from .material import Material
from .mutation import mutate
from .tree import BIG, SMALL, build


def main():
    """Entry."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=["small", "big"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--second", action="store_true", help="also write DIRECTORY/second")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    shape = {"small": SMALL, "big": BIG}[arguments.shape]
    material = Material()
    build(arguments.directory / "tree", shape, material, arguments.jobs)
    if arguments.second:
        mutate(arguments.directory / "tree", arguments.directory / "second", shape, material,
               jobs=arguments.jobs)


if __name__ == "__main__":
    main()
