"""Describes what an image contains, as an SPDX 2.3 document
(https://spdx.github.io/spdx-spec/v2.3/): its files, the Debian packages that they come from, and
the packages whose headers were compiled into the programs."""
import hashlib
import json
import os
import re
import subprocess
import urllib.parse

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def debian_packages(paths):
    """Returns {path: name of the Debian package that owns it} for files of this machine."""
    # Look up both paths, because /lib is a link to /usr/lib and dpkg may list a file under either path.
    names = {path: {path, os.path.realpath(path), re.sub("^/usr/lib", "/lib", os.path.realpath(path))} for path in paths}
    found = subprocess.run(["dpkg", "-S", *sorted(set().union(*names.values()))],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    owners = {}
    for line in found.stdout.splitlines():
        packages, _, path = line.partition(": ")
        owners[path] = packages.split(",")[0]
    return {path: owners[name] for path, known in names.items() for name in sorted(known) if name in owners}


def header_packages():
    """Returns the development packages that the programs are compiled with."""
    with open(f"{TREE}/deploy/packages.txt", encoding="utf-8") as listing:
        build = re.search(r"^## build\n(.*?)^## ", listing.read(), re.MULTILINE | re.DOTALL).group(1)
    return [word for word in build.split() if re.fullmatch(r"lib[a-z0-9+.-]+-dev|nlohmann-json3-dev", word)]


def identifier(text):
    return "SPDXRef-" + re.sub("[^A-Za-z0-9.-]", "-", text)


def package_entry(name):
    """Returns the SPDX entry of an installed Debian package, or None if it is not installed."""
    query = subprocess.run(["dpkg-query", "-W", "-f=${Package}\n${Version}\n${Architecture}", name],
                           capture_output=True, text=True, check=False)
    if query.returncode != 0:
        return None
    package, version, architecture = query.stdout.split("\n")
    url = f"pkg:deb/debian/{package}@{urllib.parse.quote(version)}?arch={architecture}"
    return {"SPDXID": identifier(f"Package-{package}"), "name": package, "versionInfo": version,
            "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url}]}


def relation(element, kind, other):
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": other}


def document(name, contents, sources):
    """Returns the document as JSON text. `name` is the image's name and tag, `contents` is {path in
    the image: (bytes, mode)} and `sources` {path in the image: path on this machine}. The same
    input always yields the same text, so the time of creation is SOURCE_DATE_EPOCH or 1970."""
    image = {"SPDXID": "SPDXRef-Image", "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
             "primaryPackagePurpose": "CONTAINER"}
    packages, files, owners = {}, [], debian_packages(sources.values())
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", image["SPDXID"])]

    def add(package):
        if package not in packages:
            packages[package] = package_entry(package)
        return packages[package]

    for path, (data, _) in sorted(contents.items()):
        file = {"SPDXID": identifier(f"File{path}"), "fileName": f".{path}",
                "checksums": [{"algorithm": kind.upper(), "checksumValue": hashlib.new(kind, data).hexdigest()}
                              for kind in ("sha1", "sha256")]}
        files.append(file)
        relations.append(relation(image["SPDXID"], "CONTAINS", file["SPDXID"]))
        owner = owners.get(sources[path])
        entry = add(owner) if owner else None
        if entry:
            relations.append(relation(entry["SPDXID"], "CONTAINS", file["SPDXID"]))
    for package in header_packages():
        entry = add(package)
        if entry:
            relations.append(relation(entry["SPDXID"], "BUILD_DEPENDENCY_OF", image["SPDXID"]))
    stamp = subprocess.run(["date", "-u", "-d", "@" + os.environ.get("SOURCE_DATE_EPOCH", "0"), "+%Y-%m-%dT%H:%M:%SZ"],
                           capture_output=True, text=True, check=True).stdout.strip()
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": "urn:sha256:" + hashlib.sha256("".join(
            file["checksums"][1]["checksumValue"] for file in files).encode()).hexdigest(),
        "creationInfo": {"created": stamp, "creators": ["Tool: deploy/docker/oci_image.py"]},
        "packages": [image, *(entry for entry in packages.values() if entry)], "files": files,
        "relationships": relations}, indent=1) + "\n"
