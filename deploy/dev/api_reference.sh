#!/usr/bin/env bash
# Writes the reference of the C++ API as HTML pages, from the comments of the headers and the examples in
# tests/api/examples. Needs doxygen, which it installs. Fails if Doxygen has a warning, or finds declarations that
# api_declarations.py does not list.
#
#   deploy/dev/api_reference.sh FOLDER     the first page is FOLDER/html/index.html
case ${1:-} in
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit ;;
  "" | -*) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
mkdir -p "$1" && folder=$(realpath "$1")
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
install_packages build install

# List the headers of the API: tfjob.h includes all of them, and they include only each other and the standard library.
headers=$(g++ -std=c++20 -MM runtime/api/tfjob.h | tr -d '\\' | tr ' ' '\n' | grep '\.h$' | sort -u)
doxygen -q - <<END
PROJECT_NAME = TFJob
PROJECT_BRIEF = "The C++ API"
PROJECT_NUMBER = $(grep -oP 'kVersion\[\] = "\K[^"]*' runtime/base/version.h)
INPUT = $(echo $headers)
FILTER_PATTERNS = *.h=$ROOT/deploy/dev/api_reference.py
OUTPUT_DIRECTORY = "$folder"
STRIP_FROM_PATH = runtime/api
GENERATE_LATEX = NO
GENERATE_TAGFILE = "$folder/tfjob.tag"
HAVE_DOT = NO
EXTRACT_ALL = YES
HIDE_FRIEND_COMPOUNDS = YES
JAVADOC_AUTOBRIEF = YES
AUTOLINK_SUPPORT = NO
MARKDOWN_SUPPORT = YES
EXAMPLE_PATH = .
DISTRIBUTE_GROUP_DOC = NO
SORT_MEMBER_DOCS = NO
WARN_AS_ERROR = FAIL_ON_WARNINGS
END
deploy/dev/api_declarations.py --compare "$folder/tfjob.tag" $headers
echo "$folder/html/index.html"
