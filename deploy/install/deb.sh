#!/usr/bin/env bash
# Creates Debian packages:
#
#   bazel run --config=release //deploy/install:deb -- FOLDER
#
#   tfjob          the programs
#   libtfjob0      the library that programs of the C++ API load
#   libtfjob-dev   headers and files for compiling such programs
#
# First run deploy/install/sources.sh, which fetches the sources of the libraries that libtfjob.so contains.
set -euo pipefail
usage() { sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
case ${1:-} in
  -h | --help) usage && exit ;;
  "" | -*) usage >&2 && exit 2 ;;
esac
[ $# -eq 1 ] || { usage >&2 && exit 2; }
output=$(cd "${BUILD_WORKING_DIRECTORY:-.}" && mkdir -p "$1" && realpath "$1")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
chmod 755 "$work"
version=$(grep -oP 'kVersion\[\] = "\K[^"]*' runtime/base/version.h)
architecture=$(dpkg --print-architecture)
libdir=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
maintainer="TFJob <maintainers@users.noreply.github.com>"
deploy/install/install.sh --prefix=/usr --libdir="$libdir" --destdir="$work/all" >/dev/null
# Make builds of the same commit yield the same packages.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "${BUILD_WORKSPACE_DIRECTORY:-.}" log -1 --format=%ct 2>/dev/null || echo 0)}

# move PACKAGE PATH…: moves files, relative to /usr, from the complete tree to the package.
move() {
  local package=$1 path
  shift
  for path in "$@"; do
    mkdir -p "$work/$package/usr/$(dirname "$path")"
    mv "$work/all/usr/$path" "$work/$package/usr/$path"
  done
}

# needs PACKAGE: prints the packages that the programs and libraries in the package need.
needs() {
  local files
  mapfile -t files < <(find "$work/$1" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF' sh {} \; -print)
  mkdir -p "$work/control/debian" "$work/$1/DEBIAN"  # makes dpkg-shlibdeps recognize a package's folder
  printf 'Source: tfjob\n\nPackage: %s\nArchitecture: any\n' "$1" >"$work/control/debian/control"
  (cd "$work/control" && dpkg-shlibdeps --warnings=1 -O "${files[@]/#/-e}" | sed -n 's/^shlibs:Depends=//p')
}

# documents PACKAGE: adds what Debian requires of every package.
documents() {
  local folder=$work/$1/usr/share/doc/$1
  mkdir -p "$folder"
  {
    printf 'TFJob is licensed under the Apache License 2.0 (/usr/share/common-licenses/Apache-2.0).\n'
    printf 'It contains these libraries:\n\n'
    cat "$work/all/usr/share/doc/tfjob/THIRD-PARTY"
  } >"$folder/copyright"
  printf 'tfjob (%s) bookworm; urgency=medium\n\n  * See docs/CHANGELOG.md in the repository.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(date -R -u -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$folder/changelog.gz"
}

# package NAME SECTION DEPENDS FIELDS SUMMARY TEXT: creates a package from its files.
package() {
  local name=$1 folder=$work/$1
  documents "$name"
  mkdir -p "$folder/DEBIAN"
  {
    printf 'Package: %s\nSource: tfjob\nVersion: %s\nArchitecture: %s\n' "$name" "$version" "$architecture"
    printf 'Maintainer: %s\nSection: %s\nPriority: optional\n' "$maintainer" "$2"
    printf 'Homepage: https://github.com/tfjob/tfjob\nInstalled-Size: %s\n' "$(du -sk "$folder/usr" | cut -f1)"
    [ -z "$3" ] || printf 'Depends: %s\n' "$3"
    [ -z "$4" ] || printf '%s\n' "$4"
    printf 'Description: %s\n' "$5"
    fold -s -w 76 <<<"$6" | sed 's/ *$//; s/^/ /'
  } >"$folder/DEBIAN/control"
  (cd "$folder" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  find "$folder" -type d -exec chmod 755 {} +
  dpkg-deb --root-owner-group -Zxz --build "$folder" "$output/${name}_${version}_$architecture.deb" >/dev/null
  echo "$output/${name}_${version}_$architecture.deb"
}

move tfjob bin
move libtfjob0 "$libdir/libtfjob.so.0"
move libtfjob-dev include/tfjob "$libdir/libtfjob.so" "$libdir/cmake" "$libdir/pkgconfig" share/tfjob
depends=$(needs tfjob)
package tfjob science "$depends" "" "runs distributed TensorFlow training jobs" \
  "The programs tfjob, which runs the manifests of TFJobs on this machine and manages those in a Kubernetes cluster, \
tfjob-trainer, which runs one task of a job, and tfjob-operator, which runs TFJobs in a cluster."
depends=$(needs libtfjob0)
# This file makes dpkg run ldconfig.
echo "activate-noawait ldconfig" >"$work/libtfjob0/DEBIAN/triggers"
echo "libtfjob 0 libtfjob0 (= $version)" >"$work/libtfjob0/DEBIAN/shlibs"
package libtfjob0 libs "$depends" "Recommends: tfjob
Multi-Arch: same" "training of models as in TFJob (shared library)" \
  "The library of programs that build, train, evaluate and save models with TFJob's C++ API, alone or as the tasks of a \
TFJob. To read and write the files of Keras (.h5, .keras), it runs the program tfjob-hdf5 of the package tfjob."
package libtfjob-dev libdevel "libtfjob0 (= $version)" "" "training of models as in TFJob (development files)" \
  "The headers of TFJob's C++ API, and the files with which CMake, pkg-config and Bazel find the library."
