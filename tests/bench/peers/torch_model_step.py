"""Computes the gradients of a model in PyTorch: plain modules ("eager"), and the whole step compiled
("compile")."""

import os

import fashion_mnist
import model_step

MODES = ("eager", "compile")
IMAGE_MODES = (*MODES, *(mode + "-channels-last" for mode in MODES))


def make_encoder(nn):
    return nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)


def make_lstm(nn):
    class Outputs(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(256, 256, batch_first=True)

        def forward(self, x):
            return self.lstm(x)[0]

    return Outputs()


def make_resnet_50(nn):
    """Returns ResNet-50 as in Keras Applications, where the first convolution of a block has the
    strides."""
    def conv_bn(inputs, outputs, size, stride=1):
        return [nn.Conv2d(inputs, outputs, size, stride, padding=size // 2), nn.BatchNorm2d(outputs, eps=1.001e-5)]

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.layers = nn.Sequential(*conv_bn(inputs, width, 1, stride), nn.ReLU(inplace=True),
                                        *conv_bn(width, width, 3), nn.ReLU(inplace=True),
                                        *conv_bn(width, 4 * width, 1))
            project = stride != 1 or inputs != 4 * width
            self.shortcut = nn.Sequential(*conv_bn(inputs, 4 * width, 1, stride)) if project else nn.Identity()

        def forward(self, x):
            return nn.functional.relu(self.layers(x) + self.shortcut(x))

    layers = [*conv_bn(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)]
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, 2 if stage > 0 and block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000), nn.Softmax(dim=1))


def compute(options, make_model):
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(options.threads)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # otherwise Inductor's pool would outlive the warm-up
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import torch

    torch.set_num_threads(options.threads)
    torch.set_num_interop_threads(1)
    model = make_model(torch.nn)
    x = torch.from_numpy(model_step.noise(options))
    if x.dim() == 4:
        x = x.permute(0, 3, 1, 2)  # a view; in memory, the channels stay last
    if options.mode.endswith("-channels-last"):
        model = model.to(memory_format=torch.channels_last)
    else:
        x = x.contiguous()

    def loss_and_gradients():
        loss = model(x).square().mean()
        loss.backward()
        return loss

    run = torch.compile(loss_and_gradients) if options.mode.startswith("compile") else loss_and_gradients

    def step():
        model.zero_grad(set_to_none=True)
        return run().item()

    model_step.measure(f"pytorch-{torch.__version__}", options, step)


def main(case, make_model, modes=MODES):
    options = model_step.flags(modes, case)
    if options.mode == "best":
        fashion_mnist.best_of(modes)
    else:
        compute(options, make_model)
