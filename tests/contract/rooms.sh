#!/usr/bin/env bash
# Checks the boundaries of the packages. rooms.py compares the table in docs/architecture.md with
# the sources and the visibility lists. Bazel then checks that nothing in runtime/ depends on
# operator/, and that operator/ depends only on runtime/base, runtime/cluster, runtime/wire and runtime/progress
# in runtime/.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

query() { bazel query --noshow_progress --output=label "$1" 2>/dev/null; }

fail=0
tests/contract/rooms.py || fail=1
expect_empty() {
  local what=$1 found
  if ! found=$(query "$2"); then
    echo "$what: the query failed: $2" >&2
    bazel query --noshow_progress "$2" 2>&1 | tail -3 >&2
    fail=1
  elif [ -n "$found" ]; then
    printf '%s:\n%s\n' "$what" "$found" >&2
    fail=1
  fi
}

expect_empty "runtime/ depends on operator/" "deps(//runtime/...) intersect //operator/..."
expect_empty "operator/ reaches into runtime/ beyond base, cluster, wire and progress" \
  "(deps(//operator/...) intersect //runtime/...) except (//runtime/base/... + //runtime/cluster/... + //runtime/progress/... + //runtime/wire/...)"
exit $fail
