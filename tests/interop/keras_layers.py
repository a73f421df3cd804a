"""Writes the tables in docs/guides/coming-from-keras.md: every class of the installed keras.layers, and whether this
project's table of layers contains it; and the arguments of supported layers that interop_tool rejects.

    INTEROP_TOOL=… INTEROP_TRAINER=… PYTHON tests/interop/keras_layers.py     rewrites the tables

Reads this project's table of layers from docs/training-file.md.
tests/contract/training_names_test.cc compares that page with the table in the code.
keras_layers_test.py checks that the page is current."""
import inspect
import os
import re

import keras

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
PAGE = f"{DOCS}/guides/coming-from-keras.md"
NOT_LAYERS = {"Layer", "Wrapper", "InputSpec"}

# Replacements for unsupported layers. The first pattern that matches a class applies.
INSTEAD = [
    ("Lambda", "it contains Python code, which is not run; replace it with layers or functions of `keras.ops`"),
    ("JaxLayer|FlaxLayer|TorchModuleWrapper|TFSMLayer", "it contains a program of another library"),
    ("GroupQueryAttention", "use `MultiHeadAttention`"),
    ("Rand.*|AugMix|AutoContrast|CutMix|MixUp|Equalization|ContrastLimited.*|Solarization|MaxNumBoundingBoxes|Pipeline",
     "augment the images before you write the training data"),
    ("Resizing|CenterCrop", "resize or crop the images before you write the training data"),
    (".*Spectrogram", "compute spectra before you write the training data"),
    ("StringLookup", "give the feature a [`vocabulary`](../training-file.md#vocabularies)"),
    ("TextVectorization",
     "[tokenize](../training-file.md#tokenizers) the feature with one of the supported tokenizers"),
    ("Discretization|Hash.*|IntegerLookup|CategoryEncoding",
     "preprocess the data, and train on ids"),
    ("SpectralNormalization", "–"),
    ("ReversibleEmbedding", "use `Embedding` and a `Dense` layer, which do not share their weights"),
]


def documented():
    """Returns the table of layers in docs/training-file.md: {class: the text about its arguments}."""
    with open(f"{DOCS}/training-file.md") as page:
        section = page.read().split("\n## Layers\n")[1].split("\n### ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))


def supported():
    return list(documented())


def names_in(text):
    """Returns the names in backticks outside parentheses. Names inside parentheses are values."""
    while True:
        shorter = re.sub(r"\([^()]*\)", "", text)
        if shorter == text:
            return re.findall(r"`([a-z][a-z0-9_]*)`", text)
        text = shorter


def parameters(method):
    return [parameter for parameter in inspect.signature(method).parameters.values()
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and parameter.name != "self"]


def arguments(name):
    """Returns the arguments of a layer that docs/training-file.md names, including those of its calls."""
    made = getattr(keras.layers, name)
    known = {parameter.name for method in (made.call, *(one.__init__ for one in made.__mro__[:-1]))
             for parameter in parameters(method)}
    return [argument for argument in written(name, documented()) if argument in known]


def written(name, table):
    """Returns the names in the text about a layer's arguments, and in the texts to which it refers."""
    text = re.sub(r"\(as for `\w+`\)", "", table[name])
    inherited = []
    for whole, other, part, at in re.findall(
            r"((?:^as|the arguments of|arguments in calls as) `([A-Z]\w+)`(?: (up to|from) `(\w+)`)?)", text):
        names = part_of(written(other, table), part, at)
        if "in calls" in whole:
            names = [name for name in names if name in {p.name for p in parameters(getattr(keras.layers, other).call)}]
        inherited += names
        text = text.replace(whole, "")
    return list(dict.fromkeys(inherited + names_in(text)))


def part_of(names, part, at):
    if not part:
        return names
    return names[:names.index(at) + 1] if part == "up to" else names[names.index(at):]


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


def table_of_arguments():
    import unsupported_arguments  # needs interop_tool
    lines = ["| argument | layers that reject it |", "|---|---|"]
    lines += [f"| `{text}` | {', '.join(f'`{name}`' for name in names)} |"
              for text, names in unsupported_arguments.rows(supported())]
    return "\n".join(lines) + "\n"


TABLES = {"layers": table, "arguments": table_of_arguments}


def parts(name):
    """Returns three parts of the page: the text before a table, the table, and the text after it."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    with open(PAGE) as page:
        before, rest = page.read().split(begin)
    inside, after = rest.split(end)
    return before + begin, inside, end + after


if __name__ == "__main__":
    for name, make in TABLES.items():
        before, _, after = parts(name)
        text = before + make() + after
        with open(PAGE, "w") as page:
            page.write(text)
