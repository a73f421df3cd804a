"""Defines the toolkit for --config=cuda and the rules for kernels. deploy/dev/cuda.sh installs the toolkit."""

load("@rules_cc//cc:defs.bzl", "cc_library")

_MISSING = "error: no CUDA toolkit in %s: run deploy/dev/cuda.sh, or set CUDA_HOME to a toolkit of CUDA 13"

# The BUILD file for machines without a toolkit. Every build may read this repository, but only a build that uses the
# toolkit fails.
_BUILD_WITHOUT = """
package(default_visibility = ["//visibility:public"])
sh_binary(name = "nvcc", srcs = ["nvcc.sh"])
genrule(name = "missing", outs = ["include/cuda.h"], cmd = "echo '%s' >&2; exit 1")
cc_library(name = "headers", hdrs = ["include/cuda.h"], includes = ["include"])
"""
_BUILD = """
package(default_visibility = ["//visibility:public"])
sh_binary(name = "nvcc", srcs = ["nvcc.sh"])
cc_library(name = "headers", hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**"]), includes = ["include"])
"""

def _toolkit(ctx):
    root = ctx.os.environ.get("CUDA_HOME", ctx.os.environ.get("HOME", "") + "/.cache/tfjob/cuda/toolkit")
    if not ctx.path(root + "/bin/nvcc").exists:
        ctx.file("nvcc.sh", "echo '%s' >&2\nexit 1\n" % (_MISSING % root))
        ctx.file("BUILD", _BUILD_WITHOUT % (_MISSING % root))
        return
    ctx.symlink(root + "/include", "include")

    # The script contains the versions, so that Bazel recompiles the kernels if the toolkit changes.
    wheels = ctx.read(root + "/wheels.txt") if ctx.path(root + "/wheels.txt").exists else ""
    versions = ctx.execute([root + "/bin/nvcc", "--version"]).stdout + wheels
    ctx.file("nvcc.sh", "exec '%s/bin/nvcc' \"$@\"\n%s" % (root, "".join(["# %s\n" % line for line in versions.split("\n")])))
    ctx.file("BUILD", _BUILD)

cuda_toolkit = repository_rule(implementation = _toolkit, environ = ["CUDA_HOME", "HOME"], local = True)

CUDA = "//deploy/bazel:cuda"

# The options that generate machine code for these GPUs, and PTX, which the driver compiles for later GPUs.
_GENCODE = " ".join(
    ["-gencode arch=compute_%s,code=sm_%s" % (sm, sm) for sm in ["80", "90", "100"]] +
    ["-gencode arch=compute_100,code=compute_100"],
)

# The option -ftz treats subnormal numbers as zero (runtime/kernels/ops.md). A kernel that uses local memory causes a
# compile error.
_NVCC = "$(location @cuda//:nvcc) -ccbin /usr/bin/g++ -std=c++20 -O3 -lineinfo -ftz=true -Werror=all-warnings " + \
        "-Xptxas -warn-lmem-usage,-warn-spills,-Werror " + \
        _GENCODE + " -I. -fatbin"

def cuda_images(name, srcs, hdrs, **attributes):
    """Defines a cc_library that contains each .cu file as a fat binary. Without --config=cuda, it is incompatible.

    The library defines `tfjob_cuda_images`, an array of pairs of pointers, which point to the beginning and the end of
    a fat binary. Both pointers of the last pair are null.
    """
    only_with_cuda = select({CUDA: [], "//conditions:default": ["@platforms//:incompatible"]})
    fatbins = []
    for src in srcs:
        fatbins.append(src.replace(".cu", ".fatbin"))
        native.genrule(
            name = name + "." + fatbins[-1],
            srcs = [src] + hdrs,
            outs = [fatbins[-1]],
            cmd = _NVCC + " -o $@ $(location %s)" % src,
            exec_tools = ["@cuda//:nvcc"],
            message = "Compiling for GPUs",
            target_compatible_with = only_with_cuda,
            visibility = ["//visibility:private"],
        )

    # The assembler embeds every file, because C++ source of that size would take too long to compile.
    native.genrule(
        name = name + ".object",
        srcs = fatbins,
        outs = [name + ".o"],
        cmd = """
            n=0
            pairs=
            source=
            for f in $(SRCS); do
              source+="asm(\\".section .rodata\\\\n.balign 64\\\\nimage$$n:\\\\n.incbin \\\\\\"$$f\\\\\\"\\\\nimage_end$$n:\\\\n.previous\\");"
              source+="extern const char image$$n[] asm(\\"image$$n\\"), image_end$$n[] asm(\\"image_end$$n\\");"
              pairs+="{image$$n, image_end$$n},"
              n=$$((n + 1))
            done
            source+="struct Image { const char *begin, *end; };"
            source+="extern \\"C\\" { extern const Image tfjob_cuda_images[]; const Image tfjob_cuda_images[] = {$$pairs {nullptr, nullptr}}; }"
            echo "$$source" | g++ -x c++ -std=c++20 -c -fPIC -fcf-protection=full -o $@ -""",
        target_compatible_with = only_with_cuda,
        visibility = ["//visibility:private"],
    )
    cc_library(
        name = name,
        srcs = [name + ".o"],
        target_compatible_with = only_with_cuda,
        **attributes
    )
