"""Defines precompiled_header(): headers that many sources include, parsed once for all sources with the same options.

Only clang can use it: gcc 12 accepts a precompiled header with a different level of optimisation, and then crashes.
clang rejects a header that does not fit, with an error that names the option that differs.

The precompiled header includes only headers from outside the workspace, because if any of them changes, the
precompiled header and all sources that use it are recompiled. Sources must still include the headers that they use: the default configuration has no
precompiled header.
"""

# The headers to precompile, found by counting includes in the rooms' sources. Each is included by at least twenty
# sources, or by a header that at least twenty sources include.
_LIBRARY = [
    "absl/functional/function_ref.h",
    "absl/status/status.h",
    "absl/status/statusor.h",
    "absl/strings/str_cat.h",
    "absl/strings/str_join.h",
    "algorithm",
    "array",
    "atomic",
    "charconv",
    "chrono",
    "cmath",
    "condition_variable",
    "cstdint",
    "cstring",
    "deque",
    "filesystem",
    "functional",
    "limits",
    "map",
    "memory",
    "mutex",
    "nlohmann/json.hpp",
    "numeric",
    "optional",
    "random",
    "set",
    "span",
    "sstream",
    "string",
    "string_view",
    "thread",
    "utility",
    "variant",
    "vector",
]
_TEST = _LIBRARY + ["gmock/gmock.h", "gtest/gtest.h"]

def _command(ctx):
    """Returns how this toolchain compiles C++ in this configuration: compiler, arguments, environment, files."""
    toolchain = ctx.attr._toolchain[cc_common.CcToolchainInfo]
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
        use_pic = True,
    )
    how = dict(feature_configuration = features, action_name = "c++-compile")
    return struct(
        compiler = cc_common.get_tool_for_action(**how),
        arguments = cc_common.get_memory_inefficient_command_line(variables = variables, **how),
        environment = cc_common.get_environment_variables(variables = variables, **how),
        files = toolchain.all_files,
    )

def _implementation(ctx):
    command = _command(ctx)
    compiled = ctx.actions.declare_file(ctx.label.name + ".pch")
    includes = []
    for header in _TEST if ctx.attr.test else _LIBRARY:
        includes += ["-include", header]
    ctx.actions.run(
        executable = command.compiler,
        # clang records the absolute path of the main file, which differs between sandboxes, and the modification times
        # of files, which differ between machines. Therefore, the main file is one that every source includes first, and
        # the times are omitted.
        arguments = command.arguments + includes + ["-Xclang", "-fno-pch-timestamp", "-o", compiled.path] +
                    # Instantiate the templates that the headers use only once, here, instead of in each source.
                    ["-fpch-instantiate-templates", "-x", "c++-header", "/usr/include/stdc-predef.h"],
        env = command.environment,
        inputs = command.files,
        outputs = [compiled],
        mnemonic = "CppPrecompile",
        progress_message = "Compiling headers for " + ctx.label.name,
    )
    context = cc_common.create_compilation_context(headers = depset([compiled]))
    return [DefaultInfo(files = depset([compiled])), CcInfo(compilation_context = context)]

precompiled_header = rule(
    implementation = _implementation,
    attrs = {
        "copts": attr.string_list(),
        "test": attr.bool(),
        "_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
