"""Runs the case allreduce with an implementation of MPI from Debian."""

import os
import pathlib
import subprocess
import tempfile

import allreduce_case

SOURCE = pathlib.Path(__file__).with_name("mpi_allreduce.c")

# The flags that restrict an implementation to one transport.
FLAGS = {
    "openmpi": {
        "tcp": ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"],
        "shm": ["--mca", "pml", "ob1", "--mca", "btl", "vader,self"],
    },
    "mpich": {"tcp": [], "shm": []},
}
ENVIRONMENT = {
    "openmpi": {"tcp": {}, "shm": {}},
    "mpich": {"tcp": {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}, "shm": {}},
}
BIND = {"openmpi": ["--bind-to", "core"], "mpich": ["-bind-to", "core"]}  # each rank to a processor
ALWAYS = {"openmpi": ["--allow-run-as-root", "--oversubscribe"], "mpich": []}


def run(implementation):
    arguments = allreduce_case.parse(f"Runs the case allreduce with {implementation}.", ["tcp", "shm"])
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/mpi_allreduce"
        subprocess.run([f"mpicc.{implementation}", "-O2", SOURCE, "-o", program], check=True)
        binding = BIND[implementation] if allreduce_case.has_processors(arguments) else []
        command = [f"mpirun.{implementation}", *ALWAYS[implementation], *binding, "-n", str(arguments.ranks),
                   *FLAGS[implementation][arguments.transport], program, arguments.operation, str(arguments.rounds),
                   *map(str, arguments.bytes)]
        environment = dict(os.environ, **ENVIRONMENT[implementation][arguments.transport])
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            for line in process.stdout:
                bytes_, rounds, seconds, cpu = line.split()
                allreduce_case.report(arguments, implementation, int(bytes_), int(rounds), float(seconds), float(cpu))
        if process.returncode:
            raise SystemExit(f"{' '.join(map(str, command))} has failed")
