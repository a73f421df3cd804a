#!/usr/bin/env bash
# Runs benchmarks from an optimised build. Each prints JSON lines (see tests/bench/report.h).
#
#   tests/bench/run.sh [CASE…] [--peer tensorflow|torch|pandas|openmpi|mpich]… [flags of the cases]
#   tests/bench/run.sh --list
#
# Without CASE, runs all cases. With --peer, also runs each case in that framework with the same
# flags, and fails if the framework cannot run the case with these flags. The virtual environments of
# TensorFlow, PyTorch (6 GB) and pandas stay in ~/.cache/tfjob. MPI comes from Debian. Progress goes
# to stderr. Some cases fail if they exceed a limit: order, tables, operator-memory.
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/dev/lib.sh"
bench=tests/bench

list() { grep -v '^#' $bench/cases; }
fail() { echo "run.sh: $*" >&2; exit 2; }

# python_of PEER: installs what the peer needs, and prints the path of the Python program that runs it.
python_of() {
  case $1 in
    tensorflow) python_environment "$1" tests/interop/requirements.txt ;;
    torch|pandas) python_environment "$1" "$bench/peers/$1.txt" ;;
    openmpi|mpich) install_packages "$1" >&2; echo /usr/bin/python3 ;;
  esac
}

cases=() peers=() flags=()
while (($#)); do
  case $1 in
    --list) list; exit ;;
    --help|-h) ((${#cases[@]})) && flags+=("$1") || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit; } ;;
    --peer)
      case ${2-} in
        tensorflow|torch|pandas|openmpi|mpich) peers+=("$2"); shift ;;
        *) fail "--peer takes tensorflow, torch, pandas, openmpi or mpich, not \"${2-}\"" ;;
      esac ;;
    -*) flags+=("$1") ;;
    *) if ((${#flags[@]})); then flags+=("$1"); else cases+=("$1"); fi ;;  # after a flag, it is the flag's value
  esac
  shift
done
((${#cases[@]})) || mapfile -t cases < <(list | awk '{print $1}')

install_packages build test >&2
targets=()
for name in "${cases[@]}"; do
  target=$(list | awk -v name="$name" '$1 == name {print $2}')
  [[ $target ]] || fail "no case \"$name\"; there are: $(list | awk '{printf "%s ", $1}')"
  targets+=("$target")
done

programs=($(printf '%s\n' "${targets[@]}" | grep '^//' || true))
((${#programs[@]} == 0)) || bazel build --config=release "${programs[@]}" >&2
bin=$(bazel info --config=release bazel-bin 2> /dev/null)
for i in "${!cases[@]}"; do
  target=${targets[i]}
  case $target in
    //*) target=${target#//} && "$bin/${target/://}" "${flags[@]}" ;;
    *) "$target" "${flags[@]}" ;;  # a script that builds what it needs
  esac
  for peer in "${peers[@]}"; do
    program=$bench/peers/${peer}_${cases[i]//-/_}.py
    if [[ -f $program ]]; then
      "$(python_of "$peer")" "$program" "${flags[@]}"
    else
      echo "run.sh: $peer has no program for the case ${cases[i]}" >&2
    fi
  done
done
