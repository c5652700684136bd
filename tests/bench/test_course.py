# SPDX-License-Identifier: Apache-2.0
"""Where contenders run: images are made right, results are counted, failures do not end a round."""
import gzip
import hashlib
import json
from pathlib import Path

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


def test_an_image_names_its_archive_by_what_it_is_and_by_what_is_in_it(tmp_path):
    (tmp_path / "tree.tar.gz").write_bytes(gzip.compress(b"a tar"))
    course.write_image(tmp_path / "image", tmp_path, "gzip")
    index = json.loads((tmp_path / "image/index.json").read_text())
    manifest = json.loads(blob(tmp_path / "image", index["manifests"][0]))
    layer = manifest["layers"][0]
    assert layer["mediaType"].endswith("tar+gzip")
    assert gzip.decompress(blob(tmp_path / "image", layer)) == b"a tar"
    config = json.loads(blob(tmp_path / "image", manifest["config"]))
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(b'a tar').hexdigest()}"]


def test_an_archive_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "tree.tar.gz").write_bytes(b"no gzip")
    with pytest.raises(CommandFailed, match="cannot read"):
        course.write_image(tmp_path / "image", tmp_path, "gzip")


@pytest.mark.parametrize("files,size", [(2, 5), (1, 4)])
def test_a_tree_that_lacks_something_is_a_failure(tmp_path, files, size):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/file").write_bytes(b"12345")
    at(tmp_path).check_tree(tmp_path / "out")
    with pytest.raises(CommandFailed, match="1 files of 5 bytes, not"):
        at(tmp_path, files, size).check_tree(tmp_path / "out")


def test_the_same_course_on_another_disk_writes_there(tmp_path):
    first = at(tmp_path)
    second = first.on(Path("/other"))
    assert (second.disk, second.target) == (Path("/other"), Path("/other/target"))
    assert first.target == tmp_path / "target"


def test_programs_are_those_that_were_there_at_the_begin(tmp_path):
    names = ("cachewarm", "limit", "download", "openat2")
    for name in names:
        (tmp_path / name).write_text("before")
    programs = course.Programs(peers=tmp_path, **{name: tmp_path / name for name in names})
    copied = programs.copied(tmp_path / "copies")
    (tmp_path / "cachewarm").write_text("after")
    assert copied.cachewarm.read_text() == "before"
    assert copied.peers == tmp_path


def test_a_failed_contender_is_kept_and_the_round_goes_on(tmp_path):
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
               (place, Contender("pack", "ours", "", works))]
    run_rounds(runs, entries, 2, lines.append)
    disk = tmp_path.name
    assert runs.of("tiny", disk, "pack/bad") == [None, None]
    assert [sample.wall for sample in runs.of("tiny", disk, "pack/ours")] == [1.5, 1.5]
    assert seen == [[], []] and not place.target.exists()
    assert runs.errors == [f"tiny/{disk}/pack/bad: exit status 9"] * 2
    assert [line.split()[-1] for line in lines] == ["pack/bad", "pack/ours", "pack/ours",
                                                    "pack/bad"]
