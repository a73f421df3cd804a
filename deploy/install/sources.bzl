"""The sources of the libraries that libtfjob.so contains, which deploy/install/sources.sh fetches from Debian."""

# The BUILD file for machines without the sources. Every build may read this repository, but only a build of libtfjob.so
# fails.
_BUILD_WITHOUT = """
genrule(name = "missing", outs = ["missing.cc"], cmd = "echo '%s' >&2; exit 1")
cc_library(name = "sources", srcs = ["missing.cc"], visibility = ["//visibility:public"])
"""

def _debian_sources(ctx):
    script = ctx.path(Label("//deploy/install:sources.sh"))
    listing = ctx.execute([script, "--list"])
    problem = listing.stderr if listing.return_code != 0 else ""
    folders = [line.split(" ") for line in listing.stdout.splitlines()]
    for name, folder in folders:
        if not ctx.path(folder).exists:
            problem = "error: no sources in %s: run deploy/install/sources.sh" % folder
    if problem:
        ctx.file("BUILD", _BUILD_WITHOUT % problem.replace("'", "").replace('"', "").replace("\n", " "))
        return
    for name, folder in folders:
        ctx.symlink(folder, name)
    ctx.symlink(Label("//deploy/install:sources.BUILD"), "BUILD")

debian_sources = repository_rule(implementation = _debian_sources, environ = ["HOME", "XDG_CACHE_HOME"], local = True)
