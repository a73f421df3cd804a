#!/usr/bin/env python3
"""Writes an image with one layer as an OCI archive, which `docker load` can also read. Needs
neither a registry nor a daemon:

    oci_image.py --name NAME:TAG… --output FILE.tar --program HOST-PATH=PATH…
                 [--file HOST-PATH=PATH]… [--user UID] [--at-most MB] [--sbom FILE]

Also adds the shared libraries that `ldd` lists for the programs, at the paths that they have on
this machine. The first program is the entry point. With --tree, the files are written to the folder
--output instead. The same input always yields the same bytes. Prints the size of the compressed
layer, and fails if it is larger than --at-most. --sbom names a file for a list of the image's
contents (sbom.py)."""
import argparse
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile

import sbom

MEDIA_TYPE = "application/vnd.oci.image."


def libraries(program):
    """Returns the paths of a program's shared libraries, including the loader. A static program has
    none."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    missing = re.findall(r"(\S+) => not found", listing)
    if missing:
        sys.exit(f"oci_image.py: {program} needs {', '.join(missing)}, which this machine lacks")
    return re.findall(r"(/\S+) \(0x", listing)


def entry(path, kind=tarfile.REGTYPE, mode=0o644, size=0):
    info = tarfile.TarInfo(path.strip("/"))
    info.type, info.mode, info.size = kind, mode, size
    return info


def layer(contents):
    """Returns a tar of the contents {path: (bytes, mode)}, with the folders first. Adds /tmp, which
    everyone can write to."""
    folders = {"/tmp"}
    for path in contents:
        while (path := os.path.dirname(path)) != "/":
            folders.add(path)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in sorted(folders):
            tar.addfile(entry(folder, tarfile.DIRTYPE, 0o1777 if folder == "/tmp" else 0o755))
        for path, (data, mode) in sorted(contents.items()):
            tar.addfile(entry(path, mode=mode, size=len(data)), io.BytesIO(data))
    return out.getvalue()


class Archive:
    """Collects the files of an OCI image layout and writes them to a tar."""

    def __init__(self):
        self.files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def blob(self, data, media_type):
        """Adds a blob and returns its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": MEDIA_TYPE + media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def json_blob(self, value, media_type):
        return self.blob(json.dumps(value).encode(), media_type)

    def write(self, path):
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for name, data in self.files.items():
                tar.addfile(entry(name, size=len(data)), io.BytesIO(data))


def blob_path(descriptor):
    return "blobs/" + descriptor["digest"].replace(":", "/")


def write_image(names, output, contents, config):
    """Writes the image to the file `output`. Returns the size of the compressed layer in bytes."""
    archive = Archive()
    tar = layer(contents)
    compressed = archive.blob(gzip.compress(tar, 9, mtime=0), "layer.v1.tar+gzip")
    config_blob = archive.json_blob({
        "architecture": "amd64", "os": "linux", "config": config,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]},
    }, "config.v1+json")
    manifest = archive.json_blob({"schemaVersion": 2, "mediaType": MEDIA_TYPE + "manifest.v1+json",
                                  "config": config_blob, "layers": [compressed]}, "manifest.v1+json")
    archive.files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [
        {**manifest, "annotations": {"io.containerd.image.name": name,
                                     "org.opencontainers.image.ref.name": name.rpartition(":")[2]}}
        for name in names]}).encode()
    archive.files["manifest.json"] = json.dumps([  # for `docker load`
        {"Config": blob_path(config_blob), "RepoTags": names, "Layers": [blob_path(compressed)]}]).encode()
    archive.write(output)
    return compressed["size"]


def write_tree(folder, contents):
    for path, (data, mode) in contents.items():
        os.makedirs(folder + os.path.dirname(path), exist_ok=True)
        with open(folder + path, "wb") as out:
            out.write(data)
        os.chmod(folder + path, mode)
    os.makedirs(folder + "/tmp", exist_ok=True)
    os.chmod(folder + "/tmp", 0o1777)


def pair(text):
    left, equals, right = text.partition("=")
    if not equals or not left:
        raise argparse.ArgumentTypeError(f'"{text}" is not of the form A=B')
    return left, right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", action="append", required=True, metavar="NAME:TAG")
    parser.add_argument("--output", required=True)
    parser.add_argument("--program", type=pair, action="append", required=True, metavar="HOST-PATH=PATH")
    parser.add_argument("--file", type=pair, action="append", default=[], metavar="HOST-PATH=PATH")
    parser.add_argument("--user", default="0")
    parser.add_argument("--at-most", type=float, metavar="MB")
    parser.add_argument("--sbom", metavar="FILE")
    parser.add_argument("--tree", action="store_true")
    arguments = parser.parse_args()

    files = [(library, library) for program, _ in arguments.program for library in libraries(program)]
    contents, sources = {}, {}
    for source, path in files + arguments.file + arguments.program:
        sources[path] = os.path.abspath(source)
        with open(source, "rb") as data:
            contents[path] = (data.read(), 0o755 if os.access(source, os.X_OK) else 0o644)
    if arguments.sbom:
        with open(arguments.sbom, "w", encoding="utf-8") as out:
            out.write(sbom.document(arguments.name[0], contents, sources))
    if arguments.tree:
        write_tree(arguments.output, contents)
        return
    size = write_image(arguments.name, arguments.output, contents, {
        "Entrypoint": [arguments.program[0][1]], "User": arguments.user, "WorkingDir": "/",
        "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]})
    print(f"{arguments.name[0]}: {size / 1e6:.1f} MB compressed, {len(contents)} files")
    if arguments.at_most is not None and size > arguments.at_most * 1e6:
        sys.exit(f"oci_image.py: {arguments.output} is larger than the {arguments.at_most:g} MB that it may have")


if __name__ == "__main__":
    main()
