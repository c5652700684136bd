# SPDX-License-Identifier: Apache-2.0
"""Many copies of a corpus as one tree. Each has a directory of its configuration, and its files end
in as many more newlines as its number: no two copies have a file with the same content, and
pickles, texts and machine code stay valid."""
import hashlib

CONFIGURATIONS = "vllm/torch_compile_cache"
GRAPHS = ("fxgraph/*/*/*", "aotautograd/*/*")


def copy_many(source, target, copies, more_graphs):
    """Creates `target`: `copies` of `source`, and `more_graphs` copies of its graph caches."""
    for number in range(copies + more_graphs):
        patterns = ["**/*"] if number < copies else [f"*/*/{graph}" for graph in GRAPHS]
        for configuration in sorted((source / CONFIGURATIONS).iterdir()):
            name = hashlib.sha256(f"{configuration.name}/{number}".encode()).hexdigest()[:10]
            for pattern in patterns:
                copy_files(configuration, target / CONFIGURATIONS / name, pattern, number)


def copy_files(source, target, pattern, newlines):
    """Copies the files below `source` that match, with more newlines at their ends."""
    for path in sorted(source.glob(pattern)):
        if path.is_file():
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes() + b"\n" * newlines)


def edit_graphs(root):
    """Changes the graph caches of the first copy, in new files: other trees may share the old."""
    first = min((root / CONFIGURATIONS).iterdir())
    for pattern in GRAPHS:
        for path in sorted(first.glob(f"*/*/{pattern}")):
            content = path.read_bytes()
            path.unlink()
            path.write_bytes(content + b"# edited\n")
