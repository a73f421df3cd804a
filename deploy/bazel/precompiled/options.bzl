"""Defines the options with which --config=sanitize and --config=tsan compile a room, in addition to those in .bazelrc.

room.bzl adds these options to the rooms' libraries and tests. It also lets them begin with a precompiled header
(precompiled.bzl), which clang accepts only if it has been compiled with the same options.
"""

# Rooms that are optimised, because tests spend most of their time in them. Without optimisation, printing deeply nested
# JSON (runtime/base) would also overflow the stack.
_HOT = [
    "operator/api",
    "operator/client",
    "operator/control",
    "operator/local/store",
    "operator/objects",
    "operator/policy",
    "runtime/base",
    "runtime/collectives",
    "runtime/device/cuda",
    "runtime/graph",
    "runtime/kernels",
    "runtime/optimizer",
    "runtime/ps/protocol",
    "runtime/tensor",
]

# Rooms that read no data from outside. All other rooms are compiled with the coverage that the fuzzers need, because
# the fuzz targets (tests/fuzz) use the same object files. The coverage adds a sixth to the compile time.
_NOT_FUZZED = [
    "operator/cache",
    "operator/cli",
    "operator/control",
    "operator/events",
    "operator/local/run",
    "operator/local/store",
    "operator/metrics",
    "operator/plan",
    "operator/policy",
    "operator/queue",
    "operator/render",
    "runtime/api",
    "runtime/cmd",
    "runtime/device",
    "runtime/exec",
    "runtime/inference",
    "runtime/kernels",
    "runtime/optimizer",
    "runtime/strategy",
    "runtime/train",
    "tests",
]

# Rooms that read data from outside, although the rooms that contain them do not.
_FUZZED = ["runtime/train/model_dir"]

_COVERAGE = "-fsanitize=fuzzer-no-link"

# Every (kind, options) that choose() can return for a room without copts of its own.
VARIANTS = [
    ("library", ["-O0"]),
    ("library", ["-O0", _COVERAGE]),
    ("library", ["-O1"]),
    ("library", ["-O1", _COVERAGE]),
    ("test", ["-O0"]),
]

def _lies_in(package, rooms):
    return any([(package + "/").startswith(room + "/") for room in rooms])

def choose(package, kind, optimised = False):
    """Returns {configuration: options} for the sources of one kind ("library" or "test") in a room.

    Sources whose own copts set a level of optimisation (`optimised`) keep it, except in hot rooms: optimising
    instrumented code beyond -O1 takes more time than it saves.
    """
    if kind == "test":
        level = [] if optimised else ["-O0"]
        return {"sanitize": level, "tsan": level}
    hot = _lies_in(package, _HOT)
    level = ["-O1"] if hot else [] if optimised else ["-O0"]
    fuzzed = _lies_in(package, _FUZZED) or not _lies_in(package, _NOT_FUZZED)
    return {"sanitize": level + ([_COVERAGE] if fuzzed else []), "tsan": level}
