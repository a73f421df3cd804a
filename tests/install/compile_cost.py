#!/usr/bin/env python3
"""compile_cost.py INCLUDE SOURCE: compares the cost of compiling a user's SOURCE with that of compiling the standard
headers that the library's headers include. Fails if SOURCE takes more than 2.5 times as much processor time, or more
than 200 MB of memory."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MAX_RATIO, MAX_MEGABYTES, RUNS = 2.5, 200, 3


def cost(include, source):
    """Compiles the source several times. Returns the shortest processor time in seconds, and the memory in MB."""
    seconds, megabytes = [], 0
    for _ in range(RUNS):
        compiler = subprocess.Popen(["g++", "-std=c++20", "-I", include, "-c", source, "-o", "/dev/null"])
        _, status, usage = os.wait4(compiler.pid, 0)
        if status != 0:
            sys.exit(f"compile_cost.py: {source} does not compile")
        seconds.append(usage.ru_utime + usage.ru_stime)
        megabytes = max(megabytes, usage.ru_maxrss / 1000)
    return min(seconds), megabytes


include, source = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    headers = set()
    for header in pathlib.Path(include, "tfjob").glob("*.h"):
        headers.update(re.findall(r"^#include (<[^>]+>)", header.read_text(encoding="utf-8"), re.M))
    headers.update(re.findall(r"^#include (<[^/>]+>)", pathlib.Path(source).read_text(encoding="utf-8"), re.M))
    standard = pathlib.Path(folder, "standard.cc")
    standard.write_text("".join(f"#include {header}\n" for header in sorted(headers)) + "int main() {}\n", encoding="utf-8")
    standard_seconds, _ = cost(include, str(standard))
    seconds, megabytes = cost(include, source)
ratio = seconds / standard_seconds
print(f"compiling {os.path.basename(source)} takes {seconds:.2f} s, {ratio:.2f} times the standard headers "
      f"({standard_seconds:.2f} s), and {megabytes:.0f} MB")
sys.exit(ratio > MAX_RATIO or megabytes > MAX_MEGABYTES)
