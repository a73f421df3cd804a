#!/usr/bin/env bash
# Installs the programs and the C++ library:
#
#   bazel run --config=release //deploy/install -- [--prefix=FOLDER] [--libdir=FOLDER] [--destdir=FOLDER]
#
#   --prefix=FOLDER    where the files are installed (default /usr/local). They may be moved later, but only together.
#   --libdir=FOLDER    the folder for the library, relative to the prefix (default lib)
#   --destdir=FOLDER   copies the files to FOLDER/PREFIX instead, for packages
#
# First run deploy/install/sources.sh, which fetches the sources of the libraries that libtfjob.so contains.
set -euo pipefail
usage() { sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
fail() { echo "install: $*" >&2 && exit 2; }

prefix=/usr/local libdir=lib destdir=""
while (($#)); do
  case $1 in
    --prefix=* | --libdir=* | --destdir=*)
      name=${1%%=*} && declare "${name#--}=${1#*=}"
      ;;
    --prefix | --libdir | --destdir)
      (($# > 1)) || fail "$1 needs a folder: $1=FOLDER"
      declare "${1#--}=$2" && shift
      ;;
    -h | --help) usage && exit ;;
    *) fail "unknown argument $1; try --help" ;;
  esac
  shift
done
# absolute PATH: prints the absolute path. Paths are relative to the user's folder, because `bazel run` starts this
# script in another one.
absolute() { (cd "${BUILD_WORKING_DIRECTORY:-.}" && realpath -m --no-symlinks "$1"); }
[[ $prefix = /* ]] || prefix=$(absolute "$prefix")
[ -z "$destdir" ] || destdir=$(absolute "$destdir")
[[ $libdir != /* && $libdir != *..* ]] || fail "--libdir is relative to the prefix, such as lib64; got $libdir"
[[ $prefix$libdir != *[\|\&\\\"]* ]] || fail "the folders must not contain | & \\ or quotes"
prefix=${prefix%/} libdir=${libdir%/}
root=$destdir$prefix

# parent_of FOLDER: prints the path from FOLDER, which is relative to the prefix, to the prefix, such as ../../..
parent_of() { sed 's|[^/]\{1,\}|..|g' <<<"$1"; }
version=$(grep -oP 'kVersion\[\] = "\K[^"]*' runtime/base/version.h)

# template FILE TARGET: copies a template, with the values of this installation.
template() {
  mkdir -p "$(dirname "$root/$2")"
  sed -e "s|@PREFIX@|$prefix|g; s|@LIBDIR@|$libdir|g; s|@VERSION@|$version|g; s|@VERSION_MINOR@|${version%.*}|g" \
    -e "s|@TO_PREFIX@|$(parent_of "$(dirname "$2")")|g" "deploy/install/templates/$1" >"$root/$2"
  chmod 644 "$root/$2"
}

install_programs() {
  local program
  install -d "$root/bin"
  for program in operator/cli/tfjob operator/service/tfjob-operator runtime/cmd/tfjob-{hdf5,trainer}; do
    install -s -m 755 "$program" "$root/bin/"
  done
  # kubectl runs these links as `kubectl tfjob`.
  ln -sf tfjob "$root/bin/kubectl-tfjob"
  ln -sf tfjob "$root/bin/kubectl_complete-tfjob"
}

install_library() {
  install -d "$root/$libdir" "$root/include/tfjob"
  install -s -m 644 deploy/install/libtfjob.so "$root/$libdir/libtfjob.so.0"
  ln -sf libtfjob.so.0 "$root/$libdir/libtfjob.so"
  install -m 644 runtime/api/*.h "$root/include/tfjob/"
  template TFJobConfig.cmake "$libdir/cmake/TFJob/TFJobConfig.cmake"
  template TFJobConfigVersion.cmake "$libdir/cmake/TFJob/TFJobConfigVersion.cmake"
  template tfjob.pc "$libdir/pkgconfig/tfjob.pc"
  template tfjob.BUILD share/tfjob/tfjob.BUILD
}

# Installs the licences of the libraries that the programs and libtfjob.so contain, as these licences require.
install_licenses() {
  local name
  install -D -m 644 LICENSE "$root/share/doc/tfjob/LICENSE"
  for name in libabsl libboost libc-ares libcli11 libfmt libgrpc libleveldb libprotobuf libre2 libsimdjson libsnappy \
    libspdlog libyaml-cpp nlohmann-json3; do
    printf '==== %s ====\n\n' "$name"
    cat "/usr/share/doc/$name-dev/copyright"
  done >"$root/share/doc/tfjob/THIRD-PARTY"
  chmod 644 "$root/share/doc/tfjob/THIRD-PARTY"
}

umask 022
install_programs
install_library
install_licenses
# Update the loader's cache, through which the loader finds libraries in folders such as /usr/local/lib.
if [ -z "$destdir" ] && [ "$(id -u)" -eq 0 ]; then
  if /sbin/ldconfig -v 2>/dev/null | grep -q "^$root/$libdir:"; then /sbin/ldconfig; fi
fi
echo "installed TFJob $version in $root"
