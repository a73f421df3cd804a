"""Runs the case mlp-ranks in PyTorch: DistributedDataParallel over Gloo, with one thread per rank, on
a processor of its own. In between, the first rank trains alone, without DistributedDataParallel,
while the others wait. Tries plain modules ("eager") and a compiled model ("compile")."""

import argparse
import json
import os
import resource
import socket
import statistics
import time

import fashion_mnist
import torch_fashion_mnist

TURNS = 5
MODES = ("eager", "compile")


def flags():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--hidden", default="512,512")
    parser.add_argument("--transport", nargs="+", choices=("tcp", "shm"), default=["tcp"])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--mode", choices=("best", *MODES), default="best")
    options = parser.parse_args()
    options.hidden = [int(units) for units in options.hidden.split(",")]
    return options


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Trainer:
    """Takes steps on batches of this rank, with or without DistributedDataParallel."""

    def __init__(self, torch, options, rank, together):
        self.torch, self.options, self.at = torch, options, 0
        torch.manual_seed(1)
        self.module = torch_fashion_mnist.make_mlp(torch.nn, options)
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=0.1, fused=True)
        model = torch.nn.parallel.DistributedDataParallel(self.module) if together else self.module
        self.model = torch.compile(model) if options.mode == "compile" else model
        images, labels = fashion_mnist.load("train")
        part = slice(rank, None, options.ranks)
        self.images = torch.from_numpy(images[part].copy())
        self.labels = torch.from_numpy(labels[part].copy()).long()

    def run(self, steps):
        batch = self.options.batch
        for _ in range(steps):
            if self.at % (len(self.labels) // batch) == 0:
                order = self.order = self.torch.randperm(len(self.labels))
            order = self.order
            begin = self.at % (len(self.labels) // batch) * batch
            at = order[begin:begin + batch]
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.torch.nn.functional.cross_entropy(self.model(self.images[at]), self.labels[at])
            loss.backward()
            self.optimizer.step()
            self.at += 1
        self.loss = loss.item()


def turn(distributed, run, options):
    distributed.barrier()
    start, cpu = time.monotonic(), cpu_seconds()
    run()
    return (time.monotonic() - start) / options.steps, (cpu_seconds() - cpu) / options.steps


def medians(turns):
    return [statistics.median(column) for column in zip(*turns)]


def rank_main(rank, options, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1",
                      MKL_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", TORCHINDUCTOR_COMPILE_THREADS="1")
    processors = sorted(os.sched_getaffinity(0))
    if options.ranks <= len(processors):
        os.sched_setaffinity(0, processors[rank:rank + 1])
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=options.ranks)
    together = Trainer(torch, options, rank, True)
    alone = Trainer(torch, options, rank, False) if rank == 0 else None
    together.run(fashion_mnist.WARM_UP_STEPS)
    if alone:
        alone.run(fashion_mnist.WARM_UP_STEPS)
    turns, turns_alone = [], []
    for _ in range(TURNS):
        turns.append(turn(distributed, lambda: together.run(options.steps), options))
        turns_alone.append(turn(distributed, lambda: alone.run(options.steps) if alone else None, options))
    distributed.barrier()
    slowest = torch.tensor(medians(turns), dtype=torch.float64)
    distributed.all_reduce(slowest, distributed.ReduceOp.MAX)
    if rank == 0:
        report(torch, options, slowest.tolist(), medians(turns_alone), together.loss)
    distributed.destroy_process_group()


def report(torch, options, together, alone, loss):
    (step, step_cpu), (t1, t1_cpu) = together, alone
    samples = options.ranks * options.batch
    print(json.dumps({
        "case": "mlp-ranks", "peer": f"pytorch-{torch.__version__}", "what": "ranks", "mode": options.mode,
        "transport": "tcp", "ranks": options.ranks, "batch": options.batch, "samples_per_s": round(samples / step, 1),
        "samples_per_cpu_s": round(samples / (options.ranks * step_cpu), 1), "step_s": step, "step_cpu_s": step_cpu,
        "t1_s": t1, "t1_cpu_s": t1_cpu, "speedup": options.ranks * t1 / step, "final_loss": loss,
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 2),
        "load1": os.getloadavg()[0]}), flush=True)


def main():
    options = flags()
    if "tcp" not in options.transport:
        raise SystemExit("Gloo has no shared memory between processes; expected --transport tcp")
    if options.mode == "best":
        fashion_mnist.best_of(MODES, measure="samples_per_s")
        return
    import torch.multiprocessing
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(rank_main, (options, port), nprocs=options.ranks)


if __name__ == "__main__":
    main()
