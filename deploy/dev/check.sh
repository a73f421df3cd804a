#!/usr/bin/env bash
# Seconds: format, sizes, scripts, and the rooms' borders. `--fix` formats in place; `--tidy` also runs clang-tidy on the
# files that differ from the last commit (half a minute a file).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

status=0
mapfile -t sources < <(git ls-files --cached --others --exclude-standard '*.cc' '*.h' '*.cu' '*.cuh')
sources=($(for f in "${sources[@]}"; do [ -e "$f" ] && echo "$f"; done))

if [ "${1:-}" = --fix ]; then clang-format-19 -i "${sources[@]}"; fi
clang-format-19 --dry-run -Werror "${sources[@]}" 2>&1 | { ! grep -m 20 'error:'; } || status=1
deploy/dev/sizes.py "${sources[@]}" || status=1
for script in $(git ls-files '*.sh' .ci/run); do bash -n "$script" || status=1; done
tests/contract/rooms.sh || status=1

if [ "${1:-}" = --tidy ]; then
  deploy/bazel/compile_commands.py >/dev/null
  mapfile -t changed < <(git diff --name-only --diff-filter=d HEAD -- '*.cc'; git ls-files --others --exclude-standard '*.cc')
  [ ${#changed[@]} -eq 0 ] || clang-tidy-19 --quiet -p . "${changed[@]}" || status=1
fi
exit $status
