"""fuzz_target(): a property of arbitrary bytes, its fuzzer, and a test that replays its corpus."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")


def fuzz_target(name, deps):
    """Defines NAME_property, NAME_fuzz and NAME_replay_test.

    The sources are NAME_fuzz.cc, which defines LLVMFuzzerTestOneInput, and, if they exist, NAME_property.cc and
    NAME_property.h. The folder corpus/NAME holds the inputs.
    """
    cc_library(
        name = name + "_property",
        testonly = True,
        srcs = native.glob([name + "_fuzz.cc", name + "_property.*"]),
        linkstatic = True,
        deps = deps,
        alwayslink = True,
    )

    # The target links only with --config=sanitize, which compiles the objects with coverage
    # instrumentation.
    cc_binary(
        name = name + "_fuzz",
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        linkstatic = False,
        tags = ["fuzzer", "manual"],
        deps = [":" + name + "_property"],
    )
    cc_test(
        name = name + "_replay_test",
        size = "small",
        data = native.glob(["corpus/" + name + "/**"]),
        env = {"FUZZ_CORPUS": "tests/fuzz/corpus/" + name},
        deps = [":" + name + "_property", ":replay"],
    )
