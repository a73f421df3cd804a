#!/usr/bin/env python3
"""Checks that every file to which the documentation links exists."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def broken(page):
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists():
            yield f"{page.relative_to(ROOT)}: links to {target}, which does not exist"


pages = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
problems = [problem for page in pages if (ROOT / page).exists() for problem in broken(ROOT / page)]
print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
sys.exit(bool(problems))
