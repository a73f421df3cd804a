"""Runs the case allreduce with PyTorch's Gloo backend."""

import argparse
import json
import os
import re
import resource
import statistics
import time

import torch
import torch.distributed
import torch.multiprocessing

TURNS = 5


def size(text):
    number, unit = re.fullmatch(r"(\d+)\s*([KMG]?)i?B?", text, re.I).groups()
    return int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit.upper()]


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bytes", type=size, nargs="+",
                        default=[64, 1 << 10, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 8 << 20, 25 << 20, 64 << 20])
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--transport", choices=["tcp"], default="tcp")
    return parser.parse_args()


def rounds_for(arguments, bytes_):
    return arguments.rounds or min(400, max(4, (200 << 20) // (bytes_ + 1)))


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def turn(values, rounds):
    torch.distributed.barrier()
    start, cpu = time.monotonic(), cpu_seconds()
    for _ in range(rounds):
        torch.distributed.all_reduce(values)
    return (time.monotonic() - start) / rounds, cpu_seconds() - cpu


def rank_main(rank, arguments, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=arguments.ranks)
    for bytes_ in arguments.bytes:
        values = torch.zeros(max(1, bytes_ // 4))
        rounds = rounds_for(arguments, bytes_)
        turn(values, min(rounds, 10))
        turns = [turn(values, rounds) for _ in range(TURNS)]
        mine = torch.tensor([statistics.median(seconds for seconds, _ in turns)], dtype=torch.float64)
        cpu = torch.tensor([sum(cpu for _, cpu in turns)], dtype=torch.float64)
        torch.distributed.all_reduce(mine, torch.distributed.ReduceOp.MAX)
        torch.distributed.all_reduce(cpu)
        if rank == 0:
            report(arguments, bytes_, mine.item(), cpu.item())
    torch.distributed.destroy_process_group()


def report(arguments, bytes_, seconds, cpu):
    ranks, rounds = arguments.ranks, rounds_for(arguments, bytes_) * TURNS
    print(json.dumps({
        "case": "allreduce", "what": "gloo", "transport": "tcp", "ranks": ranks, "bytes": bytes_,
        "bus_bytes_per_s": 2 * (ranks - 1) / ranks * bytes_ / seconds, "seconds": seconds,
        "cpu_seconds_per_gb": cpu / (rounds * bytes_ * ranks * 1e-9), "load1": os.getloadavg()[0]}), flush=True)


if __name__ == "__main__":
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        free_port = free.getsockname()[1]
    parsed = parse()
    torch.multiprocessing.spawn(rank_main, (parsed, free_port), nprocs=parsed.ranks)
