"""numerics_test: a test that runs on every device."""

load("//deploy/bazel:room.bzl", "cc_library", "cc_test")

def numerics_test(name, srcs, deps, data = []):
    """Compiles a test once. Links it with the CPU as `name`, and with the fake device as `name` + "_on_fake"."""
    cc_library(
        name = name + "_cases",
        testonly = True,
        srcs = srcs,
        deps = deps + [":test_device", "@system//:gtest"],
        alwayslink = True,
    )
    for suffix, device in [("", ":cpu_device"), ("_on_fake", ":fake_device")]:
        cc_test(
            name = name + suffix,
            size = "small",
            data = data,
            deps = [":" + name + "_cases", device, "//tests:test_main"],
        )
