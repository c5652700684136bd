# SPDX-License-Identifier: Apache-2.0
"""The corpus: the same seed gives the same bytes, and the second version differs as it says."""
import ast
import hashlib
import json
import os
import pickle
import random

import corpora
import pytest
from corpus import copies, kernels, tree
from corpus.material import ELF_HEADER
from corpus.mutation import mutate

SHAPE = tree.Shape(kernels=6, py=17, pickles=4, so=4, ranks=2, pickle_mu=-3.0, seed=11)


class StandIn:
    """For ptxas and numpy, which the tests' environment lacks."""

    def compile(self, ptx, path):
        path.write_bytes(hashlib.sha256(ptx.encode()).digest() * 8)

    def text(self, index):
        return f"print({index})\n"

    def code(self, rng, index, stub):
        return ELF_HEADER + rng.randbytes(20 if stub else 90) + bytes([index])


def contents(root):
    return {path.relative_to(root).as_posix(): path.read_bytes()
            for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("corpus") / "tree"
    tree.build(root, SHAPE, StandIn())
    return root


def test_same_seed_gives_the_same_bytes_with_any_number_of_jobs(made, tmp_path):
    tree.build(tmp_path / "again", SHAPE, StandIn(), jobs=1)
    assert contents(tmp_path / "again") == contents(made)


def test_different_seed_gives_different_bytes(made, tmp_path):
    tree.build(tmp_path / "other", tree.Shape(**{**SHAPE.__dict__, "seed": 12}), StandIn())
    assert not set(contents(tmp_path / "other")) & {
        path for path in contents(made) if "modelinfos" not in path}


def test_tree_has_the_layout_of_a_vllm_pod(made):
    shapes = {"/".join(path.split("/")[3:6:2]) for path in contents(made)}
    assert {path.split("/")[0] for path in contents(made)} == {"vllm"}
    assert shapes >= {"rank_0_0/fxgraph", "rank_1_0/aotautograd", "rank_0_0"}


def test_group_file_of_a_kernel_names_existing_members(made):
    for group in made.rglob("__grp__*.json"):
        names = json.loads(group.read_text())["child_paths"]
        assert {path.name for path in group.parent.iterdir()} == {*names, group.name}


def test_pickles_hold_the_bytes_of_their_kernels(made):
    files = contents(made)
    for path in made.rglob("fxgraph/*/*/*"):
        for kernel in pickle.loads(path.read_bytes())["triton_bundle"]:
            for name, content in kernel["artifacts"]:
                assert content in (files[found] for found in files
                                   if found.endswith(f"{kernel['kernel_hash']}/{name}"))


def test_second_version_differs_only_in_a_few_files(made, tmp_path):
    mutate(made, tmp_path / "second", SHAPE, StandIn(), fraction=0.34)
    before, after = contents(made), contents(tmp_path / "second")
    gone, new = set(before) - set(after), set(after) - set(before)
    changed = {path for path in set(before) & set(after) if before[path] != after[path]}
    assert len(gone) == len(new) == 2 * 8  # one kernel of three, in each rank
    assert changed and all("inductor_cache" in path for path in changed)
    assert not any(path.endswith(".so") for path in changed | gone)


@pytest.mark.parametrize("seed", range(20))
def test_operations_read_only_written_registers(seed):
    rng = random.Random(seed)
    operations, registers = kernels.draw_operations(rng, kernels.draw_length(rng))
    written = 4
    for operation in operations:
        if operation[0] == "st":
            assert operation[1] < written
            continue
        assert operation[1] == written
        if operation[0] != "ld":
            assert max(operation[2:5]) < written
        written += 1
    assert written == registers


def test_copies_have_no_file_in_common_and_stay_readable(made, tmp_path):
    copies.copy_many(made, tmp_path / "many", 2, 1)
    before, found = contents(made), contents(tmp_path / "many")
    graphs = [path for path in before if "/fxgraph/" in path or "/aotautograd/" in path]
    modelinfos = [path for path in before if "modelinfos" in path]
    assert len(found) == 2 * (len(before) - len(modelinfos)) + len(graphs)
    large = {content for path, content in before.items() if content in found.values()}
    assert len(large) >= len(graphs)  # the first copy
    assert len({content for path, content in found.items() if path.endswith("compile_cache.py")}
               ) == 4  # of two ranks in two copies
    for path, content in found.items():
        if path.endswith(".json"):
            json.loads(content)
        elif path.endswith("compile_cache.py"):
            ast.parse(content)
        elif "/fxgraph/" in path:
            pickle.loads(content)


def test_huge_shares_unchanged_files_with_its_second_version(made, tmp_path):
    source = corpora.Corpus("tiny", made, None, 0, 0, 0)
    huge = corpora.huge(source, tmp_path, 2, 1)
    before, after = contents(huge.tree), contents(huge.second)
    changed = {path for path in before if before[path] != after[path]}
    assert set(before) == set(after) and 0 < len(changed) < len(before) / 4
    for path in before:
        shared = os.path.samefile(huge.tree / path, huge.second / path)
        assert shared == (path not in changed)
    assert (huge.files, huge.archives) == (len(before), None)


def test_counting_a_tree_follows_no_links(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_bytes(b"12345")
    (tmp_path / "a/link").symlink_to("/usr")
    files, folders, size = corpora.count(tmp_path)
    assert (files, folders) == (1, 3)
    assert size == 5


def test_key_of_a_corpus_depends_on_its_shape():
    assert corpora.key_of("small") != corpora.key_of("big")
    assert corpora.key_of("small") == corpora.key_of("small")


def test_a_real_cache_is_compiled_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "CACHE", tmp_path)
    assert corpora.torch_cache(print) is None
    python = tmp_path / "torch/current/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/bash\nmkdir \"$TORCHINDUCTOR_CACHE_DIR\"\necho >>\"$0.ran\"\n")
    python.chmod(0o755)
    tree_made = corpora.torch_cache(lambda text: None)
    assert (tree_made / "inductor").is_dir()
    assert corpora.torch_cache(print) == tree_made
    assert python.with_name("python.ran").read_text() == "\n"
