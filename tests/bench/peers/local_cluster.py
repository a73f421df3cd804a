"""Runs the processes of a training cluster on this machine, and measures their CPU time between two
markers that the leader prints. Does not depend on any framework.

The leader writes `@begin` and later `@end` to standard output. After each marker, the launcher
records the CPU time of all processes, and then writes a line. The leader waits for this line.
Finally, the leader writes `@result` and a line of JSON.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"localhost:{each.getsockname()[1]}" for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mb(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0)


def _mark(what):
    print(what, flush=True)
    sys.stdin.readline()


@contextlib.contextmanager
def measured(result):
    """Marks the measured part. Called by the leader. Adds the wall-clock seconds of this part to
    the dict `result`."""
    _mark("@begin")
    start = time.perf_counter()
    yield
    result["wall_s"] = time.perf_counter() - start
    _mark("@end")


def report(result):
    """Sends the result to the launcher. Called by the leader at the end."""
    _mark("@result " + json.dumps(result))


def run(cluster, leader, arguments):
    """Starts this program once for each task of `cluster` ({"ps": [address…], …}), with `arguments`
    and TF_CONFIG. Stops all processes when the leader (type, index) has reported. Returns the
    leader's result, with "cpu_s" and "peak_rss_mb" as sums over all processes."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = [(kind, index) for kind, addresses in cluster.items() for index in range(len(addresses))]
        processes = {task: _start(cluster, task, task == leader, arguments, folder) for task in tasks}
        try:
            return _follow(processes, processes[leader])
        except EOFError:
            sys.exit("the leader ended without a result; its log:\n"
                     + (pathlib.Path(folder) / f"{leader[0]}{leader[1]}").read_text()[-3000:])
        finally:
            for process in processes.values():
                process.kill()
                process.wait()


def _start(cluster, task, leads, arguments, folder):
    kind, index = task
    environment = {**os.environ, "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}
    with open(f"{folder}/{kind}{index}", "w") as log:
        return subprocess.Popen([sys.executable, *arguments], env=environment, text=True, stderr=log,
                                stdin=subprocess.PIPE if leads else subprocess.DEVNULL,
                                stdout=subprocess.PIPE if leads else log)


def _follow(processes, leader):
    pids = [process.pid for process in processes.values()]
    cost = {}
    for line in leader.stdout:
        if line.startswith("@begin"):
            cost["cpu_s"] = -sum(map(_cpu_seconds, pids))
        elif line.startswith("@end"):
            cost["cpu_s"] += sum(map(_cpu_seconds, pids))
            cost["peak_rss_mb"] = sum(map(_peak_mb, pids))
        elif line.startswith("@result "):
            return {**json.loads(line.removeprefix("@result ")), **cost}
        else:
            continue
        leader.stdin.write("\n")
        leader.stdin.flush()
    raise EOFError
