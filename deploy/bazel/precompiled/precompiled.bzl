"""precompiled_header(): headers that most sources include, parsed once for all of them."""

def _flags(ctx):
    """Returns the flags of a C++ compilation with this toolchain and this configuration."""
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
    return struct(
        compiler = cc_common.get_tool_for_action(feature_configuration = features, action_name = "c++-compile"),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        ),
        environment = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        ),
        files = toolchain.all_files,
    )

def _implementation(ctx):
    flags = _flags(ctx)
    header = ctx.actions.declare_file(ctx.label.name + "/precompiled.h")
    compiled = ctx.actions.declare_file(ctx.label.name + "/precompiled.h.gch")
    ctx.actions.symlink(output = header, target_file = ctx.file.header)
    ctx.actions.run(
        executable = flags.compiler,
        arguments = flags.arguments + ["-x", "c++-header", header.path, "-o", compiled.path],
        env = flags.environment,
        inputs = depset([header, ctx.file.header], transitive = [flags.files]),
        outputs = [compiled],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling headers for " + ctx.label.name,
    )
    context = cc_common.create_compilation_context(headers = depset([header, compiled]))
    return [DefaultInfo(files = depset([header, compiled])), CcInfo(compilation_context = context)]

precompiled_header = rule(
    implementation = _implementation,
    attrs = {
        "header": attr.label(allow_single_file = [".h"], mandatory = True),
        "copts": attr.string_list(),
        "_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
