#!/usr/bin/env python3
"""api_examples.py: checks that every class and function of the C++ API has an example that a test runs.

The examples are parts of the tests in tests/api/examples. A line names the declarations (api_declarations.py) that an
example shows, and more such lines may follow it:

    // [Session::Compile, CompileOptions]
    CompiledModel trained = session.Compile(model, options).value();
    // [end]

Each declaration has exactly one example, and the example contains its name. api_reference.sh puts the examples into
the reference."""
import glob
import re
import subprocess
import sys
import textwrap

from api_declarations import declarations

NAMES = re.compile(r"^\s*// \[((?!end\])[^\]]+)\]$")
END = re.compile(r"^\s*// \[end\]$")
EXAMPLES = "tests/api/examples/*_examples.cc"


def headers():
    """Lists the headers of the API: tfjob.h includes all of them."""
    rule = subprocess.run(["g++", "-std=c++20", "-MM", "runtime/api/tfjob.h"], check=True, capture_output=True, text=True)
    return sorted({path for path in rule.stdout.replace("\\", " ").split() if path.endswith(".h")})


def read_examples(path, problems):
    """Yields the names that each example in a file shows, and its text."""
    names, lines = None, []
    with open(path, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            marker = NAMES.match(line)
            if marker and (names is None or not lines):
                names = (names or []) + marker[1].split(", ")
            elif marker:
                problems.append(f"{path}:{number}: an example begins before the last one has ended with // [end]")
            elif END.match(line) and names:
                yield names, textwrap.dedent("".join(lines))
                names, lines = None, []
            elif names is not None:
                lines.append(line)
    if names is not None:
        problems.append(f"{path}: the last example does not end with // [end]")


def shows(text, name):
    """Returns whether the text uses the declaration with this name."""
    last = name.split("::")[-1]
    if last.startswith("operator"):
        return f" {last[len('operator'):]} " in text
    return re.search(rf"\b{last}\b", text) is not None


def examples(problems):
    """Returns the text of the example of each declaration."""
    found = {}
    for path in sorted(glob.glob(EXAMPLES)):
        for names, text in read_examples(path, problems):
            for name in names:
                if name in found:
                    problems.append(f"{path}: {name} has two examples; remove one")
                if not shows(text, name):
                    problems.append(f"{path}: the example of {name} does not use it")
                found[name] = text
    return found


def main():
    problems = []
    declared = {name: path for path in headers() for name in declarations(path)}
    found = examples(problems)
    problems += [f"{path}: {name} has no example; add one to {EXAMPLES}" for name, path in declared.items()
                 if name not in found]
    problems += [f"{EXAMPLES}: there is an example of {name}, but no header declares it" for name in found
                 if name not in declared]
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems or not declared else 0


if __name__ == "__main__":
    sys.exit(main())
