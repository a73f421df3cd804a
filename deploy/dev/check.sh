#!/usr/bin/env bash
# Checks formatting, sizes, scripts and package boundaries. Takes seconds.
#
#   deploy/dev/check.sh          prints what is wrong
#   deploy/dev/check.sh --fix    formats in place first
#   deploy/dev/check.sh --tidy   also runs clang-tidy on files that differ from HEAD (30 s per file)
case ${1:-} in
  "" | --fix | --tidy) ;;
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit ;;
  *) echo "unknown argument $1; try --help" >&2 && exit 2 ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# files PATTERN…: prints the files that exist and that git does not ignore.
files() {
  local file
  git ls-files --cached --others --exclude-standard "$@" | while read -r file; do
    [ ! -e "$file" ] || echo "$file"
  done
}

format() {
  local output
  output=$(clang-format-19 --dry-run -Werror "${sources[@]}" 2>&1) && return
  grep -m 20 'error:' <<<"$output" || head -20 <<<"$output"
  return 1
}

scripts() {
  local script wrong=0
  for script in $(git ls-files '*.sh' .ci/run); do bash -n "$script" || wrong=1; done
  return $wrong
}

tidy() {
  local changed
  deploy/bazel/compile_commands.py >/dev/null || return
  mapfile -t changed < <(git diff --name-only --diff-filter=d HEAD -- '*.cc'; git ls-files --others --exclude-standard '*.cc')
  [ ${#changed[@]} -eq 0 ] || clang-tidy-19 --quiet -p . "${changed[@]}"
}

status=0
check() { timed "$@" || status=1; }

install_packages build test
mapfile -t sources < <(files '*.cc' '*.h' '*.cu' '*.cuh')
mapfile -t pages < <(files '*.md')
if [ ${#sources[@]} -eq 0 ]; then echo "git names no sources in $ROOT" >&2 && exit 1; fi

if [ "${1:-}" = --fix ]; then timed "formatting" clang-format-19 -i "${sources[@]}"; fi
check "format" format
check "sizes" deploy/dev/sizes.py "${sources[@]}" "${pages[@]}"
check "scripts" scripts
check "links of the documentation" deploy/dev/links.py
check "example models" deploy/dev/write_models.py --check
check "examples of the C++ API" deploy/dev/api_examples.py
check "borders of the rooms" tests/contract/rooms.sh
if [ "${1:-}" = --tidy ]; then check "clang-tidy" tidy; fi
exit $status
