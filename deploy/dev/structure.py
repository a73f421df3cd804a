#!/usr/bin/env python3
"""Measures the structure of the C++ sources and prints the table in docs/development.md.

  deploy/dev/structure.py            prints the table
  deploy/dev/structure.py --beyond   also lists the files beyond the limits of reach and chain

The include reach of a .cc file is the number of this tree's headers that it includes, directly or
indirectly, not counting its own header. Its include chain is the longest path of includes that
starts at it. Tests and test doubles count only in the ratio of test lines.
"""
import collections
import os
import re
import statistics
import subprocess
import sys

from sizes import functions

REACH, CHAIN = 45, 10
DOUBLE = re.compile(r"_test\.cc$|/doubles/|/(testing|contract|contract_watch|faults|test_\w+|fake_\w+|check)\.(h|cc)$")


def percentiles(values):
    values = sorted(values)
    return statistics.median(values), values[min(len(values) - 1, len(values) * 9 // 10)], values[-1]


def text_of(values):
    return " / ".join(f"{value:g}" for value in percentiles(values))


def includes_of(lines):
    return [m.group(1) for line in lines if (m := re.match(r'#include "((?:operator|runtime)/[^"]+)"', line))]


def reachable(file, graph, seen):
    for header in graph.get(file, []):
        if header not in seen:
            seen.add(header)
            reachable(header, graph, seen)
    return seen


def chain(file, graph, memo):
    if file not in memo:
        memo[file] = 0  # stops the recursion if includes have a cycle, which #pragma once would hide
        memo[file] = max((1 + chain(h, graph, memo) for h in graph.get(file, [])), default=0)
    return memo[file]


def folder_cycles(graph):
    """Returns the groups of folders that include each other, directly or indirectly."""
    edges = collections.defaultdict(set)
    for file, headers in graph.items():
        for header in headers:
            if os.path.dirname(file) != os.path.dirname(header):
                edges[os.path.dirname(file)].add(os.path.dirname(header))
    reach = {folder: reachable(folder, edges, set()) for folder in list(edges)}
    return sorted({tuple(sorted(b for b in reach[a] if a in reach.get(b, ()))) for a in reach if a in reach[a]})


def comment_lines(lines):
    """Returns the number of comment lines, and of lines with a comment after code."""
    whole = sum(1 for line in lines if line.lstrip().startswith("//"))
    trailing = sum(1 for line in lines if not line.lstrip().startswith("//") and re.search(r"\S.*\s//\s", line))
    return whole, trailing


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    os.chdir(root)
    tracked = subprocess.check_output(["git", "ls-files", "--cached", "--others", "--exclude-standard"], text=True).split("\n")
    tracked = [f for f in tracked if f and os.path.exists(f)]
    lines = {f: open(f, encoding="utf-8").read().split("\n")
             for f in tracked if re.match(r"(operator|runtime|tests)/.*\.(h|cc)$", f)}
    code = {f: t for f, t in lines.items() if not f.startswith("tests/") and not DOUBLE.search(f)}
    headers = {f: t for f, t in code.items() if f.endswith(".h")}
    sources = {f: t for f, t in code.items() if f.endswith(".cc")}
    graph = {f: includes_of(t) for f, t in code.items()}
    own = {f: f[:-3] + ".h" for f in sources}
    reach = {f: len(reachable(f, graph, set()) - {own[f]}) for f in sources}
    memo = {}
    chains = {f: chain(f, graph, memo) for f in sources}
    bodies = [length for f, t in code.items() for length in (end - start + 1 for start, end in functions("\n".join(t)))]
    folders = collections.Counter(os.path.dirname(f) for f in lines)
    tests = sum(len(t) for f, t in lines.items() if f not in code)
    scripts = sum(len(open(f, encoding="utf-8").read().split("\n")) for f in tracked
                  if re.match(r"tests/.*\.(py|sh|timeline|exp)$", f))
    shares = {}
    for kind, files in (("header", headers), ("source", sources)):
        counts = [comment_lines(t) for t in files.values()]
        total = sum(len(t) for t in files.values())
        shares[kind] = (100 * sum(w for w, _ in counts) / total, 100 * sum(w + b for w, b in counts) / total)
    wide = sum(1 for t in lines.values() for line in t if len(line) > 100 and line.lstrip().startswith("//") and "://" not in line)
    cycles = folder_cycles(graph)
    rows = [
        ("number of headers / sources / folders", f"{len(headers)} / {len(sources)} / {len({os.path.dirname(f) for f in code})}"),
        ("lines per header: median / 90th percentile / maximum", text_of([len(t) for t in headers.values()])),
        ("lines per source: median / 90th percentile / maximum", text_of([len(t) for t in sources.values()])),
        ("lines per function: median / 90th percentile / maximum", text_of(bodies)),
        ("most sources and headers in one folder, including tests", "{1} ({0})".format(*folders.most_common(1)[0])),
        ("include reach of a source: median / 90th percentile / maximum", text_of(list(reach.values()))),
        ("include chain of a source: median / 90th percentile / maximum", text_of(list(chains.values()))),
        ("cycles between folders", f"{len(cycles)}" + "".join(f"; {' ⇄ '.join(c)}" for c in cycles)),
        ("comment lines in headers / including comments after code", "{:.0f} % / {:.0f} %".format(*shares["header"])),
        ("comment lines in sources / including comments after code", "{:.0f} % / {:.0f} %".format(*shares["source"])),
        ("comment lines over 100 columns, without URLs", f"{wide}"),
        ("test lines per line of code: C++ only / with scripts, timelines and golden files",
         "{:.2f} / {:.2f}".format(tests / sum(len(t) for t in code.values()),
                                  (tests + scripts) / sum(len(t) for t in code.values()))),
    ]
    print("| measure | value |\n|---|---|")
    for row in rows:
        print("| {} | {} |".format(*row))
    if "--beyond" in sys.argv:
        for file in sorted(sources):
            if reach[file] > REACH or chains[file] > CHAIN:
                print(f"{file}: reach {reach[file]}, chain {chains[file]}")


if __name__ == "__main__":
    main()
