#!/usr/bin/env bash
# Installs the programs and the C++ library to a temporary folder, and tests them there: the exports and contents of the
# library, users' programs that are built with CMake, pkg-config and Bazel, and the Debian packages. While the users'
# programs are built and run, the sources of this project are hidden.
#
#   tests/install/run.sh [RESULTS]    appends "<passed> <failed> <what>" to the file RESULTS
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/dev/lib.sh"
install_packages build test install
deploy/install/sources.sh

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/opt
library=$prefix/lib/libtfjob.so.0
export TMPDIR=$folder

passed=0 failed=0
check() {
  local what=$1 start=$SECONDS
  shift
  if "$@" >"$folder/log" 2>&1; then
    passed=$((passed + 1))
    say "$what: passed in $((SECONDS - start)) s"
  else
    failed=$((failed + 1))
    echo "failed: $what"
    tail -n 40 "$folder/log"
  fi
}

# without_sources COMMAND…: runs the command in a mount namespace in which the folders with this project's sources and
# objects are empty, if this user may create such a namespace.
without_sources() {
  if ! unshare --mount true 2>/dev/null; then
    "$@"
    return
  fi
  # shellcheck disable=SC2016
  unshare --mount bash -c 'mount -t tmpfs none "$1" && mount -t tmpfs none "$2" && shift 2 && cd / && exec "$@"' bash \
    "$ROOT" "$(dirname "$output_base")" "$@"
}

install_moved() {
  # Move the installation, because CMake, pkg-config and the library must find files relative to their own location.
  bazel run --config=release //deploy/install -- --prefix="$folder/first" && mv "$folder/first" "$prefix"
}

# consumer NAME: copies a user's project, with the program's source, to a separate folder.
consumer() {
  cp -r "tests/install/$1" "$folder/$1"
  cp tests/install/train.cc "$folder/$1/"
}

# trains PROGRAM…: runs a user's program, which writes its files to the folder `files`.
trains() {
  rm -rf "$folder/files" && mkdir "$folder/files"
  without_sources "$@" "$folder/files" && [ -s "$folder/files/points.keras" ]
}

exports_only_the_api() {
  local exported others
  exported=$(nm -D --defined-only --extern-only --demangle "$library" | sed 's/^[0-9a-f]* . //')
  others=$(grep -vE '^((vtable|typeinfo|typeinfo name) for )?tfjob::api::|^TFJOB_0$' <<<"$exported" || true)
  [ -z "$others" ] || { head -n 40 <<<"$others" && return 1; }
  grep -q '^tfjob::api::CompiledModel::Fit(' <<<"$exported"
}

# libraries: lists the libraries that libtfjob.so loads, apart from those that every C++ program loads.
libraries() { ldd "$library" | awk '$2 == "=>" {print $3}' | grep -vE '/lib(c|m|gcc_s|stdc\+\+)\.so'; }
contains_the_others() { ! libraries | grep -E 'grpc|gpr|proto|absl|yaml|spdlog|fmt|re2|snappy|leveldb|simdjson|upb|cares|hdf5|curl'; }
is_small() {
  local bytes
  bytes=$(stat -c %s "$library")
  echo "the library has $bytes bytes, and all libraries $(libraries | xargs -d '\n' stat -Lc %s |
    awk -v own="$bytes" '{n += $1} END {print n + own}')" | tee "$folder/sizes"
  awk '{exit !($4 <= 20e6 && $NF <= 80e6)}' "$folder/sizes"
}
is_hardened() {
  readelf -dW "$library" | grep -q 'BIND_NOW\|FLAGS.*NOW' && readelf -lW "$library" | grep -q GNU_RELRO &&
    ! readelf -dW "$library" | grep -E 'TEXTREL|RUNPATH|RPATH' && readelf -lW "$library" | grep -q 'GNU_STACK.* RW '
}

# Users' programs must include only files of the compiler, the C library and the installation.
includes_only_the_standard() {
  local others
  g++ -std=c++20 -I"$prefix/include" -M deploy/examples/cpp/fashion-mnist.cc | tr -d '\\' | tr ' ' '\n' | grep / >"$folder/included"
  others=$(xargs realpath <"$folder/included" |
    grep -vE "^$prefix/include/tfjob/|^/usr/include/(c\+\+|x86_64-linux-gnu|bits|linux|asm-generic)/|^/usr/lib/gcc/|/fashion-mnist.cc$" |
    grep -vE '^/usr/include/[a-z0-9-]+\.h$') || return 0
  head -n 20 <<<"$others" && return 1
}

builds_with_cmake() {
  consumer cmake
  without_sources cmake -S "$folder/cmake" -B "$folder/cmake/build" -DCMAKE_PREFIX_PATH="$prefix" &&
    without_sources cmake --build "$folder/cmake/build" && trains "$folder/cmake/build/train"
}
# asks_for VERSION: configures a project that requires this version.
asks_for() {
  rm -rf "$folder/asks" && mkdir "$folder/asks"
  sed "s/TFJob 0.1/TFJob $1/" tests/install/cmake/CMakeLists.txt >"$folder/asks/CMakeLists.txt"
  cp tests/install/train.cc "$folder/asks/"
  cmake -S "$folder/asks" -B "$folder/asks/build" -DCMAKE_PREFIX_PATH="$prefix"
}
refuses_other_versions() {
  ! asks_for 0.2 && ! asks_for 1 && ! asks_for 0.1.99 && asks_for 0.1.0 && asks_for 0.1...0.3 && ! asks_for 0.2...0.3
}
names_what_is_missing() {
  mv "$library" "$library.away"
  asks_for 0.1 >"$folder/missing" 2>&1 && local found=yes
  mv "$library.away" "$library"
  [ -z "${found:-}" ] && tr -d '\n' <"$folder/missing" | tr -s ' ' | grep -q 'lacks lib/libtfjob.so.0: install it again'
}
builds_with_pkgconfig() {
  consumer pkgconfig
  PKG_CONFIG_PATH=$prefix/lib/pkgconfig without_sources make -C "$folder/pkgconfig" &&
    LD_LIBRARY_PATH=$prefix/lib trains "$folder/pkgconfig/train"
}
builds_with_bazel() {
  consumer bazel
  cp -r deploy/bazel/rules_cc "$folder/bazel/"
  mv "$folder/bazel/BUILD.train" "$folder/bazel/BUILD"
  sed -i "s|@PREFIX@|$prefix|g" "$folder/bazel/WORKSPACE"
  # shellcheck disable=SC2016
  without_sources bash -c 'cd "$1/bazel" && bazel --batch --output_user_root="$1/bazel-output" build --nosandbox_debug \
    --cxxopt=-std=c++20 //:train' bash "$folder" && trains "$folder/bazel/bazel-bin/train"
}
tolerates_another_grpc() {
  cp -r tests/install/protobuf "$folder/protobuf"
  PKG_CONFIG_PATH=$prefix/lib/pkgconfig without_sources make -C "$folder/protobuf" &&
    LD_LIBRARY_PATH=$prefix/lib ldd "$folder/protobuf/both" | grep -q libgrpc++ &&
    LD_LIBRARY_PATH=$prefix/lib without_sources timeout 120 "$folder/protobuf/both"
}

# Runs the example in the documentation as the container of a job with three tasks.
runs_as_a_job() {
  local image=registry.invalid/tfjob/fashion-mnist-cpp job=deploy/examples/cpp/fashion-mnist-cpp.yaml
  cmake -S deploy/examples/cpp -B "$folder/example" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release &&
    cmake --build "$folder/example" || return
  timeout 300 "$prefix/bin/tfjob" run "$job" --image "$image=$folder/example/fashion-mnist" --claims-dir "$folder/claims" \
    --state-dir "$folder/state" && [ -s "$folder/claims/default/fashion-mnist-cpp-model/fashion.safetensors" ]
}

makes_packages() { bazel run --config=release //deploy/install:deb -- "$folder/deb" && ls "$folder"/deb/*.deb; }
# depends PACKAGE REGEX: checks that the package depends on another one.
depends() { dpkg-deb -f "$folder/deb/$1"_*.deb Depends | grep -qE "$2" || { dpkg-deb -I "$folder/deb/$1"_*.deb && false; }; }
packages_name_what_they_need() {
  depends libtfjob0 '(^|, )libdnnl2 ' && depends libtfjob0 '(^|, )libssl3 ' && ! depends libtfjob0 'grpc|protobuf|absl' &&
    depends libtfjob-dev '^libtfjob0 \(= [0-9.]+\)$' && depends tfjob '(^|, )libhdf5-' && depends tfjob '(^|, )libgrpc\+\+'
}
# Programs find the library in the unpacked packages in the same way as in installed packages.
builds_with_packages() {
  local tree=$folder/packages name
  for name in tfjob libtfjob0 libtfjob-dev; do dpkg-deb -x "$folder/deb/$name"_*.deb "$tree"; done
  local libdir
  libdir=$(dirname "$(find "$tree" -name libtfjob.so.0)")
  rm -rf "$folder/pkgconfig" && consumer pkgconfig
  PKG_CONFIG_PATH=$libdir/pkgconfig without_sources make -C "$folder/pkgconfig" &&
    LD_LIBRARY_PATH=$libdir trains "$folder/pkgconfig/train"
}

output_base=$(bazel info output_base 2>/dev/null)
check "installing" install_moved
if [ -e "$library" ]; then
  check "the library exports only the API" exports_only_the_api
  check "the library contains gRPC, protobuf and others" contains_the_others
  check "the library is small" is_small
  cat "$folder/sizes"
  check "the library is hardened" is_hardened
  check "the headers include only the standard library" includes_only_the_standard
  check "the headers compile fast" tests/install/compile_cost.py "$prefix/include" deploy/examples/cpp/fashion-mnist.cc
  cat "$folder/log"
  check "the comments of the headers become pages" deploy/dev/api_reference.sh "$folder/reference"
  check "a program built with CMake" builds_with_cmake
  check "CMake finds only versions with the same API" refuses_other_versions
  check "CMake says what an installation lacks" names_what_is_missing
  check "a program built with pkg-config" builds_with_pkgconfig
  check "a program built with Bazel" builds_with_bazel
  check "a program with a gRPC and a protobuf of its own" tolerates_another_grpc
  check "the example as a job of three tasks" runs_as_a_job
  check "making Debian packages" makes_packages
  check "packages name what they need" packages_name_what_they_need
  check "a program built with the packages" builds_with_packages
fi

echo "$passed passed, $failed failed: tests/install"
[ $# -eq 0 ] || echo "$passed $failed tests/install" >>"$1"
[ $failed -eq 0 ]
