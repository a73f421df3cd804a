"""Files that the linker reads for -lX in place of Debian's libX.so."""

# Libraries whose code is in libtfjob.so already: :libtfjob.so depends on @debian_sources.
_COMPILED = [
    "absl_" + name
    for name in [
        "bad_optional_access", "bad_variant_access", "base", "city", "civil_time", "cord", "cord_internal", "cordz_info",
        "hash", "int128", "log_severity", "low_level_hash", "raw_hash_set", "raw_logging_internal", "spinlock_wait",
        "status", "statusor", "str_format_internal", "strings", "strings_internal", "synchronization", "throw_delegate",
        "time", "time_zone",
    ]
] + ["fmt", "protobuf", "re2", "simdjson", "snappy", "spdlog", "yaml-cpp"]

# Libraries whose archives, unlike those of other libraries, Debian compiles as position-independent code. They need each
# other, so that each name stands for all.
_ARCHIVES = ["grpc++", "grpc", "gpr", "leveldb"]
_GROUP = "GROUP ( %s -lssl -lcrypto -lz )" % " ".join(
    ["-l:lib%s.a" % name for name in _ARCHIVES + ["upb", "cares", "address_sorting"]],
)

def link_names(name):
    """Defines the folder NAME with a linker script libX.so for each X."""
    scripts = {"%s/lib%s.so" % (name, x): "INPUT ( )" for x in _COMPILED}
    scripts.update([("%s/lib%s.so" % (name, x), _GROUP) for x in _ARCHIVES])
    native.genrule(
        name = name,
        outs = scripts.keys(),
        cmd = "\n".join(["echo '%s' > $(RULEDIR)/%s" % (text, path) for path, text in scripts.items()]),
        tags = ["manual"],
    )
