"""Files that the linker reads for -lX in place of Debian's libX.so."""

# Libraries whose code is already in libtfjob.so, because it depends on @debian_sources. A linker script cannot be
# empty, so the scripts of these libraries name libc, which is linked anyway.
_COMPILED = [
    "absl_" + name
    for name in [
        "bad_optional_access", "bad_variant_access", "base", "city", "civil_time", "cord", "cord_internal", "cordz_info",
        "hash", "int128", "log_severity", "low_level_hash", "raw_hash_set", "raw_logging_internal", "spinlock_wait",
        "status", "statusor", "str_format_internal", "strings", "strings_internal", "synchronization", "throw_delegate",
        "time", "time_zone",
    ]
] + ["fmt", "protobuf", "simdjson", "snappy", "spdlog", "yaml-cpp"]

# Libraries whose archives Debian compiles as position-independent code, unlike those of other libraries. They need each
# other, so each name stands for all of them.
_ARCHIVES = ["grpc++", "grpc", "gpr", "leveldb"]
_ARCHIVE = "/usr/lib/x86_64-linux-gnu/lib%s.a"
_GROUP = "GROUP ( %s -lssl -lcrypto -lz )" % " ".join(
    [_ARCHIVE % name for name in _ARCHIVES + ["upb", "cares", "address_sorting"]],
)

# Libraries with generated tables, which contain no code. Debian generates the tables of re2 while it builds re2, so the
# sources do not contain them.
_TABLES = ["re2"]

def link_names(name):
    """Defines the folder NAME with a linker script libX.so for each X."""
    scripts = {"%s/lib%s.so" % (name, x): "INPUT ( -lc )" for x in _COMPILED}
    scripts.update([("%s/lib%s.so" % (name, x), _GROUP) for x in _ARCHIVES])
    scripts.update([("%s/lib%s.so" % (name, x), "INPUT ( %s )" % (_ARCHIVE % x)) for x in _TABLES])
    native.genrule(
        name = name,
        outs = scripts.keys(),
        cmd = "\n".join(["echo '%s' > $(RULEDIR)/%s" % (text, path) for path, text in scripts.items()]),
        tags = ["manual"],
    )
