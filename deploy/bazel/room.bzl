"""cc_library and cc_test of a room (a folder that is one Bazel package), and room(), which ends its BUILD file.

The sources of a room include mostly the same headers, and parsing these takes most of the time of a build. Every
configuration except the default one sets --define=unity=on (.bazelrc): room() then compiles a room's libraries as one
file, and its small tests as another. Nothing else differs: targets keep their names, and compiler errors name the real
files.

    load("//deploy/bazel:room.bzl", "cc_library", "cc_test", "room")

    cc_library(name = "ttl", srcs = ["ttl.cc"], hdrs = ["ttl.h"], deps = [":snapshot"])
    cc_test(name = "ttl_test", size = "small", srcs = ["ttl_test.cc"], deps = [":ttl", "//tests:test_main"])
    room()

In such a configuration
- two files of a room must not define the same name at namespace scope, not even in unnamed namespaces; tests may;
- the copts and linkopts of one library apply to the whole room.
A library is compiled separately if it has any attribute other than srcs, hdrs, deps, visibility, copts and linkopts
(such as data or testonly); so is a test that is not small, or that has any attribute other than srcs and deps.

--config=sanitize and --config=tsan compile rooms with further options (precompiled/options.bzl) and with a precompiled
header (precompiled/precompiled.bzl).
"""

load("//deploy/bazel/precompiled:options.bzl", "choose")

_UNITY = "//deploy/bazel:unity"

def _sources(files):
    return [f for f in files if f.endswith(".cc")]

def _headers(files):
    return [f for f in files if not f.endswith(".cc")]

def _note(kind, name, srcs, hdrs = [], **attributes):
    """Keeps a target's attributes where room() can read them: native.existing_rules() cannot look into a select()."""
    native.filegroup(
        name = name + ".parts",
        srcs = srcs,
        data = hdrs,
        tags = ["manual", "room_" + kind] + [a + "=" + v for a, values in attributes.items() for v in values],
        visibility = ["//visibility:private"],
    )

def _compile(kind, copts = []):
    """Returns the copts and deps that sources of this kind ("library" or "test") get in addition to their own."""
    own = copts if type(copts) == "list" else ["-O?"]  # a macro cannot read the values of a select()
    chosen = choose(native.package_name(), kind, optimised = any([c.startswith("-O") for c in own]))
    options, headers = {"//conditions:default": []}, {"//conditions:default": []}
    for configuration, flags in chosen.items():
        setting = "//deploy/bazel:" + configuration
        options[setting] = flags
        if not own:  # sources with options of their own cannot use the precompiled header
            header = kind + "".join(flags)
            options[setting] = flags + ["-include-pch", "$(BINDIR)/deploy/bazel/precompiled/%s.pch" % header]
            headers[setting] = ["//deploy/bazel/precompiled:" + header]
    return struct(copts = select(options), deps = select(headers))

def _join(name, srcs, rename):
    """Defines a file with the text of all `srcs`. The compiler's messages name the original file of each line."""
    text = "cat $$f"
    if rename:
        # Name the unnamed namespaces, so that different tests may define the same names.
        text = "sed \"s/^namespace {/namespace $$(basename $$f .cc) {/\" $$f"
    native.genrule(
        name = name + ".joined",
        srcs = srcs,
        outs = [name + ".joined.cc"],
        cmd = "for f in $(SRCS); do echo \"#line 1 \\\"$$f\\\"\"; " + text + "; done > $@",
        tags = ["manual"],
        visibility = ["//visibility:private"],
    )
    return [name + ".joined.cc"]

def _joined(name, srcs, rename):
    """Returns `srcs`, in a unity build with its sources as one file."""
    if type(srcs) != "list" or len(_sources(srcs)) < 2:
        return srcs
    files = _join(name, _sources(srcs), rename)
    return _headers(srcs) + select({_UNITY: files, "//conditions:default": _sources(srcs)})

def cc_library(name, srcs = [], hdrs = [], deps = [], copts = [], linkopts = [], visibility = None, **attributes):
    parts = dict(srcs = srcs, hdrs = hdrs, deps = deps, copts = copts, linkopts = linkopts)
    if attributes:
        how = _compile("test" if attributes.get("testonly") else "library", copts)
        parts.update(copts = copts + how.copts, deps = deps + (how.deps if srcs else []))
        parts["srcs"] = _joined(name, srcs, rename = False)
        native.cc_library(name = name, visibility = visibility, **dict(parts, **attributes))
        return
    _note("library", name, **parts)
    if _sources(srcs):
        parts["srcs"] = select({_UNITY: [], "//conditions:default": srcs})
        parts["deps"] = select({_UNITY: [":room"], "//conditions:default": deps})
    native.cc_library(name = name, visibility = visibility, **parts)

def cc_test(name, deps, srcs = [], size = "small", **attributes):
    if attributes or size != "small" or not srcs:
        how = _compile("test", attributes.get("copts", []))
        attributes["copts"] = attributes.get("copts", []) + how.copts
        sources = _joined(name, srcs, rename = True)
        native.cc_test(name = name, srcs = sources, deps = deps + (how.deps if srcs else []), size = size, **attributes)
        return
    _note("test", name, srcs, deps = deps)
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        deps = deps,
        target_compatible_with = select({_UNITY: ["@platforms//:incompatible"], "//conditions:default": []}),
    )

def _collect(kind):
    """Returns the attributes and labels of all targets of this kind that _note has recorded, without duplicates."""
    found = dict(srcs = {}, hdrs = {}, deps = {}, copts = {}, linkopts = {}, labels = {})
    for name, rule in native.existing_rules().items():
        if "room_" + kind not in rule.get("tags", []):
            continue
        found["labels"][":" + name[:-len(".parts")]] = True
        found["srcs"].update([(s, True) for s in rule["srcs"]])
        found["hdrs"].update([(h, True) for h in rule["data"]])
        for tag in rule["tags"]:
            attribute, _, value = tag.partition("=")
            if attribute in found:
                found[attribute][value] = True
    return struct(**{attribute: values.keys() for attribute, values in found.items()})

def room(files = 1):
    """Defines the target `room`, the room's libraries as one, and the test `room_test`, its small tests as one.

    A room whose sources take long to compile may be divided into several `files`, which are compiled in parallel.
    """
    libraries = _collect("library")
    sources = _sources(libraries.srcs)
    if sources:
        joined = []
        for i in range(files):
            joined += _join("room" if files == 1 else "room.%d" % (i + 1), sources[i::files], rename = False)
        how = _compile("library", libraries.copts)
        native.cc_library(
            name = "room",
            srcs = joined + _headers(libraries.srcs),
            hdrs = libraries.hdrs,
            deps = [d for d in libraries.deps if d not in libraries.labels] + how.deps,
            copts = libraries.copts + how.copts,
            linkopts = libraries.linkopts,
            tags = ["manual"],
            visibility = ["//visibility:private"],
        )
    tests = _collect("test")
    if tests.srcs:
        how = _compile("test")
        native.cc_test(
            name = "room_test",
            size = "medium",
            srcs = _join("room_test", _sources(tests.srcs), rename = True) + _headers(tests.srcs),
            deps = tests.deps + how.deps,
            copts = how.copts,
            target_compatible_with = select({_UNITY: [], "//conditions:default": ["@platforms//:incompatible"]}),
        )
