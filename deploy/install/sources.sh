#!/usr/bin/env bash
# Fetches the sources of the libraries that libtfjob.so contains, from Debian, in the versions that are installed on
# this machine. Debian's own archives of these libraries cannot become part of a shared library, because they are not
# compiled as position-independent code. Skips sources that are already there.
#
#   deploy/install/sources.sh           fetches them to ~/.cache/tfjob/sources (15 MB to download, 85 MB on disk)
#   deploy/install/sources.sh --list    prints a line per library: its name, and the folder of its sources
case ${1:-} in
  "" | --list) ;;
  -h | --help) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit ;;
  *) echo "unknown argument $1; try --help" >&2 && exit 2 ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/../dev/lib.sh"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/tfjob/sources
# The name of each library in sources.BUILD, and the package with its headers.
LIBRARIES="absl libabsl-dev
fmt libfmt-dev
protobuf libprotobuf-dev
re2 libre2-dev
simdjson libsimdjson-dev
snappy libsnappy-dev
spdlog libspdlog-dev
yaml-cpp libyaml-cpp-dev"

source_of() { dpkg-query -W -f '${source:Package}=${source:Version}' "$1"; }
folder_of() { echo "$cache/${1//[=:]/-}"; }

if [ "${1:-}" = --list ]; then
  while read -r name package; do echo "$name $(folder_of "$(source_of "$package")")"; done <<<"$LIBRARIES"
  exit
fi

# apt: runs apt-get with the source packages of Debian 12, which a machine's own configuration may lack.
apt() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources.list.d" \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}

configure_apt() {
  mkdir -p "$work"/{sources.list.d,lists/partial,cache/archives/partial}
  printf 'Types: deb-src\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n\n' \
    http://deb.debian.org/debian "bookworm bookworm-updates" /usr/share/keyrings/debian-archive-keyring.gpg \
    http://deb.debian.org/debian-security bookworm-security /usr/share/keyrings/debian-archive-keyring.gpg \
    >"$work/sources.list.d/debian.sources"
  apt update
}

# fetch SOURCE=VERSION: fetches one source package, with Debian's patches applied.
fetch() {
  say "sources of $1"
  (mkdir "$work/unpack" && cd "$work/unpack" && apt source "$1" >/dev/null) || {
    echo "sources.sh: Debian has no sources of $1, the version that is installed here; upgrade the packages" \
      "of this machine (apt-get upgrade), and try again" >&2
    return 1
  }
  # Remove BUILD files, because a folder that contains one would be a separate package.
  find "$work/unpack" \( -name BUILD -o -name BUILD.bazel -o -name WORKSPACE \) -delete
  mv "$(find "$work/unpack" -mindepth 1 -maxdepth 1 -type d)" "$(folder_of "$1")"
  rm -rf "$work/unpack"
}

install_packages
mkdir -p "$cache"
work=$(mktemp -d "$cache/new-XXXXXX")
trap 'rm -rf "$work"' EXIT
while read -r _ package; do
  wanted=$(source_of "$package")
  if [ -d "$(folder_of "$wanted")" ]; then continue; fi
  [ -d "$work/lists" ] || configure_apt
  fetch "$wanted"
done <<<"$LIBRARIES"
