# SPDX-License-Identifier: Apache-2.0
"""Where contenders run: images are made right, results are counted, failures do not end a round."""
import contextlib
import gzip
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import bench
import contenders
import course
import pytest
from contenders import Contender
from corpora import Corpus
from processes import CommandFailed, Sample
from rounds import Runs, run_rounds


def at(folder, files=1, size=5):
    """A Course without programs."""
    made = object.__new__(course.Course)
    made.corpus = Corpus("tiny", folder / "tree", folder / "archives", files, 0, size)
    made.disk, made.target = folder, folder / "target"
    return made


def blob(layout, descriptor):
    content = (layout / "blobs/sha256" / descriptor["digest"].split(":")[1]).read_bytes()
    assert f"sha256:{hashlib.sha256(content).hexdigest()}" == descriptor["digest"]
    assert len(content) == descriptor["size"]
    return content


def test_image_names_its_archive_by_digest_and_diff_id(tmp_path):
    (tmp_path / "tree.tar.gz").write_bytes(gzip.compress(b"a tar"))
    course.write_image(tmp_path / "image", tmp_path, "gzip")
    index = json.loads((tmp_path / "image/index.json").read_text())
    manifest = json.loads(blob(tmp_path / "image", index["manifests"][0]))
    layer = manifest["layers"][0]
    assert layer["mediaType"].endswith("tar+gzip")
    assert gzip.decompress(blob(tmp_path / "image", layer)) == b"a tar"
    config = json.loads(blob(tmp_path / "image", manifest["config"]))
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(b'a tar').hexdigest()}"]


def test_unreadable_archive_is_rejected(tmp_path):
    (tmp_path / "tree.tar.gz").write_bytes(b"no gzip")
    with pytest.raises(CommandFailed, match="cannot read"):
        course.write_image(tmp_path / "image", tmp_path, "gzip")


@pytest.mark.parametrize("files,size", [(2, 5), (1, 4)])
def test_incomplete_tree_is_a_failure(tmp_path, files, size):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/file").write_bytes(b"12345")
    at(tmp_path).check_tree(tmp_path / "out")
    with pytest.raises(CommandFailed, match="1 files of 5 bytes, not"):
        at(tmp_path, files, size).check_tree(tmp_path / "out")


def test_free_memory_is_written_once_before_a_run_and_freed(tmp_path, monkeypatch):
    """The corpus' bytes, three times; in a process of its own, as a peak is for life."""
    size = 200 << 20
    code = ("import course, resource\n"
            "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
            f"before = peak(); course.back_free_memory({size}); print(peak() - before)\n"
            "pages = int(open('/proc/self/statm').read().split()[1]); print(pages * 4096)")
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(course.__file__).parent,
                          capture_output=True, text=True, check=True, timeout=60)
    written, kept = map(int, done.stdout.split())
    assert written > size / 2 > kept
    asked = []
    monkeypatch.setattr(course, "back_free_memory", asked.append)
    with contextlib.suppress(CommandFailed), at(tmp_path, size=7).clean_target() as target:
        assert (asked, list(target.iterdir())) == ([21], [])


def test_the_same_course_on_another_disk_writes_there(tmp_path):
    first = at(tmp_path)
    second = first.on(Path("/other"))
    assert (second.disk, second.target) == (Path("/other"), Path("/other/target"))
    assert first.target == tmp_path / "target"


def test_programs_are_copied_at_the_start(tmp_path):
    names = ("cachewarm", "limit", "download", "fetch", "openat2", "agent", "api_server")
    for name in names:
        (tmp_path / name).write_text("before")
    programs = course.Programs(peers=tmp_path, **{name: tmp_path / name for name in names})
    copied = programs.copied(tmp_path / "copies")
    (tmp_path / "cachewarm").write_text("after")
    assert copied.cachewarm.read_text() == "before"
    assert copied.peers == tmp_path


def test_limit_takes_as_long_as_its_work_and_its_sync(tmp_path):
    program = tmp_path / "limit"
    program.write_text('#!/bin/sh\necho \'{"limit": 1.5, "work": 1.1, "sync": 0.4, "cores": 2}\'\n'
                       f'echo "$@" >{tmp_path}/words\n')
    program.chmod(0o755)
    place = at(tmp_path)
    place.largest, place.log = tmp_path / "blob", tmp_path / "log"
    place.programs = course.Programs(*[program] * 8)
    place.target.mkdir()
    sample = contenders.limit("pack", "{tree}", "{out}")(place)
    assert (sample.wall, sample.synced) == (1.5, 1.5)
    assert (tmp_path / "words").read_text().split() == [
        "pack", str(tmp_path / "tree"), str(tmp_path / "target")]


def test_fetch_command_names_registry_namespace_and_name(tmp_path):
    place = at(tmp_path)
    place.remote = "127.0.0.1:5000/bench/big"
    place.programs = course.Programs(*[tmp_path] * 8)
    assert place.fetch_command("second", "bundle") == [
        str(tmp_path), str(tmp_path / "target/root"), "oci://127.0.0.1:5000", "bench", "big",
        "second", "bundle"]
    assert place.fetch_command("bundle", options=["--activate"], store="layout:///store") == [
        str(tmp_path), "--activate", str(tmp_path / "target/root"), "layout:///store", "bench",
        "big", "bundle"]


def test_agent_is_active_before_its_tree_is_on_disk(tmp_path):
    program, tree = tmp_path / "fetch", tmp_path / "found"
    tree.mkdir()
    (tree / "file").write_bytes(b"12345")
    program.write_text(f'#!/bin/sh\necho \'{{"tree": "{tree}", "movedBytes": 3}}\'\n')
    program.chmod(0o755)
    place = at(tmp_path)
    place.remote, place.log, place.sync = "127.0.0.1:5000/bench/tiny", tmp_path / "log", lambda: 2.0
    place.programs = course.Programs(*[program] * 8)
    sample = contenders.until_active(lambda _: (None, "bundle"))(place)
    assert (sample.size, sample.synced) == (3, sample.wall + 2)


@pytest.mark.parametrize("change,good", [
    (lambda tree: None, True),
    (lambda tree: (tree / "empty").mkdir(), True),
    (lambda tree: (tree / "vllm/a").write_text("b"), False),
    (lambda tree: (tree / "vllm/a").unlink(), False),
    (lambda tree: (tree / "vllm/more").write_text("a"), False),
    (lambda tree: (tree / "vllm/a").rename(tree / "vllm/other"), False)])
def test_updated_tree_has_the_content_of_the_second_version(tmp_path, change, good):
    for tree in ("second", "found"):
        (tmp_path / tree / "vllm").mkdir(parents=True)
        (tmp_path / tree / "vllm/a").write_text("a")
    change(tmp_path / "found")
    if good:
        contenders.check_same(tmp_path / "second", tmp_path / "found")
        return
    with pytest.raises(CommandFailed):
        contenders.check_same(tmp_path / "second", tmp_path / "found")


def groups_on(corpus, disk="ext4"):
    """Returns the groups that run on the corpus and this one of two disks."""
    return {c.group for name, c in bench.entries_of(corpus, ["ext4", "xfs"], lambda _: True)
            if name == disk}


def test_only_a_corpus_with_a_second_version_is_updated(tmp_path):
    assert not {"update", "agent"} & groups_on(Corpus("tiny", tmp_path, tmp_path, 1, 0, 1))
    assert {"update", "agent"} < groups_on(Corpus("tiny", tmp_path, tmp_path, 1, 0, 1, tmp_path))


def test_corpus_without_archives_is_for_the_agent_alone(tmp_path):
    assert groups_on(Corpus("huge", tmp_path, None, 1, 0, 1, tmp_path)) == {"agent"}


def test_every_group_runs_on_every_disk_but_downloads(tmp_path):
    corpus = Corpus("tiny", tmp_path, tmp_path, 1, 0, 1, tmp_path)
    assert groups_on(corpus) - groups_on(corpus, "xfs") == {"download"}


def test_huge_is_left_out_with_the_reason_when_the_disk_is_short(tmp_path, monkeypatch):
    monkeypatch.setattr(bench.shutil, "disk_usage", lambda _: SimpleNamespace(free=20e9))
    arguments = SimpleNamespace(small=False, only=re.compile(""))
    corpus, why = bench.measure_huge(arguments, None, tmp_path, None, Runs())
    assert corpus is None and why.endswith("has 20 GB of free disk, and huge needs 35")


def test_huge_that_cannot_be_made_leaves_the_other_results(tmp_path, monkeypatch):
    def fails(*_):
        raise OSError("no space left on device")
    monkeypatch.setattr(bench.corpora, "huge", fails)
    arguments, runs = SimpleNamespace(small=True, only=re.compile("")), Runs()
    small = Corpus("small", tmp_path, tmp_path, 1, 0, 1, tmp_path)
    assert bench.measure_huge(arguments, small, tmp_path, None, runs) == (None, "failed")
    assert runs.errors == ["huge: no space left on device"]


def test_failed_contender_is_recorded_and_the_round_continues(tmp_path):
    place = at(tmp_path)
    place.sync = lambda: 0.0
    seen, lines, runs = [], [], Runs()

    def fails(where):
        (where.target / "half").write_bytes(b"x")
        raise CommandFailed("exit status 9")

    def works(where):
        seen.append(list(where.target.iterdir()))
        return Sample(1.5, 1, 1)

    entries = [(place, Contender("pack", "bad", "", fails)),
               (place, Contender("pack", "cachewarm", "", works))]
    run_rounds(runs, entries, 2, lines.append)
    disk = tmp_path.name
    assert runs.of("tiny", disk, "pack/bad") == [None, None]
    assert [sample.wall for sample in runs.of("tiny", disk, "pack/cachewarm")] == [1.5, 1.5]
    assert seen == [[], []] and not place.target.exists()
    assert runs.errors == [f"tiny/{disk}/pack/bad: exit status 9"] * 2
    titles = [line.split()[-1] for line in lines]
    assert sorted(titles[:2]) == sorted(titles[2:]) == ["pack/bad", "pack/cachewarm"]
