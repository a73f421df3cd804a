#!/usr/bin/env python3
"""Reports the machine code of the CUDA kernels, and fails if a kernel exceeds its limits.

  deploy/dev/machine_code.py            compiles the kernels, prints the report and checks the limits
  deploy/dev/machine_code.py --update   also writes the limits, from what the compiler generates now

For each kernel and architecture, the report contains the registers per thread, the bytes of spilled
registers and of local memory, and the loads, stores and arithmetic that matter for speed. The limits are
in runtime/kernels/cuda/machine_code.json, for all architectures together: `registers`, `spilled` and
`local` are the most that a kernel may use, `fp64` is the largest number of double-precision
instructions, and `wide_loads` and `wide_stores` are the smallest numbers of 128-bit accesses. Needs the
toolkit that deploy/dev/cuda.sh installs, but no GPU.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "runtime/kernels/cuda"
LIMITS = KERNELS / "machine_code.json"
ARCHITECTURES = ("80", "90", "100")
# The compiler's output differs between architectures, so a new limit leaves a margin.
MARGIN = 4  # registers
MOST = ("registers", "spilled", "local", "fp64")
LEAST = ("wide_loads", "wide_stores")

FUNCTION = re.compile(r"^\s*Function\s*:?\s*(\w+):?\s*$")
RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)")
SPILLS = re.compile(r"Function properties for (\w+)\s+\d+ bytes stack frame, (\d+) bytes spill stores, "
                    r"(\d+) bytes spill loads")
# Arithmetic in double precision, and conversions from and to it.
FP64 = re.compile(r"^(?:DADD|DMUL|DFMA|DSETP|DMNMX|DMMA)\b|^MUFU\.\w*64H|\bF64\b")


def fail(message):
    sys.exit(f"{sys.argv[0]}: {message}")


def tool(name):
    home = os.environ.get("CUDA_HOME") or subprocess.run(
        [ROOT / "deploy/dev/cuda.sh", "--path"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    path = pathlib.Path(home) / "bin" / name
    if not path.exists():
        fail(f"{path} is missing: run deploy/dev/cuda.sh, or set CUDA_HOME to a toolkit of CUDA 13")
    return path


def nvcc_options():
    """Returns the options of the build, which deploy/bazel/cuda.bzl defines."""
    text = (ROOT / "deploy/bazel/cuda.bzl").read_text()
    found = re.search(r'_NVCC = "\$\(location @cuda//:nvcc\) (.*?)" \+ \\\n\s+"(.*?)" \+', text)
    if not found:
        fail("deploy/bazel/cuda.bzl no longer defines _NVCC as this program expects: change nvcc_options")
    # Warnings are not errors here, so that spills are reported with their size.
    return [option for option in " ".join(found.groups()).split()
            if not option.startswith(("-Werror", "-Xptxas", "-warn"))]


def compile_kernels(source, architecture, folder):
    """Returns the machine code of a .cu file, and the spilled bytes of its kernels."""
    cubin = folder / f"{source.stem}.{architecture}.cubin"
    command = [tool("nvcc"), *nvcc_options(), "-Xptxas", "-v", f"-arch=sm_{architecture}", "-I.", "-cubin",
               "-o", cubin, source.relative_to(ROOT)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        fail(f"{source} does not compile for sm_{architecture}:\n{done.stdout}")
    spills = {name: int(stores) + int(loads) for name, stores, loads in SPILLS.findall(done.stdout)}
    return cubin, spills


def sections(text):
    """Divides the output of cuobjdump: returns the lines of each function."""
    functions, lines = {}, None
    for line in text.splitlines():
        found = FUNCTION.match(line)
        if found:
            lines = functions.setdefault(found.group(1), [])
        elif lines is not None:
            lines.append(line)
    return functions


def cuobjdump(option, cubin):
    return subprocess.run([tool("cuobjdump"), option, cubin], stdout=subprocess.PIPE, text=True, check=True).stdout


def measure(source, architecture, folder):
    """Returns the properties of each kernel of a .cu file."""
    cubin, spills = compile_kernels(source, architecture, folder)
    kernels = {}
    for name, lines in sections(cuobjdump("--dump-resource-usage", cubin)).items():
        found = RESOURCES.search("\n".join(lines))
        registers, stack, shared, local = map(int, found.groups())
        kernels[name] = {"registers": registers, "spilled": spills.get(name, 0), "local": stack + local,
                         "shared": shared}
    for name, lines in sections(cuobjdump("-sass", cubin)).items():
        codes = [found.group(1) for found in map(INSTRUCTION.match, lines) if found]
        kernels[name].update({
            "fp64": sum(1 for code in codes if FP64.search(code)),
            "wide_loads": sum(1 for code in codes if code.startswith("LDG") and ".128" in code),
            "wide_stores": sum(1 for code in codes if code.startswith("STG") and ".128" in code),
            "barriers": sum(1 for code in codes if code.startswith("BAR")),
            "instructions": len(codes)})
    if not kernels:
        fail(f"{source} contains no kernel for sm_{architecture}")
    return kernels


def measure_all():
    """Returns the properties by kernel and architecture."""
    sources = sorted(KERNELS.glob("**/*.cu"))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = {(source, a): pool.submit(measure, source, a, pathlib.Path(folder))
                 for source in sources for a in ARCHITECTURES}
        report = {}
        for (_, architecture), task in tasks.items():
            for name, properties in task.result().items():
                report.setdefault(name, {})[f"sm_{architecture}"] = properties
    return report


def print_report(report):
    columns = ("registers", "spilled", "local", "shared", "wide_loads", "wide_stores", "fp64", "barriers",
               "instructions")
    print(f"{'kernel':30} {'':7} " + " ".join(f"{column:>12}" for column in columns))
    for name, by_architecture in sorted(report.items()):
        for architecture, properties in by_architecture.items():
            print(f"{name:30} {architecture:7} " + " ".join(f"{properties[column]:12}" for column in columns))


def limits_of(report):
    limits = {}
    for name, by_architecture in sorted(report.items()):
        values = by_architecture.values()
        limits[name] = {key: max(v[key] for v in values) for key in MOST}
        limits[name].update({key: min(v[key] for v in values) for key in LEAST})
        limits[name]["registers"] += MARGIN
    return limits


def violations(report, limits):
    found = []
    for name, by_architecture in sorted(report.items()):
        if name not in limits:
            found.append(f"{name} has no limits: run {sys.argv[0]} --update, and check what it adds")
            continue
        for architecture, properties in by_architecture.items():
            for key in MOST + LEAST:
                value, limit = properties[key], limits[name][key]
                if (value > limit) if key in MOST else (value < limit):
                    bound = "at most" if key in MOST else "at least"
                    found.append(f"{name} on {architecture}: {key} is {value}, expected {bound} {limit}")
    found += [f"{name} has limits, but there is no such kernel: remove them"
              for name in sorted(set(limits) - set(report))]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the limits")
    update = parser.parse_args().update
    report = measure_all()
    print_report(report)
    if update:
        lines = [f'  "{name}": {json.dumps(values)}' for name, values in limits_of(report).items()]
        LIMITS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    problems = violations(report, json.loads(LIMITS.read_text()))
    for problem in problems:
        print(f"FAILED: {problem}")
    print(f"{len(report)} kernels, {len(ARCHITECTURES)} architectures, {len(problems)} limits exceeded")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
