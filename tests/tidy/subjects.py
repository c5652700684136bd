# SPDX-License-Identifier: Apache-2.0
"""Checks the subjects of commits: "room: verb the object", imperative, at most 72 characters."""
import re
import subprocess

# The rule holds for every commit after this one.
SINCE = "a332c8c1"
COLUMNS = 72
SUBJECT = re.compile(r"^(?P<room>[A-Za-z0-9_.*/{}, -]+): (?P<verb>[A-Za-z'-]+)\b")
# Words that begin a subject which is not an instruction: articles, pronouns, quantities, questions.
NOT_A_VERB = set("""a an the this that these those it its they there here what who whom whose which
    when where why how if no not none one two all each every some any many more most of in on at by
    for from with without after before and or but as is are was were be been has have
    had""".split())
# Imperatives that end like another form of a verb.
IMPERATIVES = set("""address bless bring compress cross discuss embed exceed express feed focus
    guess need pass press process proceed seed shed speed spring string stress suppress""".split())


def problem_of(subject: str) -> str:
    """Returns what is wrong with the subject, or "" where nothing is."""
    if len(subject) > COLUMNS:
        return f"{len(subject)} characters, at most {COLUMNS}"
    match = SUBJECT.match(subject)
    if not match:
        return 'expected "room: do one thing"'
    verb = match.group("verb").lower()
    if verb in NOT_A_VERB:
        return f'begins with "{verb}", expected an imperative verb'
    if verb not in IMPERATIVES and re.search(r"(ed|ing|[^su]s)$", verb):
        return f'"{verb}" is not an imperative: write what the commit does as an instruction'
    return ""


def check(root):
    """Yields a line per subject that breaks the rule. Merges keep the subject of git."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=root, text=True, capture_output=True)
    known = git("merge-base", "--is-ancestor", SINCE, "HEAD").returncode == 0
    commits = f"{SINCE}..HEAD" if known else "HEAD^!"
    for line in git("log", "--no-merges", "--format=%h %s", commits).stdout.splitlines():
        commit, _, subject = line.partition(" ")
        problem = problem_of(subject)
        if problem:
            yield f"commit {commit} ({subject}): {problem}"
