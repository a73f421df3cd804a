#!/usr/bin/env python3
"""Makes one small change at a time to a CUDA kernel, and checks that a test fails.

  tests/mutation/run.py                     tries mutants of all kernels for 60 minutes
  tests/mutation/run.py --minutes 10        stops after this time
  tests/mutation/run.py --seed 3            tries the mutants in another order
  tests/mutation/run.py softmax update      only mutants of these .cu files
  tests/mutation/run.py --results FILE      also appends "<passed> <failed> <what>" to FILE

A mutant changes one operator, constant or index, or removes one synchronisation. It is killed if a
test of the kernels fails on the emulator, whose shadow memory checks every access. Mutants that do not
compile, or whose machine code is that of the original, do not count. Prints the survivors. Exits with 1 if
fewer than 95 % of the mutants are killed. docs/gpu.md says what is known about survivors.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "runtime/kernels/cuda"
PACKAGE = "//runtime/kernels/cuda:"
TESTS = ["kernels_test", "attention_test", "layout_test", "gather_test", "optimizers_test", "coalescing_test",
         "products_test", "vision_test", "update_test"]
# The tests that probably kill a mutant of a file. They run first, and all others only if these pass.
FIRST = {"update": "*Optimizer*:*Update*", "general_update": "*Optimizer*", "learning_rate": "*Optimizer*",
         "softmax": "*oftmax*:*Entrop*", "reduce": "*Reduc*:*Sum*", "gather": "*Gather*:*Rows*:*Ids*",
         "layout": "*Layout*:*Transpose*:*Concat*:*Pad*", "cast": "*Cast*", "random": "*Random*:*Dropout*",
         "pooling": "*Pool*", "convolution": "*Conv*", "depthwise": "*Conv*:*epthwise*", "batch_norm": "*BatchNorm*",
         "image_transform": "*Transform*", "check_numbers": "*Number*:*Numeric*",
         "select": "*Select*:*ArgMax*:*Compare*", "attention": "*Attention*", "attention_gradient": "*Attention*",
         "layer_normalization": "*Normalization*"}
RULES = {
    "operator": [(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" \+ ", " - "),
                 (r" - ", " + "), (r" \* ", " + "), (r" / ", " * "), (r" % ", " / "), (r" && ", " || "),
                 (r" \|\| ", " && "),
                 (r" == ", " != "), (r" != ", " == "), (r" \+= ", " -= "), (r" -= ", " += ")],
    "constant": [(r"(?<![\w.])0(?![\w.])", "1"), (r"(?<![\w.])1(?![\w.])", "2"),
                 (r"(?<![\w.])32(?![\w.])", "16"), (r"(?<![\w.])0\.0f", "1.0f"),
                 (r"(?<![\w.])1\.0f", "2.0f"), (r"(?<![\w.])4(?![\w.])", "3")],
    "index": [(r"threadIdx\.x", "(threadIdx.x / 2)"), (r"blockIdx\.x", "(blockIdx.x / 2)"),
              (r"\[(\w+)\]", r"[\1 ^ 1]")],
    "synchronisation": [(r"__syncthreads\(\);", ";")],
}
COMPILE = ["g++", "-std=c++20", "-O2", "-g1", "-w", "-march=x86-64-v3", "-DNDEBUG", "-fPIC", "-fsanitize=thread",
           "-I.", "-x", "c++", "-c"]
DECLARATION = re.compile(r"__shared__|^\s*(?:const )?(?:float|double|u?int\w*) \w+\[")
ENOUGH = 0.95


class Mutant:
    def __init__(self, source, number, kind, before, after, text):
        self.source, self.number, self.kind, self.text = source, number, kind, text
        self.before, self.after = before, after

    def __str__(self):
        return f"{self.source.relative_to(KERNELS)}:{self.number} ({self.kind}): {self.before}  ->  {self.after}"


def mutants_of(source):
    lines = source.read_text().split("\n")
    for i, line in enumerate(lines):
        code = line.split("//")[0]
        if code.lstrip().startswith(("#", "namespace", "template", "static_assert", "TFJOB_KERNEL")):
            continue
        for kind, rules in RULES.items():
            if kind == "index" and DECLARATION.search(code):
                continue
            for pattern, replacement in rules:
                for found in re.finditer(pattern, code):
                    changed = code[:found.start()] + found.expand(replacement) + code[found.end():]
                    text = "\n".join(lines[:i] + [changed] + lines[i + 1:])
                    yield Mutant(source, i + 1, kind, code.strip(), changed.strip(), text)


def in_turns(lists):
    """Returns the elements of all lists: the first of each, then the second of each, and so on."""
    longest = max(map(len, lists))
    return [each[i] for i in range(longest) for each in lists if i < len(each)]


class Linker:
    """Links all tests into one program, with kernels that are compiled here."""

    def __init__(self):
        targets = [PACKAGE + test for test in TESTS]
        subprocess.run(["deploy/dev/bazel.py", "build", "--config=release", *targets], cwd=ROOT, check=True)
        info = subprocess.run(["bazel", "info", "--config=release", "execution_root", "bazel-bin"], cwd=ROOT,
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        found = dict(line.split(": ", 1) for line in info.splitlines())
        self.folder = found["execution_root"]
        binaries = pathlib.Path(found["bazel-bin"]) / "runtime/kernels/cuda"
        # The objects of the tests precede the libraries, so that the linker finds what they need.
        objects, libraries, known = [], [], set()
        for test in TESTS:
            for argument in (binaries / f"{test}-2.params").read_text().splitlines():
                is_file = argument.endswith((".o", ".a", ".lo"))
                if "emulated_kernels" in argument or argument == "-o" or argument.endswith("/" + test):
                    continue
                if argument in known and (is_file or not argument.startswith("-Wl,-")):
                    continue
                known.add(argument)
                (objects if f"/_objs/{test}/" in argument else libraries).append(argument)
        self.arguments = objects + libraries

    def link(self, objects, program):
        done = subprocess.run(["g++", "-o", program, *objects, *self.arguments], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            sys.exit(f"cannot link the tests:\n{done.stdout[-4000:]}")


def compile_kernels(source, output):
    command = [*COMPILE, f"-ffile-prefix-map={source.parent}=.", source, "-o", output]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def machine_code(path):
    """Returns the contents of an object file, without debug information."""
    stripped = path.with_suffix(".stripped")
    subprocess.run(["objcopy", "--strip-debug", path, stripped], check=True)
    return stripped.read_bytes()


def passes(program, tests, seconds):
    command = [program, "--gtest_fail_fast", "--gtest_brief=1", f"--gtest_filter={tests}"]
    try:
        return subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=seconds,
                              check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


class Trial:
    """Tries mutants. The verdicts are "killed", "survived", "equal" (machine code) and "invalid"."""

    def __init__(self, linker, sources, folder):
        self.linker, self.folder = linker, folder
        self.originals = {source: folder / f"{source.stem}.o" for source in sources}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            if not all(pool.map(compile_kernels, self.originals.keys(), self.originals.values())):
                sys.exit("the kernels do not compile")
        self.codes = {source: machine_code(original) for source, original in self.originals.items()}
        program = folder / "original"
        linker.link(self.originals.values(), program)
        start = time.monotonic()
        if not passes(program, "*", 1800):
            sys.exit(f"the tests fail without a mutant: run {program}")
        self.seconds = 5 * (time.monotonic() - start) + 30
        print(f"the tests pass in {time.monotonic() - start:.0f} s without a mutant", flush=True)

    def run(self, mutant):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            folder = pathlib.Path(folder)
            source, changed, program = folder / mutant.source.name, folder / "mutant.o", folder / "test"
            source.write_text(mutant.text)
            if not compile_kernels(source, changed):
                return "invalid"
            original = self.originals[mutant.source]
            if machine_code(changed) == self.codes[mutant.source]:
                return "equal"
            self.linker.link([changed] + [o for o in self.originals.values() if o != original], program)
            first = FIRST.get(mutant.source.stem, "*")
            alive = passes(program, first, self.seconds) and (first == "*" or passes(program, "*", self.seconds))
            return "survived" if alive else "killed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results")
    arguments = parser.parse_args()
    sources = sorted(KERNELS.glob("*.cu")) + sorted(KERNELS.glob("vision/*.cu"))
    chosen = [s for s in sources if not arguments.files or s.stem in arguments.files]
    shuffle = random.Random(arguments.seed).shuffle
    lists = [list(mutants_of(source)) for source in chosen]
    for each in lists:
        shuffle(each)
    mutants = in_turns(lists)
    counts, kinds, survivors = collections.Counter(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Linker(), sources, pathlib.Path(folder))
        end = time.monotonic() + 60 * arguments.minutes
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            verdicts = pool.map(lambda m: trial.run(m) if time.monotonic() < end else "not tried", mutants)
            for mutant, verdict in zip(mutants, verdicts):
                counts[verdict] += 1
                kinds[mutant.kind, verdict] += 1
                if verdict == "survived":
                    survivors.append(mutant)
                    print(f"survived: {mutant}", flush=True)
    tried = counts["killed"] + counts["survived"]
    for kind in RULES:
        print(f"{kind}: {kinds[kind, 'killed']} killed, {kinds[kind, 'survived']} survived")
    print(f"{counts['killed']} of {tried} mutants killed, {counts['equal']} with equal machine code, "
          f"{counts['invalid']} that do not compile, {counts['not tried']} of {len(mutants)} not tried")
    enough = tried > 0 and counts["killed"] >= ENOUGH * tried
    if arguments.results:
        with open(arguments.results, "a", encoding="utf-8") as results:
            results.write(f"{counts['killed']} {0 if enough else len(survivors)} mutants of the CUDA kernels\n")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
