# SPDX-License-Identifier: Apache-2.0
"""tools/mutate on a toy room: a fault that a test notices is killed, any other one survives."""
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools/mutate"))

import building  # noqa: E402
import faults  # noqa: E402
import mutate  # noqa: E402
import rooms  # noqa: E402

SOURCE = """\
#include "toy/toy.h"

int made;

// if (a == b) is a comment, and "if (x)" below is a string.
Sizes Make(int width, int height) {
  Sizes sizes{.width = width, .height = height};
  if (width < 0) {
    sizes.width = 0;
  }
  Note("if (x == y)");
  return sizes;
}
"""
HEADER = """\
#pragma once
struct Sizes { int width = 0; int height = 0; };
inline void Note(const char*) {}
Sizes Make(int width, int height);
Sizes Square(int width);
"""
OTHER = """\
#include "toy/toy.h"
Sizes Square(int width) { return Make(width, width); }
"""
# Does not check the height. Calls Make() through another source of the folder. Like the tests of
# this tree, it needs to know where the sources are.
TEST = """\
#include <cstdlib>
#include "toy/toy.h"
int main() {
  const bool found = std::getenv("CACHEWARM_SOURCE_DIR") != nullptr;
  return found && Make(2, 3).width == 2 && Square(-1).width == 0 ? 0 : 1;
}
"""
LISTS = """\
cmake_minimum_required(VERSION 3.25)
project(toy LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_options(-fsanitize=address)
add_link_options(-fsanitize=address)
add_library(toy STATIC toy/toy.cc toy/other.cc)
set_target_properties(toy PROPERTIES UNITY_BUILD ON)
target_include_directories(toy PUBLIC ${CMAKE_SOURCE_DIR})
function(cachewarm_test name)
  add_executable(${name} ${name}.cc)
  target_link_libraries(${name} PRIVATE toy)
  add_custom_command(TARGET ${name} POST_BUILD COMMAND ${CMAKE_COMMAND} -E touch linked)
endfunction()
add_subdirectory(tests/unit/toy)
"""


def kinds(text):
    return {(fault.line(text), fault.kind) for fault in faults.find(text)}


class TestFaults:
    def test_are_found_in_code_and_not_in_comments_or_strings(self):
        assert kinds(SOURCE) == {
            (7, "dropped initialiser"), (8, "negated condition"),
            (8, "swapped operator"), (8, "swapped constant"), (9, "removed statement"),
            (9, "swapped constant"), (11, "removed statement"),
            (12, "emptied result")}

    def test_change_one_place_each(self):
        for fault in faults.find(SOURCE):
            changed = fault.apply(SOURCE)
            assert changed != SOURCE
            assert len(mutate.difference(SOURCE, fault)) == 2

    @pytest.mark.parametrize("text,kind,line", [
        ("f({.a = 1,\n   .keys = config.keys,\n   .b = 2});", "dropped initialiser",
         "   "),
        ("void F() {\n  G(a, b);\n}", "swapped arguments", "  G(b, a);"),
        ("void F() {\n  if (auto x = G(); x.ok()) {\n  }\n}", "negated condition",
         "  if (auto x = G(); !(x.ok())) {"),
        ("bool F() {\n  return a && b;\n}", "swapped operator", "  return a || b;"),
        ("bool F() {\n  return true;\n}", "swapped constant", "  return false;"),
        ("void F() {\n  member_ = Value(\n      1);\n}", "removed statement", "  ;"),
    ])
    def test_look_like_this(self, text, kind, line):
        changed = [fault.apply(text).split("\n") for fault in faults.find(text)
                   if fault.kind == kind]
        assert any(line in lines for lines in changed), changed

    def test_leave_declarations_and_log_lines(self):
        text = "void F() {\n  int x = G();\n  log_.Info(\"a\");\n  std::lock_guard lock(mutex_);\n}"
        assert not any(kind == "removed statement" for _, kind in kinds(text))
        constructor = "int x;\n\nA::A(int b) : b_(b) {\n  c_ = b;\n}\n"
        assert {line for line, kind in kinds(constructor) if kind == "removed statement"} == {4}


@pytest.fixture(name="toy", scope="module")
def fixture_toy(tmp_path_factory):
    """A source tree, built."""
    if shutil.which("ninja") is None:
        pytest.fail("ninja is not installed")
    root = tmp_path_factory.mktemp("toy")
    for name, text in {"toy/toy.cc": SOURCE, "toy/toy.h": HEADER, "toy/other.cc": OTHER,
                       "CMakeLists.txt": LISTS,
                       "tests/unit/toy/toy_test.cc": TEST,
                       "tests/unit/toy/CMakeLists.txt": "cachewarm_test(toy_test)"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    scratch = tmp_path_factory.mktemp("scratch")
    build = building.Build(root, root / "build", scratch)
    build.configure()
    build.make(["toy_test"], 1)
    return build


@pytest.fixture(name="outcomes", scope="module")
def fixture_outcomes(toy):
    """Fault → the program that noticed it, of every fault of the toy that compiles."""
    judge = mutate.Judge(toy)
    judge.measure("toy_test")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mutate, "ROOT", toy.root)
        patch.setattr(mutate, "equivalents", set)
        return {mutate.key_of(file, mutate.difference(text, fault)): noticed
                for file, text, fault, noticed in mutate.plant(judge, ["toy/toy.cc"], 100, 1)}


class TestOutcomes:
    def test_a_fault_that_a_test_covers_is_killed(self, outcomes):
        assert outcomes["toy/toy.cc: -if (width < 0) { | +if (!(width < 0)) {"] == "toy_test"
        assert outcomes["toy/toy.cc: -sizes.width = 0; | +;"] == "toy_test"

    def test_a_fault_that_no_test_covers_survives(self, outcomes):
        dropped = [noticed for key, noticed in outcomes.items()
                   if key.endswith("+Sizes sizes{.width = width, };")]
        assert dropped == [None]
        assert outcomes['toy/toy.cc: -Note("if (x == y)"); | +;'] is None

    def test_the_tree_and_its_build_stay_as_they_were(self, toy, outcomes):
        assert outcomes
        assert (toy.root / "toy/toy.cc").read_text() == SOURCE
        assert toy.test(toy.path_of("toy_test"), mutate.Judge.ENVIRONMENT, 60) is not None

    def test_a_source_without_a_fault_is_not_noticed(self, toy):
        judge = mutate.Judge(toy)
        assert judge.notices("toy/toy.cc", toy.compile("toy/toy.cc", SOURCE), ["toy_test"]) is None

    def test_what_is_listed_as_equivalent_is_not_planted(self, toy, tmp_path):
        listed = tmp_path / "equivalent.txt"
        listed.write_text("# a comment\ntoy/toy.cc: -a | +b  # nothing reads it\n")
        assert mutate.equivalents(listed) == {"toy/toy.cc: -a | +b"}
        assert rooms.programs(toy.root, "toy/toy.cc") == ["toy_test"]


class RecordedBuild:
    """Links everything, and every test passes."""
    scratch = Path("/scratch")

    def __init__(self):
        self.linked, self.ran = [], []

    def link(self, target, *_):
        self.linked.append(target)
        return self.scratch / target

    def path_of(self, target):
        return Path("/build") / target

    def test(self, program, environment, _):
        self.ran.append((str(program), environment.get("CACHEWARM_PROGRAMS")))
        return 1.0


def test_a_fault_in_a_main_is_judged_only_by_the_test_that_starts_the_program():
    build = RecordedBuild()
    judge = mutate.Judge(build)
    judge.times = {"agent_test": 1, "agent_program_test": 1}
    assert judge.notices("agent/main.cc", "fault.o", ["agent_test", "agent_program_test"]) is None
    assert build.linked == ["cachewarm-agent"]
    assert build.ran == [("/build/agent_program_test", "/scratch")]
