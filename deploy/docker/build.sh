#!/usr/bin/env bash
# Builds the images of the operator and the trainer as OCI archives, FOLDER/operator.tar and
# FOLDER/trainer.tar, each with a list of its contents (SPDX), such as FOLDER/trainer.spdx.json. An
# image contains the programs, the Debian libraries that they need, and a few
# files from /etc. Fails if an image is larger than 40 MB. Needs neither a registry nor a daemon,
# and first installs the packages that the build lacks (deploy/packages.txt).
#
#   deploy/docker/build.sh FOLDER [NAME…]                  default: operator and trainer
#   deploy/docker/build.sh --tree FOLDER NAME              the image's files, for the Dockerfiles
#
# NAME may also be fashion-mnist-cpp, the example in deploy/examples/cpp.
# To load an archive, use `docker load -i`, `ctr images import` or `cluster.sh load-image`.
usage() { sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
case ${1:-} in
  -h | --help) usage && exit ;;
  "") usage >&2 && exit 2 ;;
  --tree) tree=--tree && shift ;;
  -*) echo "build.sh: unknown option $1" >&2 && exit 2 ;;
esac
[ $# -gt 0 ] || { usage >&2 && exit 2; }
mkdir -p "$1" && folder=$(realpath "$1") && shift
source "$(dirname "${BASH_SOURCE[0]}")/../dev/lib.sh"

version=$(grep -rhoP 'kVersion\[\] = "\K[^"]*' runtime/base/version.h)

# image NAME TARGET…: builds the image NAME from these programs. The first program is the entry point.
# The programs run as the user nonroot of deploy/docker/passwd.
image() {
  local bin name=$1 output=$folder/$1.tar path programs=() list=()
  shift
  [ -n "${tree:-}" ] && output=$folder || list=(--sbom "$folder/$name.spdx.json")
  bazel build --config=release "$@" >&2
  bin=$(bazel info --config=release bazel-bin 2>/dev/null)
  for target in "$@"; do
    path=${target#//}
    programs+=(--program "$bin/${path/://}=/usr/bin/${path#*:}")
  done
  deploy/docker/oci_image.py ${tree:-} --name "registry.invalid/tfjob/$name:$version" --name "registry.invalid/tfjob/$name:latest" \
    --output "$output" "${list[@]}" "${programs[@]}" --user 65532:65532 --at-most 40 --file deploy/docker/passwd=/etc/passwd \
    --file deploy/docker/nsswitch.conf=/etc/nsswitch.conf --file /etc/ssl/certs/ca-certificates.crt=/etc/ssl/certs/ca-certificates.crt
}

[ $# -gt 0 ] || set -- operator trainer
install_packages >&2
for name in "$@"; do
  case $name in
    # The operator's image also contains tfjob, for `helm test`.
    operator) image operator //operator/service:tfjob-operator //operator/cli:tfjob ;;
    trainer) image trainer //runtime/cmd:tfjob-trainer //runtime/cmd:tfjob-hdf5 ;;
    fashion-mnist-cpp) image fashion-mnist-cpp //deploy/examples/cpp:fashion-mnist ;;
    *) echo "unknown image $name; the images are operator, trainer and fashion-mnist-cpp" >&2 && exit 2 ;;
  esac
done
