# SPDX-License-Identifier: Apache-2.0
"""Builds a program with one source replaced, beside a build folder that stays as it is.

Every include of this tree starts at its root, so that a changed copy of a source compiles
anywhere. Its object is linked first, and of two definitions the linker takes the first one, so
that an object of a whole folder (CMAKE_UNITY_BUILD) uses the changed functions too.
"""
import json
import os
import re
import shlex
import subprocess
import time
from pathlib import Path

# The sanitizer would report each variable that the object and that of its folder both define.
ODR = {"ASAN_OPTIONS": "detect_odr_violation=0"}


class Build:
    def __init__(self, root, folder, scratch):
        self.root, self.folder, self.scratch = Path(root), Path(folder), Path(scratch)
        self.commands = {}
        self.links = {}

    def configure(self, *flags):
        if not (self.folder / "build.ninja").exists():
            self.run(["cmake", "-S", str(self.root), "-B", str(self.folder), "-G", "Ninja", *flags])

    def make(self, targets, jobs):
        self.run(["ninja", "-C", str(self.folder), f"-j{jobs}", *targets])
        for entry in json.loads((self.folder / "compile_commands.json").read_text()):
            for source in self.sources(Path(entry["file"])):
                self.commands[os.path.relpath(source, self.root)] = entry["command"]

    @staticmethod
    def sources(file):
        """The sources of a compilation: those that a file of CMAKE_UNITY_BUILD includes."""
        if file.suffix != ".cxx":
            return [file]
        return re.findall(r'^#include "(/.+)"$', file.read_text(), re.M)

    @staticmethod
    def run(command):
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"{shlex.join(command)}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")

    def compile(self, file, text):
        """The object of `file` with this text; None when it is no C++ any more."""
        source, out = self.scratch / Path(file).name, self.scratch / "fault.o"
        source.write_text(text)
        words = shlex.split(self.commands[file])
        words = [word for word in words if Path(word).name != "ccache"]
        words[words.index("-o") + 1] = str(out)
        words[words.index("-c") + 1] = str(source)
        words += ["-w", "-g0"]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, check=False)
        return out if done.returncode == 0 else None

    def link_command(self, target):
        if target not in self.links:
            done = subprocess.run(["ninja", "-C", str(self.folder), "-t", "commands", target],
                                  text=True, capture_output=True, check=True)
            command = done.stdout.strip().splitlines()[-1]
            # Without the commands that follow the link, as the symlink kubectl-cachewarm.
            self.links[target] = command.removeprefix(": && ").split(" && ")[0]
        return self.links[target]

    def path_of(self, target):
        words = shlex.split(self.link_command(target))
        return self.folder / words[words.index("-o") + 1]

    def link(self, target, object_file):
        """The program `target` with the definitions of this object; None: not linked."""
        words = shlex.split(self.link_command(target))
        out = self.scratch / target
        first = next(at for at, word in enumerate(words) if word.endswith(".o"))
        words[first:first] = ["-Wl,--allow-multiple-definition", str(object_file)]
        words[words.index("-o") + 1] = str(out)
        done = subprocess.run(words, cwd=self.folder, text=True, capture_output=True, check=False)
        return out if done.returncode == 0 else None

    def test(self, program, environment, limit):
        """How many seconds the program passed in; None when it failed or took too long."""
        begin = time.monotonic()
        with subprocess.Popen([str(program), "--gtest_brief=1", "--gtest_fail_fast"],
                              cwd=self.scratch, env={**os.environ, **ODR, **environment},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True) as process:
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = 1
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
        return time.monotonic() - begin if status == 0 else None
