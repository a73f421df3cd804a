"""Runs the case allreduce with PyTorch's Gloo backend."""

import os
import resource
import socket
import statistics
import time

import torch
import torch.distributed as distributed
import torch.multiprocessing

import allreduce_case

TURNS = 5


def rounds_for(arguments, bytes_):
    return arguments.rounds or min(400, max(4, (200 << 20) // (bytes_ + 1)))


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def operation(arguments, rank, values):
    """Returns a function that performs the operation once."""
    part = values.numel() // arguments.ranks
    own = values[rank * part:(rank + 1) * part]
    other = torch.zeros_like(values)
    return {
        "all_reduce": lambda: distributed.all_reduce(values),
        "reduce_scatter": lambda: distributed.reduce_scatter_tensor(own, values),
        "all_gather": lambda: distributed.all_gather_into_tensor(values, own),
        "broadcast": lambda: distributed.broadcast(values, 0),
        "reduce": lambda: distributed.reduce(values, 0),
        "all_to_all": lambda: distributed.all_to_all_single(other, values),
        "barrier": distributed.barrier,
    }[arguments.operation]


def turn(run, rounds):
    distributed.barrier()
    start, cpu = time.monotonic(), cpu_seconds()
    for _ in range(rounds):
        run()
    return (time.monotonic() - start) / rounds, cpu_seconds() - cpu


def rank_main(rank, arguments, port):
    allreduce_case.bind(arguments, rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=arguments.ranks)
    for bytes_ in arguments.bytes:
        values = torch.zeros(max(1, bytes_ // 4 // arguments.ranks) * arguments.ranks)
        rounds = rounds_for(arguments, bytes_)
        run = operation(arguments, rank, values)
        turn(run, min(rounds, 10))
        turns = [turn(run, rounds) for _ in range(TURNS)]
        mine = torch.tensor([statistics.median(seconds for seconds, _ in turns)], dtype=torch.float64)
        cpu = torch.tensor([sum(cpu for _, cpu in turns)], dtype=torch.float64)
        distributed.all_reduce(mine, distributed.ReduceOp.MAX)
        distributed.all_reduce(cpu)
        if rank == 0:
            allreduce_case.report(arguments, "gloo", bytes_, rounds * TURNS, mine.item(), cpu.item())
    distributed.destroy_process_group()


if __name__ == "__main__":
    parsed = allreduce_case.parse(__doc__, ["tcp"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        free_port = free.getsockname()[1]
    torch.multiprocessing.spawn(rank_main, (parsed, free_port), nprocs=parsed.ranks)
