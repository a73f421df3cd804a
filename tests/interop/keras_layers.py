"""Writes the table of layers in docs/guides/coming-from-keras.md: every class of the installed
keras.layers, and whether this project's table of layers contains it.

    PYTHON tests/interop/keras_layers.py     rewrites the table

Reads this project's table of layers from docs/training-file.md.
tests/contract/training_names_test.cc compares that page with the table in the code.
keras_layers_test.py checks that the page is current."""
import os
import re
import sys

import keras

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
PAGE = f"{DOCS}/guides/coming-from-keras.md"
BEGIN, END = "<!-- layers: begin -->\n", "<!-- layers: end -->\n"
NOT_LAYERS = {"Layer", "Wrapper", "InputSpec"}

# Replacements for unsupported layers. The first pattern that matches a class applies.
INSTEAD = [
    ("Lambda", "it holds Python code, which is not run; replace it by layers or functions of `keras.ops`"),
    ("JaxLayer|FlaxLayer|TorchModuleWrapper|TFSMLayer", "it holds a program of another library"),
    ("ConvLSTM3D", "use `TimeDistributed` convolutions and an `LSTM`"),
    ("GroupQueryAttention", "use `MultiHeadAttention`"),
    ("Rand.*|AugMix|AutoContrast|CutMix|MixUp|Equalization|ContrastLimited.*|Solarization|MaxNumBoundingBoxes|Pipeline",
     "augment the images before you write the training data"),
    ("Resizing|CenterCrop", "resize or crop the images before you write the training data"),
    (".*Spectrogram", "compute spectra before you write the training data"),
    ("StringLookup", "give the feature a [`vocabulary`](../training-file.md#vocabularies)"),
    ("TextVectorization", "[tokenize](../training-file.md#tokenizers) the feature, with another tokenizer"),
    ("Discretization|Hash.*|IntegerLookup|CategoryEncoding",
     "preprocess the data, and train on ids"),
    ("SpectralNormalization", "–"),
    ("ReversibleEmbedding", "use `Embedding` and a `Dense` layer, which do not share their weights"),
]


def supported():
    with open(f"{DOCS}/training-file.md") as page:
        section = page.read().split("\n## Layers\n")[1].split("\n### ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def keras_classes():
    """Returns the names of Keras' layers, each class under its own name only."""
    classes = {name: getattr(keras.layers, name) for name in dir(keras.layers)}
    return sorted(name for name, made in classes.items()
                  if isinstance(made, type) and made.__name__ == name and name not in NOT_LAYERS)


def instead(name):
    for pattern, text in INSTEAD:
        if re.fullmatch(pattern, name):
            return text
    return "–"


def table():
    ours = set(supported())
    lines = [f"Layers of Keras {keras.__version__}:\n", "| layer | supported | instead |", "|---|---|---|"]
    lines += [f"| `{name}` | yes | |" if name in ours else f"| `{name}` | no | {instead(name)} |"
              for name in keras_classes()]
    return "\n".join(lines) + "\n"


def parts():
    """Returns three parts of the page: the text before the table, the table, and the text after
    it."""
    with open(PAGE) as page:
        before, rest = page.read().split(BEGIN)
    inside, after = rest.split(END)
    return before + BEGIN, inside, END + after


if __name__ == "__main__":
    before, _, after = parts()
    with open(PAGE, "w") as page:
        page.write(before + table() + after)
    sys.exit(0)
