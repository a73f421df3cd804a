#!/usr/bin/env python3
"""Checks the dependencies between rooms. Compares the table in docs/architecture.md with the
includes in the sources, and with the visibility lists in the rooms' BUILD files. Bazel rejects
dependencies that these lists do not allow. Also checks that rooms that tests/simulation/training
simulates use the threads, locks, waits and clocks of runtime/base, and that no room above
runtime/exec includes a header for a specific device.

  tests/contract/rooms.py            reports each difference
  tests/contract/rooms.py --update   first copies the table into the BUILD files
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = "runtime/base"  # every room may include it
TABLE = re.compile(r"^\| room \| includes \| its tests also \|\n\|[-|]+\n((?:\|.*\n)+)", re.M)
INCLUDE = re.compile(r'^#include "((?:operator|runtime)/[^"]+)"', re.M)
# If a package's targets are private by default, its visibility list is called VISIBLE, and some of
# its targets use that list.
VISIBILITY = re.compile(r'^(VISIBLE = |package\(default_visibility = (?!\["//visibility:private"\]))\[([^\]]*)\]', re.M)
TESTS = "//tests:__subpackages__"
OF_TESTS = re.compile(r"_test\.cc$|/testing\.(h|cc)$|/test_\w+\.(h|cc)$|/contract\w*\.(h|cc)$|^operator/kube/doubles/")

# The code that tests/simulation/training runs on a simulated machine, and the system functions that this code must not
# call because the simulation cannot control them.
SIMULATED = ("runtime/ps/", "runtime/rpc/")
OF_THE_SYSTEM = re.compile(
    r"std::(thread|jthread|this_thread|mutex|recursive_mutex|shared_mutex|condition_variable|async|future|promise"
    r"|counting_semaphore|binary_semaphore|latch|barrier)\b"
    r"|\b(steady_clock|system_clock|high_resolution_clock)::now\b|\b(sleep_for|sleep_until|usleep|nanosleep)\b")
DOUBLES = {"runtime/ps/client/scripted_server.h", "runtime/ps/slow_connector.h"}  # for tests with real threads

# Headers that are specific to one device, and the highest room that may include them.
OF_A_DEVICE = re.compile(r"^runtime/(kernels/|device/(cpu|fake)_|exec/fake_device)")
EXEC = "runtime/exec"
SELF_TEST = "runtime/selftest"  # tests kernels, so it may include their headers


def rooms():
    return sorted((str(path.parent.relative_to(ROOT)) for tree in ("operator", "runtime")
                   for path in (ROOT / tree).rglob("BUILD")), key=len, reverse=True)


def read_table():
    """Returns {room: (rooms that it includes, other rooms that its tests include)}."""
    found = TABLE.search((ROOT / "docs/architecture.md").read_text())
    if not found:
        sys.exit("docs/architecture.md: expected a table with the columns room, includes, its tests also; found none")
    rows, table = found.group(1), {}
    for row in rows.splitlines():
        room, *lists = [cell.strip() for cell in row.strip("|").split("|")]
        table[room] = tuple(set() if cell == "–" else set(cell.split(", ")) for cell in lists)
    return table


def read_sources(names):
    """Returns a result like that of read_table(), but from the includes in the sources."""
    def room_of(path):
        return next((name for name in names if path.startswith(name + "/")), None)

    found = collections.defaultdict(lambda: (set(), set()))
    tracked = subprocess.check_output(["git", "ls-files", "--cached", "--others", "--exclude-standard", "operator", "runtime"],
                                      cwd=ROOT, text=True)
    for path in tracked.split():
        if not path.endswith((".h", ".cc")) or not (ROOT / path).exists():
            continue
        for include in INCLUDE.findall((ROOT / path).read_text()):
            if (other := room_of(include)) not in (None, BASE, room_of(path)):
                found[room_of(path)][bool(OF_TESTS.search(path))].add(other)
    return {name: (found[name][0], found[name][1] - found[name][0]) for name in names if name != BASE}


def uses_of_the_system():
    """Yields each use of the system's threads, locks, waits or clocks in a room that is simulated."""
    tracked = subprocess.check_output(["git", "ls-files", "--cached", "--others", "--exclude-standard", *SIMULATED],
                                      cwd=ROOT, text=True)
    for path in tracked.split():
        if not path.endswith((".h", ".cc")) or not (ROOT / path).exists() or OF_TESTS.search(path) or path in DOUBLES:
            continue
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            if found := OF_THE_SYSTEM.search(line.partition("//")[0]):
                yield f"{path}:{number}: {found.group()}: use Thread, Mutex, CondVar, SteadyNow or RealClock of runtime/base"


def uses_of_a_device(table):
    """Yields each include of a kernel's or a device's header in a room that depends on runtime/exec."""
    above, before = {EXEC}, set()
    while above != before:
        before = set(above)
        above |= {room for room, (includes, _) in table.items() if includes & above}
    tracked = subprocess.check_output(["git", "ls-files", "--cached", "--others", "--exclude-standard", *sorted(above - {EXEC, SELF_TEST})],
                                      cwd=ROOT, text=True)
    for path in tracked.split():
        if not path.endswith((".h", ".cc")) or not (ROOT / path).exists() or OF_TESTS.search(path):
            continue
        for include in INCLUDE.findall((ROOT / path).read_text()):
            if OF_A_DEVICE.match(include):
                yield f"{path}: includes {include}: above {EXEC}, code must not know the device; use exec/device.h"


def users(table, room):
    """Returns the labels of the packages that may include this room according to the table. If
    there are none, returns the label of the room in the parent folder."""
    found = {other for other, (includes, tests) in table.items() if room in includes | tests}
    return {f"//{other}:__pkg__" for other in found or {room.rpartition("/")[0]} & table.keys()}


def update(table, room):
    build = ROOT / room / "BUILD"
    text = build.read_text()
    if not VISIBILITY.search(text):
        sys.exit(f"{room}/BUILD: expected a list of visible packages, in package(default_visibility) or VISIBLE; found none")
    labels = sorted(users(table, room))
    if room.rpartition("/")[0] not in table or TESTS in VISIBILITY.search(text).group(2):
        labels.append(TESTS)
    lines = "".join(f'    "{label}",\n' for label in labels)
    build.write_text(VISIBILITY.sub(lambda match: f"{match.group(1)}[\n{lines}]", text, count=1))


def differences(table, names):
    sources = read_sources(names)
    for room in sorted(sources.keys() | table.keys()):
        if room not in table or room not in sources:
            yield f"{room}: {'there is no such room' if room not in sources else 'has no row'}"
            continue
        for what, declared, real in zip(("", "tests: "), table[room], sources[room]):
            for other in sorted(real - declared):
                yield f"{room}: {what}includes {other}, which its row does not list"
            for other in sorted(declared - real):
                yield f"{room}: {what}does not include {other}, which its row lists"
        granted = VISIBILITY.search((ROOT / room / "BUILD").read_text())
        labels = set(re.findall(r'"([^"]+)"', granted.group(2))) - {TESTS} if granted else set()
        if labels != users(table, room):
            yield f"{room}/BUILD: is visible to other packages than the table says; tests/contract/rooms.py --update copies it"


def main():
    table, names = read_table(), rooms()
    if sys.argv[1:] == ["--update"]:
        for room in table:
            update(table, room)
    elif sys.argv[1:]:
        sys.exit(__doc__)
    found = list(differences(table, names))
    for line in found:
        print(f"docs/architecture.md, Directions: {line}", file=sys.stderr)
    uses = list(uses_of_the_system()) + list(uses_of_a_device(table))
    for line in uses:
        print(line, file=sys.stderr)
    sys.exit(bool(found or uses))


if __name__ == "__main__":
    main()
