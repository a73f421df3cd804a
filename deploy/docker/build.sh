#!/usr/bin/env bash
# Builds the images of the operator and the trainer as OCI archives, FOLDER/operator.tar and FOLDER/trainer.tar: the
# programs as Bazel builds them, the libraries of Debian that they need, and nothing else. Needs no registry and no daemon.
#
#   deploy/docker/build.sh FOLDER [operator] [trainer]     both without a name
#   deploy/docker/build.sh --tree FOLDER NAME              the image's files as a folder (what the Dockerfiles copy)
#
# `docker load -i`, `ctr images import`, `skopeo copy oci-archive:` and `deploy/dev/cluster.sh load-image` take the archives.
if [ "${1:-}" = --tree ]; then tree=--tree && shift; fi
[ $# -gt 0 ] || { sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2; }
mkdir -p "$1" && folder=$(realpath "$1") && shift
source "$(dirname "${BASH_SOURCE[0]}")/../dev/lib.sh"

version=$(grep -rhoP 'kVersion\[\] = "\K[^"]*' operator/cmd)

# image NAME TARGET PROGRAM USER: the image's name and where it comes from.
image() {
  local bin output=$folder/$1.tar
  [ -z "${tree:-}" ] || output=$folder
  bazel build --config=release "//$2:$3" >&2
  bin=$(bazel info --config=release bazel-bin 2>/dev/null)
  deploy/docker/oci_image.py ${tree:-} --name "ghcr.io/tfjob/$1:$version" --name "ghcr.io/tfjob/$1:latest" --output "$output" \
    --program "$bin/$2/$3=/usr/bin/$3" --user "$4" --file deploy/docker/passwd=/etc/passwd \
    --file deploy/docker/nsswitch.conf=/etc/nsswitch.conf --file /etc/ssl/certs/ca-certificates.crt=/etc/ssl/certs/ca-certificates.crt
}

[ $# -gt 0 ] || set -- operator trainer
for name in "$@"; do
  case $name in
    operator) image operator operator/cmd tfjob-operator 65532:65532 ;;
    trainer) image trainer runtime/cmd tfjob-trainer 0:0 ;;  # writes where its volumes let it
    *) echo "there is no image $name; there are operator and trainer" >&2 && exit 2 ;;
  esac
done
