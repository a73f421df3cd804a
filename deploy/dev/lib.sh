# Defines functions that the scripts share. Sourced, never run. Sets ROOT to the repository's
# folder, and changes to it.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$ROOT"
export LC_ALL=C.UTF-8

say() { printf '==> %s\n' "$*"; }

# timed WHAT COMMAND…: runs the command and prints how long it took.
timed() {
  local what=$1 start=$SECONDS status=0
  shift
  say "$what"
  "$@" || status=$?
  say "$what: $((SECONDS - start)) s$([ $status -eq 0 ] || echo ", exit status $status")"
  return $status
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "this needs root, and there is no sudo: $*" >&2
    return 1
  fi
}

# install_packages [SECTION…]: installs the missing packages of these sections of deploy/packages.txt.
# The default section is build.
install_packages() {
  local wanted missing
  wanted=$(awk -v sections=" ${*:-build} " '/^## / {inside = index(sections, " " $2 " "); next} inside && /^[a-z0-9]/' \
    deploy/packages.txt)
  # shellcheck disable=SC2086
  missing=$(comm -23 <(printf '%s\n' $wanted | sort) \
    <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null | sed -n 's/^ii *//p' | sort))
  [ -n "$missing" ] || return 0
  say "installing $(echo "$missing" | wc -w) packages: $(echo $missing)"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 update
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
    install -y --no-install-recommends $missing >/dev/null
}

# python_environment NAME REQUIREMENTS: prints the path of the Python program of a virtual
# environment that satisfies the requirements. Creates the environment in ~/.cache/tfjob if it does
# not exist or was created from other requirements.
python_environment() {
  local folder=$HOME/.cache/tfjob/python-$1 requirements=$2
  if ! cmp -s "$requirements" "$folder/requirements.txt"; then
    say "Python environment $1: $(tr '\n' ' ' <"$requirements")" >&2
    rm -rf "$folder"
    /usr/bin/python3 -m venv "$folder" >&2
    "$folder/bin/pip" install --quiet --disable-pip-version-check -r "$requirements" >&2
    cp "$requirements" "$folder/requirements.txt"
  fi
  echo "$folder/bin/python"
}

# two_at_a_time COMMAND ARGUMENT…: calls the command once per argument, at most two calls at a time. Returns 1 if a call
# failed.
two_at_a_time() {
  local command=$1 argument running=0 status=0
  shift
  for argument in "$@"; do
    if [ $running -eq 2 ]; then
      wait -n || status=1
      running=1
    fi
    "$command" "$argument" &
    running=$((running + 1))
  done
  while [ $running -gt 0 ]; do
    wait -n || status=1
    running=$((running - 1))
  done
  return $status
}

# count_unittests STATUS LOG…: prints "<passed> <failed>" for logs of Python's unittest. If STATUS is not 0, <failed> is
# at least 1.
count_unittests() {
  local status=$1 ran bad
  shift
  ran=$(cat "$@" | sed -n 's/^.*Ran \([0-9]*\) tests\{0,1\} in .*/\1/p' | awk '{n += $1} END {print n + 0}')
  bad=$(cat "$@" | sed -n 's/^.*FAILED (\(.*\))$/\1/p' | tr ',' '\n' | sed -n 's/.*\(failures\|errors\)=//p' |
    awk '{n += $1} END {print n + 0}')
  [ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
  echo "$((ran > bad ? ran - bad : 0)) $bad"
}

# unittest_failures LOG…: prints, for each log of Python's unittest, at most 60 lines about the failed tests. If a log
# ends without a verdict, prints its last lines instead.
unittest_failures() {
  local log
  for log in "$@"; do
    if ! grep -q 'OK$\|OK (\|FAILED (' "$log"; then
      echo "ended without a verdict:"
      tail -n 20 "$log"
    else
      awk '/(ERROR|FAIL): |ended with exit status/ {found = 1} found && shown++ < 60' "$log"
    fi
  done
}
