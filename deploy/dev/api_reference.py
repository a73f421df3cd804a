#!/usr/bin/env python3
"""api_reference.py HEADER: prints a header of the C++ API for Doxygen, with its comments as documentation. The comment
at the beginning of a file describes the file. A comment after code belongs to that code, and so do the comments below
it that begin in the same column. Any other comment belongs to the code that follows it. Each declaration also gets
its example (api_examples.py)."""
import re
import sys

from api_declarations import declarations
from api_examples import examples

ABOVE = re.compile(r"^\s*// ?(.*)$")
AFTER = re.compile(r"^(.*\S)(\s+)// ?(.*)$")
TOOLS = re.compile(r"\s*// NOLINT.*$")
EXAMPLE = re.compile(r"^  ")


def lines_for_doxygen(text, examples_of_lines):
    column = None  # the column of a comment after code that the next line may continue
    in_example = False
    yield "/// @file"
    for number, line in enumerate(text.splitlines()):
        line = TOOLS.sub("", line)
        comment = ABOVE.match(line)
        after = None if comment else AFTER.match(line)
        is_example = bool(comment and column is None and EXAMPLE.match(comment[1]))
        if in_example and not is_example:
            yield "/// @endcode"
        if is_example and not in_example:
            yield "/// @code{.cpp}"
        in_example = is_example
        if number in examples_of_lines:
            yield from example_lines(examples_of_lines[number])
        if comment and column == line.index("//"):
            yield " " * column + "///< " + escape(comment[1])
        elif comment:
            column = None
            yield line[:line.index("//")] + "/// " + (comment[1] if is_example else escape(comment[1]))
        elif after:
            column = len(after[1] + after[2])
            yield after[1] + after[2] + "///< " + escape(after[3])
        else:
            column = None
            yield line


def example_lines(text):
    yield "/// @par Example"
    yield "/// @code{.cpp}"
    for line in text.splitlines():
        yield "/// " + line
    yield "/// @endcode"


def escape(comment):
    """Escapes the characters of a comment that Doxygen would take for commands, HTML or references. Code between
    backquotes stays unchanged."""
    parts = comment.split("`")
    parts[::2] = [re.sub(r"([<>#@\\&])", r"\\\1", part).replace("::", "\\::") for part in parts[::2]]
    return "`".join(parts)


if __name__ == "__main__":
    all_examples = examples([])
    chosen = {line: all_examples[name] for name, line in declarations(sys.argv[1]).items() if name in all_examples}
    with open(sys.argv[1], encoding="utf-8") as header:
        print("\n".join(lines_for_doxygen(header.read(), chosen)))
