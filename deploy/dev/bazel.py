#!/usr/bin/env python3
"""Runs Bazel and reports its progress, even if the output is not a terminal.

  deploy/dev/bazel.py build ARGUMENT…
  deploy/dev/bazel.py test RESULTS ARGUMENT…
  deploy/dev/bazel.py measure ARGUMENT…

Every 10 s, prints how many actions (compilations, links, tests) are done and how many are left, and
estimates the remaining time. The exit status is Bazel's.

`test` also appends to three files. RESULTS gets one line per test target, "<cases passed> <cases
failed> <target> <configuration>"; the cases are counted in the target's test.xml. RESULTS.times
gets one line per compilation, link and test, "<seconds> <action> <configuration>". RESULTS.failures
gets the status of each failed test, and the end of its output.

`measure` builds in a new output folder, without caches, and prints how many seconds each package
and the slowest actions took.
"""
import collections
import glob
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree

INTERVAL = 10  # seconds
PROGRESS = re.compile(r"^\[([\d,]+) / ([\d,]+)\]")
# Matches the actions that take time in the output of aquery.
WORK = re.compile(r"^  Mnemonic: (?:CppCompile|Genrule|CcStrip|TestRunner)$", re.M)
# Matches a line of the summary that Bazel prints after the last test.
STATUS = re.compile(r"^(//\S+)\s+(?:\(cached\) )?(PASSED|FAILED|TIMEOUT|FLAKY|NO STATUS|FAILED TO BUILD)\b")


def duration(seconds):
    minutes, seconds = divmod(int(round(seconds)), 60)
    return f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"


def count_actions(arguments, startup):
    """Returns the largest number of compilations, generated files and tests that the targets may
    need, or 0 if Bazel does not report it. Bazel discovers actions while it works, so the total that it
    prints is far too low at first."""
    targets = [a for a in arguments if not a.startswith("-")]
    flags = [a for a in arguments if a.startswith(("--config=", "--define="))]
    found = subprocess.run(["bazel", *startup, "aquery", *flags, "--output=text", f"deps(set({' '.join(targets)}))"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return len(WORK.findall(found.stdout))


class Progress:
    """Counts the actions that are done, and the total: the number that Bazel has found so far, but
    at least `expected`."""

    def __init__(self, what, now, expected):
        self.what, self.start, self.shown = what, now, now
        self.done, self.known = 0, expected
        self.first = None  # (time, number of actions done) at Bazel's first progress line

    def read(self, line, now):
        """Reads one of Bazel's own progress lines. Returns False for any other line."""
        match = PROGRESS.match(line)
        if not match:
            return False
        self.done, known = (int(number.replace(",", "")) for number in match.groups())
        self.known = max(self.known, known)
        if self.first is None:
            self.first = (now, self.done)
        return True

    def line(self, now):
        """Returns the line to print, or None if the last one was printed less than INTERVAL ago."""
        if now - self.shown < INTERVAL:
            return None
        self.shown = now
        if self.first is None:
            return f"    {self.what}: reading BUILD files, {duration(now - self.start)}"
        left = max(self.known - self.done, 0)
        text = f"    {self.what}: {self.done} done, {left} left, {duration(now - self.start)}"
        began, done_before = self.first
        if self.done > done_before and left:
            text += f", about {duration((now - began) * left / (self.done - done_before))} to go"
        return text


def run(command, arguments, what, startup=()):
    """Runs Bazel and prints its output and progress. Returns its exit status and {test target:
    status}."""
    expected = count_actions(arguments, startup)
    flags = ["--show_progress", "--show_progress_rate_limit=1", "--curses=no", "--color=no"]
    process = subprocess.Popen(["bazel", *startup, command, *flags, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace")
    lines = queue.Queue()

    def forward():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=forward, daemon=True).start()
    progress, statuses = Progress(what, time.monotonic(), expected), {}
    while True:
        try:
            line = lines.get(timeout=1)
        except queue.Empty:
            line = ""
        if line is None:
            return process.wait(), statuses
        if line and not progress.read(line, time.monotonic()):
            sys.stdout.write(line)
            match = STATUS.match(line)
            if match:
                statuses[match.group(1)] = match.group(2)
        report = progress.line(time.monotonic())
        if report:
            print(report)
        sys.stdout.flush()


def count(testlogs, target, passed):
    """Returns how many cases of a target passed and failed. A target without a readable test.xml
    counts as one case."""
    path = f"{testlogs}/{target[2:].replace(':', '/')}/test.xml"
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return (1, 0) if passed else (0, 1)
    cases = [case for case in root.iter("testcase") if case.find("skipped") is None]
    failed = sum(1 for case in cases if case.find("failure") is not None or case.find("error") is not None)
    if not passed:
        return max(len(cases) - failed, 0), max(failed, 1)
    return max(len(cases), 1), 0


def end_of_output(testlogs, target):
    """Returns the last lines of a failed test's output: those of one shard or run."""
    end = "it did not run\n"
    for path in sorted(glob.glob(f"{testlogs}/{target[2:].replace(':', '/')}/**/test.log", recursive=True)):
        with open(path, encoding="utf-8", errors="replace") as log:
            lines = log.readlines()
        end = "".join(lines[-40:])
        if any("FAIL" in line or "ERROR" in line for line in lines):
            break
    return end


def action_times(profile):
    """Returns (seconds, action) for each compilation, link and test in a profile that Bazel has
    written. Examples of actions are "Compiling x.cc", "Linking x" and "Testing //x:y"."""
    try:
        with open(profile, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    except (OSError, ValueError, KeyError):
        return []
    return [(event["dur"] / 1e6, event["name"]) for event in events
            if event.get("cat") == "action processing" and event["name"].startswith(("Compiling", "Linking", "Testing"))]


def test(results, arguments):
    with tempfile.NamedTemporaryFile(suffix=".profile") as profile:
        code, statuses = run("test", ["--keep_going", f"--profile={profile.name}", *arguments], "build and tests")
        times = action_times(profile.name)
    config = [a for a in arguments if a.startswith(("--config=", "--define="))]
    testlogs = subprocess.check_output(["bazel", "info", *config, "bazel-testlogs"], text=True,
                                       stderr=subprocess.DEVNULL).strip()
    with open(results, "a", encoding="utf-8") as out:
        for target, status in sorted(statuses.items()):
            passed, failed = count(testlogs, target, status in ("PASSED", "FLAKY"))
            out.write(f"{passed} {failed} {target} {' '.join(config)}\n")
    with open(results + ".failures", "a", encoding="utf-8") as out:
        for target, status in sorted(statuses.items()):
            if status in ("FAILED", "TIMEOUT"):
                out.write(f"{target} {' '.join(config)}: {status}\n{end_of_output(testlogs, target)}")
            elif status not in ("PASSED", "FLAKY"):
                out.write(f"{target} {' '.join(config)}: {status}\n")
    with open(results + ".times", "a", encoding="utf-8") as out:
        for seconds, action in times:
            out.write(f"{seconds:.1f} {action} {' '.join(config)}\n")
    return 0 if code == 4 else code  # 4: the pattern matches no test


def measure(arguments):
    with tempfile.TemporaryDirectory() as folder:
        startup, profile = [f"--output_base={folder}/base"], f"{folder}/profile"
        start = time.monotonic()
        code, _ = run("build", ["--disk_cache=", f"--profile={profile}", *arguments], "build", startup)
        wall = time.monotonic() - start
        times = sorted(action_times(profile), reverse=True)
        subprocess.call(["bazel", *startup, "shutdown"])
        subprocess.call(["chmod", "-R", "u+w", folder])
    packages = collections.Counter()
    for seconds, action in times:
        if action.startswith("Compiling"):
            packages[os.path.dirname(action.split()[1])] += seconds
    print(f"{wall:.0f} s; actions together {sum(seconds for seconds, _ in times):.0f} s")
    for name, seconds in packages.most_common():
        print(f"{seconds:7.1f} s  {name}")
    print("The slowest actions:")
    for seconds, action in times[:20]:
        print(f"{seconds:7.1f} s  {action}")
    return code


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "build":
        return run("build", sys.argv[2:], "build")[0]
    if len(sys.argv) > 3 and sys.argv[1] == "test":
        return test(sys.argv[2], sys.argv[3:])
    if len(sys.argv) > 2 and sys.argv[1] == "measure":
        return measure(sys.argv[2:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
