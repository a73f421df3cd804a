#!/usr/bin/env python3
"""bazel_test.py RESULTS BAZEL-ARGUMENT…: runs `bazel test` and appends one line a test target to the file RESULTS:
"<cases passed> <cases failed> <target> <configuration>", counted from the target's test.xml. Exit status: Bazel's."""
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

STATUS_LINE = re.compile(r"^(//\S+)\s+(?:\(cached\) )?(PASSED|FAILED|TIMEOUT|FLAKY|NO STATUS|FAILED TO BUILD)\b")


def count(testlogs, target, passed):
    """Cases passed and failed of one target; a target without readable cases is one case."""
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


def main():
    results, arguments = sys.argv[1], sys.argv[2:]
    process = subprocess.Popen(["bazel", "test", "--keep_going", *arguments], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    statuses = {}
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        match = STATUS_LINE.match(line)
        if match:
            statuses[match.group(1)] = match.group(2)
    code = process.wait()
    config = [a for a in arguments if a.startswith("--config=")]
    testlogs = subprocess.check_output(["bazel", "info", *config, "bazel-testlogs"], text=True,
                                       stderr=subprocess.DEVNULL).strip()
    with open(results, "a", encoding="utf-8") as out:
        for target, status in sorted(statuses.items()):
            passed, failed = count(testlogs, target, status in ("PASSED", "FLAKY"))
            out.write(f"{passed} {failed} {target} {' '.join(config)}\n")
    if code == 4:  # no test in the pattern
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main())
