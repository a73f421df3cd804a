#!/usr/bin/env python3
"""sizes.py FILE…: lists C++ files of more than 500 lines, functions of more than 60 lines, comment
lines of more than 100 columns, and folders with more than 60 of the given C++ files. Skips files that contain the comment "Longer than the rule:"
followed by a reason. A comment line that contains a URL may be longer.

In Markdown files (*.md), lists lines of more than 120 columns. A row of a table, a line of a code
block, and a line that consists of one link or one word may be longer. Skips generated pages, which
contain a comment that begins with "Made from"."""
import collections
import os
import re
import sys

MAX_FILE, MAX_FUNCTION, MAX_COMMENT, MAX_MARKDOWN, MAX_FOLDER = 500, 60, 100, 120, 60
# Matches the text before the block of a namespace or type. Any other block directly inside such
# blocks is a function.
TYPE = re.compile(r"^\s*(?:template\b.*>\s*)?(?:inline\s+)?(?:namespace|class|struct|union|enum|extern)\b")
STRIP = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//.*')
RAW = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"')
# Matches a Markdown line that cannot be wrapped: a row of a table, or one link or word.
UNBREAKABLE = re.compile(r"\s*(\||([-*] |\d+\. )?(\[[^]]*\]\([^)\s]*\)\S*|\S+)\s*$)")
FENCE = re.compile(r"\s*(```|~~~)")


def functions(text):
    """Yields (first line, last line) of each function. Parses only braces, not C++; this is enough
    for formatted code."""
    text = RAW.sub(lambda match: '""' + "\n" * match.group(0).count("\n"), text)
    stack = []  # per open block: (whether it is a type or namespace, first line of its statement)
    statement = None
    statement_line = 0
    for number, line in enumerate(text.split("\n"), 1):
        code = STRIP.sub(lambda match: "" if match.group(0).startswith("//") else '""', line)
        if code.lstrip().startswith("#"):
            continue
        for char in code:
            if statement is None and not char.isspace():
                statement, statement_line = "", number
            if char == "{":
                stack.append((bool(TYPE.match(statement or "")), statement_line))
                statement = None
            elif char == "}":
                if stack:
                    is_type, start = stack.pop()
                    outer_are_types = all(outer for outer, _ in stack)
                    if not is_type and outer_are_types:
                        yield start, number
                statement = None
            elif char == ";":
                statement = None
            elif statement is not None:
                statement += char


def code_problems(text):
    """Yields (line, problem) pairs of a C++ file."""
    if "Longer than the rule:" in text:
        return
    lines = text.count("\n")
    if lines > MAX_FILE:
        yield 1, f"{lines} lines, more than {MAX_FILE}"
    for start, end in functions(text):
        if end - start + 1 > MAX_FUNCTION:
            yield start, f"a function of {end - start + 1} lines, more than {MAX_FUNCTION}"
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_COMMENT and line.lstrip().startswith("//") and "://" not in line:
            yield number, f"a comment line of {len(line)} columns, more than {MAX_COMMENT}"


def markdown_problems(text):
    """Yields (line, problem) pairs of a Markdown file."""
    if "<!-- Made from " in text:
        return
    in_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if FENCE.match(line):
            in_code = not in_code
        elif not in_code and len(line) > MAX_MARKDOWN and not UNBREAKABLE.match(line):
            yield number, f"a line of {len(line)} columns, more than {MAX_MARKDOWN}"


def main():
    bad = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as source:
            text = source.read()
        find = markdown_problems if path.endswith(".md") else code_problems
        for number, problem in find(text):
            print(f"{path}:{number}: {problem}")
            bad += 1
    folders = collections.Counter(os.path.dirname(path) for path in sys.argv[1:] if not path.endswith(".md"))
    for folder, count in folders.items():
        if count > MAX_FOLDER:
            print(f"{folder}: {count} files, more than {MAX_FOLDER}: divide the package")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
