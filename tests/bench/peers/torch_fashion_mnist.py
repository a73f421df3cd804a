"""Trains on Fashion-MNIST in PyTorch: plain modules with the fused optimizer ("eager"), and the
whole step compiled ("compile")."""

import os
import resource

import fashion_mnist

MODES = ("eager", "compile")
IMAGE_MODES = (*MODES, *(mode + "-channels-last" for mode in MODES))


def make_mlp(nn, options):
    """Returns a module that maps images [n, 784] to logits."""
    widths = [784, *options.hidden]
    layers = []
    for rows, cols in zip(widths, widths[1:]):
        layers += [nn.Linear(rows, cols), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], fashion_mnist.CLASSES))


def make_cnn(nn, _):
    """Like make_mlp, but for the model of //tests/bench:cnn."""
    layers = [nn.Unflatten(1, (1, 28, 28))]
    for inputs, outputs in ((1, 32), (32, 64)):
        layers += [nn.Conv2d(inputs, outputs, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(7 * 7 * 64, 1024), nn.ReLU(),
                         nn.Linear(1024, fashion_mnist.CLASSES))


def train(options, make_model, channels_last):
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(options.threads)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # otherwise Inductor's pool would outlive the warm-up
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import torch
    from torch import nn

    torch.set_num_threads(options.threads)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1)
    images, labels = map(torch.from_numpy, fashion_mnist.load("train"))
    labels = labels.long()
    model = make_model(nn, options)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    for layer in model:
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
    if options.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7, fused=True)

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    if options.mode.startswith("compile"):
        step = torch.compile(step)
    per_epoch = len(labels) // options.batch

    def run(steps):
        while steps > 0:
            now = min(steps, per_epoch)
            order = torch.randperm(len(labels))
            for i in range(now):
                at = order[i * options.batch:(i + 1) * options.batch]
                step(images[at], labels[at])
            steps -= now

    run(fashion_mnist.WARM_UP_STEPS)
    steps = max(1, int(options.epochs * per_epoch))
    watch = fashion_mnist.Stopwatch()
    run(steps)
    wall, cpu = watch.elapsed()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    first = fashion_mnist.LOSS_EXAMPLES
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(images[:first]), labels[:first]).item()
        images, labels = map(torch.from_numpy, fashion_mnist.load("t10k"))
        right = (model(images).argmax(1) == labels.long()).float().mean().item()
    fashion_mnist.report(f"pytorch-{torch.__version__}", options, steps, wall, cpu, peak, loss, right)


def main(case, make_model, modes):
    options = fashion_mnist.flags(modes, case)
    if options.mode == "best":
        fashion_mnist.best_of(modes)
    else:
        train(options, make_model, options.mode.endswith("-channels-last"))
