#!/usr/bin/env python3
"""sizes.py FILE…: lists C++ files of more than 500 lines, functions of more than 60 lines, and
comment lines of more than 100 columns. Skips files that contain the comment "Longer than the rule:"
followed by a reason. A comment line that contains a URL may be longer."""
import re
import sys

MAX_FILE, MAX_FUNCTION, MAX_COMMENT = 500, 60, 100
# Matches the text before the block of a namespace or type. Any other block directly inside such
# blocks is a function.
TYPE = re.compile(r"^\s*(?:template\b.*>\s*)?(?:inline\s+)?(?:namespace|class|struct|union|enum|extern)\b")
STRIP = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//.*')
RAW = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"')


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


def main():
    bad = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as source:
            text = source.read()
        if "Longer than the rule:" in text:
            continue
        lines = text.count("\n")
        if lines > MAX_FILE:
            print(f"{path}: {lines} lines, more than {MAX_FILE}")
            bad += 1
        for start, end in functions(text):
            if end - start + 1 > MAX_FUNCTION:
                print(f"{path}:{start}: a function of {end - start + 1} lines, more than {MAX_FUNCTION}")
                bad += 1
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > MAX_COMMENT and line.lstrip().startswith("//") and "://" not in line:
                print(f"{path}:{number}: a comment line of {len(line)} columns, more than {MAX_COMMENT}")
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
