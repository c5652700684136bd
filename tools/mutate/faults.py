# SPDX-License-Identifier: Apache-2.0
"""Small faults in C++ text: each changes one place of one file, as a hurried edit might.

find(text) lists the faults of a file in the order of their places. Comments and strings are never
changed. A fault may fail to compile.
"""
import re
from dataclasses import dataclass

OPENING = {"(": ")", "[": "]", "{": "}"}
SWAPS = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ",
         " != ": " == ", " && ": " || ", " || ": " && ", " + ": " - ", " - ": " + "}
WORDS = {"true": "false", "false": "true", "begin": "end", "min": "max", "max": "min",
         "any_of": "none_of", "all_of": "any_of", "none_of": "any_of"}
# A statement that is no call and no assignment, or that declares something.
KEPT = re.compile(r"^(return|using|namespace|template|class|struct|enum|public|private|protected|"
                  r"case|default|if|else|for|while|do|switch|break|continue|goto|throw|try|catch|"
                  r"static|constexpr|inline|extern|friend|typedef|virtual|explicit|CW_ASSIGN|"
                  r"const|auto|delete|new)\b|^[#}{]")
CALL = re.compile(r"^(?:\*?[\w:]+(?:<[\w:, ]+>)?(?:(?:\.|->)\w+|\([^()]*\)|\[[^\[\]]*\])*)"
                  r"(?:\(|(?:\s*(?:[-+|&]?=)\s)|\+\+|--)|^(?:\+\+|--)\w")
# Log text is not behaviour.
LOG = re.compile(r"^[\w.>-]*\blog_?(?:\.|->)\w+\(")
DECLARATION = re.compile(r"^(?:[\w:]+(?:<.*>)?[&*]?\s+)+[&*]?\w+(?:\{|\(|;| =)")


@dataclass(frozen=True)
class Fault:
    kind: str
    begin: int  # of the text that is replaced
    end: int
    new: str

    def apply(self, text):
        return text[:self.begin] + self.new + text[self.end:]

    def line(self, text):
        return text.count("\n", 0, self.begin) + 1


def blank(text):
    """The text with comments, strings and preprocessor lines as blanks, of the same length."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
                         r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*",
                         re.S | re.M)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def closing(code, at):
    """The place of the bracket that closes the one at `at`; -1 when none does."""
    wanted = [OPENING[code[at]]]
    for i in range(at + 1, len(code)):
        if code[i] in OPENING:
            wanted.append(OPENING[code[i]])
        elif code[i] == wanted[-1]:
            wanted.pop()
            if not wanted:
                return i
        elif code[i] in ")]}":
            return -1
    return -1


def parts(code, begin, end, separator=","):
    """Places of the pieces of code[begin:end] between separators that no bracket holds."""
    depth, start, out = 0, begin, []
    for i in range(begin, end):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if code[i] == separator and depth == 0:
            out.append((start, i))
            start = i + 1
    return out + [(start, end)]


def trimmed(code, begin, end):
    piece = code[begin:end]
    left = len(piece) - len(piece.lstrip())
    return begin + left, begin + len(piece.rstrip())


def conditions(text, code):
    """if (X) becomes if (!(X)); a condition that declares is left."""
    for found in re.finditer(r"\bif \(", code):
        begin, end = found.end(), closing(code, found.end() - 1)
        if end < 0:
            continue
        begin, end = trimmed(code, *parts(code, begin, end, ";")[-1])
        if not re.match(r"(?:const )?(?:auto|[\w:]+(?:<.*>)?)[ *&]+\w+ = ", code[begin:end]):
            yield Fault("negated condition", begin, end, f"!({text[begin:end]})")


def swaps(text, code):
    del text
    for old, new in SWAPS.items():
        for found in re.finditer(re.escape(old), code):
            yield Fault("swapped operator", found.start(), found.end(), new)
    for old, new in WORDS.items():
        for found in re.finditer(rf"(?<![\w.]){old}\b|(?<=std::){old}\b", code):
            yield Fault("swapped constant", found.start(), found.end(), new)


def numbers(text, code):
    del text
    for found in re.finditer(r"(?<![\w.'<\[])(\d[\d']*)(?![\w.'\]>])", code):
        value = int(found.group().replace("'", ""), 8 if re.match(r"0\d", found.group()) else 10)
        yield Fault("swapped constant", found.start(), found.end(),
                    "1" if value == 0 else "0" if value == 1 else str(value + 1))


def statements(text, code):
    """A call or an assignment that is a statement of its own is taken out."""
    del text
    for found in re.finditer(r"(?<=[;{}:])\s*\n\s*(?=\S)", code):
        begin = found.end()
        rest = code[begin:]
        if any(each.match(rest) for each in (KEPT, LOG, DECLARATION)) or not CALL.match(rest):
            continue
        if code[begin - 1] == "\n":
            continue  # not indented: the definition of a constructor
        end, depth = begin, 0
        while end < len(code) and not (code[end] == ";" and depth == 0) and depth >= 0:
            depth += (code[end] in "([{") - (code[end] in ")]}")
            end += 1
        if end < len(code) and code[end] == ";" and depth == 0:
            yield Fault("removed statement", begin, end + 1, ";")


def initialisers(text, code):
    """.member = value is left out."""
    for found in re.finditer(r"(?<=[{,])\s*(\.\w+ = )", code):
        begin = found.start(1)
        end, depth = found.end(), 0
        while end < len(code) and not (depth == 0 and code[end] in ",}"):
            depth += (code[end] in "([{") - (code[end] in ")]}")
            end += 1
        following = end + 1 if code[end:end + 1] == "," else end
        yield Fault("dropped initialiser", begin, following, "")


def arguments(text, code):
    """The first two arguments of a call change places."""
    for found in re.finditer(r"\w\(", code):
        at = found.end() - 1
        end = closing(code, at)
        if end < 0 or code[end + 1:end + 3] == " {":  # a definition
            continue
        pieces = [trimmed(code, *piece) for piece in parts(code, at + 1, end)]
        names = [text[b:e] for b, e in pieces]
        if len(pieces) < 2 or names[0] == names[1] or \
                any(not re.fullmatch(r"[\w.:>*&\[\]()-]+", name) for name in names[:2]):
            continue
        (first, _), (_, last) = pieces[0], pieces[1]
        between = text[pieces[0][1]:pieces[1][0]]
        yield Fault("swapped arguments", first, last, names[1] + between + names[0])


def returns(text, code):
    """return X becomes return {}."""
    for found in re.finditer(r"\breturn ([^;{}]+);", code):
        if text[found.start(1):found.end(1)].strip() not in ("true", "false", "0", "nullptr",
                                                           "std::nullopt"):
            yield Fault("emptied result", found.start(1), found.end(1), "{}")


def find(text):
    code = blank(text)
    all_of = (conditions, swaps, numbers, statements, initialisers, arguments, returns)
    faults = [fault for each in all_of for fault in each(text, code)]
    return sorted(faults, key=lambda fault: (fault.begin, fault.end, fault.kind, fault.new))
