#!/usr/bin/env python3
"""Writes the models in deploy/examples/models: NAME.json, and NAME.yaml, a job that trains a small one.
Also writes the models of the benchmarks, tests/bench/models/NAME.json.

    deploy/dev/write_models.py            rewrites them
    deploy/dev/write_models.py --check    checks that they are current and changes nothing

The JSON is what Keras 3's model.to_json() writes, without arguments that have Keras' default values.
Keras reads it with keras.models.model_from_json, and the trainer with `model.keras_json`.
"""

import argparse
import pathlib
import sys

from architectures import (bert, densenet, encoder_decoder, encoder_layer, gpt2, lstm,
                           neural_matrix_factorization, resnet, translation)

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES, BENCHMARKS = ROOT / "deploy/examples/models", ROOT / "tests/bench/models"

JOB = """\
# {title}
#
{use}
# A run continues from the state in the claim {name}-model. For `tfjob run`, this is the folder
# ~/.local/share/tfjob/claims/default/{name}-model. To start again, remove the claim or the folder.
#
# deploy/dev/write_models.py writes this file.
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
data:
  training.yaml: |
    model: {{keras_json: /config/model.json}}
{training}
    strategy: {{mode: async, placement: balanced}}  # used if the job has ps tasks
    model_dir: /model
    save_summary_steps: 200
    log_step_count_steps: 200
  model.json: |
{model}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {name}-data
  annotations:
    tfjob.dev/local-path: {data}  # what `tfjob run` uses
spec:
  accessModes: [ReadWriteMany]
  resources:
    requests: {{storage: 100Mi}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {name}-model
spec:
  accessModes: [ReadWriteMany]
  resources:
    requests: {{storage: 1Gi}}
---
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: {name}
spec:
  runPolicy:
    cleanPodPolicy: Running
    backoffLimit: 12
  tfReplicaSpecs:
{replicas}"""

REPLICA = """\
    {role}:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          securityContext: {{runAsNonRoot: true, fsGroup: 65532, seccompProfile: {{type: RuntimeDefault}}}}
          containers:
            - name: tensorflow
              securityContext: {{allowPrivilegeEscalation: false, capabilities: {{drop: [ALL]}}}}
              image: registry.invalid/tfjob/trainer:0.1.0
              args: [--config=/config/training.yaml]
              volumeMounts:
                - {{name: config, mountPath: /config, readOnly: true}}
{mounts}          volumes:
            - name: config
              configMap: {{name: {name}}}
{volumes}"""

IMAGES = """\
# Data: `tfjob run` reads Debian's package dataset-fashion-mnist. In a cluster, first copy the
# package's files to the claim {name}-data; docs/getting-started.md says how."""

MADE = """\
# Data: first run deploy/examples/models/make_data.py {kind} {folder}
# In a cluster, copy the two files to the claim {name}-data; docs/getting-started.md says how."""


def replica(name, role):
    mounts, volumes = "", ""
    if role != "PS":
        readonly = "" if role == "Chief" else ", readOnly: true"
        mounts = ("                - {name: data, mountPath: /data, readOnly: true}\n"
                  f"                - {{name: model, mountPath: /model{readonly}}}\n")
        volumes = ("            - name: data\n"
                   f"              persistentVolumeClaim: {{claimName: {name}-data, readOnly: true}}\n"
                   "            - name: model\n"
                   f"              persistentVolumeClaim: {{claimName: {name}-model}}\n")
    return REPLICA.format(name=name, role=role, mounts=mounts, volumes=volumes)


def job(name, title, quality, training, model, kind):
    """Returns a manifest with a chief, a worker and a parameter server. `kind` is an argument of
    make_data.py, or None for Fashion-MNIST."""
    folder = "/usr/share/datasets/fashion-mnist" if kind is None else f"/tmp/tfjob-{kind}"
    use = (f"# {quality}\n#\n#     tfjob run deploy/examples/models/{name}.yaml\n#\n" +
           (IMAGES if kind is None else MADE).format(name=name, kind=kind, folder=folder))

    def indented(text):
        return "\n".join("    " + line for line in text.strip("\n").splitlines())

    return JOB.format(name=name, title=title, use=use, training=indented(training), model=indented(model),
                      data=folder, replicas="".join(replica(name, role) for role in ("Chief", "Worker", "PS")))


def fashion_mnist(batch_size, epochs, rate, steps):
    sources = "\n".join(f"""\
  {part}:
    format: idx
    images: /data/{prefix}-images-idx3-ubyte.gz
    labels: /data/{prefix}-labels-idx1-ubyte.gz
    scale: 1/255""" for part, prefix in (("train", "train"), ("eval", "t10k")))
    return f"""\
loss: sparse_categorical_crossentropy
metrics: [accuracy]
optimizer: {{name: adam, learning_rate: {rate}, learning_rate_schedule: {{name: cosine_decay, decay_steps: {steps}}}}}
data:
{sources}
batch_size: {batch_size}
epochs: {epochs}
"""


def arrays(loss, metrics, batch_size, epochs, rate, steps):
    return f"""\
loss: {loss}
metrics: [{metrics}]
optimizer: {{name: adam, learning_rate: {rate}, learning_rate_schedule: {{name: cosine_decay, decay_steps: {steps}}}}}
data:
  train: {{format: npz, file: /data/train.npz}}
  eval: {{format: npz, file: /data/eval.npz}}
batch_size: {batch_size}
epochs: {epochs}
"""


LOGITS = "{name: sparse_categorical_crossentropy, from_logits: true}"


def jobs():
    """Returns the text of each manifest. Each model is a small variant of one of the architectures."""
    letters, target = 40, 10
    translator = "Translates dates in words, letter by letter, to ISO 8601"
    return {
        "resnet-small.yaml": job(
            "resnet-small", "Trains a small residual network on Fashion-MNIST, with a parameter server.",
            "It reaches an accuracy of 0.84 on the test images within 5 minutes on two cores.",
            fashion_mnist(100, 2, 0.003, 1200),
            resnet("resnet_small", [1, 1, 1], 10, [28, 28], 8, stem=False, v1_5=True, momentum=0.9), None),
        "densenet-small.yaml": job(
            "densenet-small", "Trains a small densely connected network on Fashion-MNIST, with a parameter server.",
            "It reaches an accuracy of 0.84 on the test images within 5 minutes on two cores.",
            fashion_mnist(100, 2, 0.003, 1200),
            densenet("densenet_small", [2, 2, 2], 10, [28, 28], 8, stem=False, momentum=0.9), None),
        "neumf-small.yaml": job(
            "neumf-small", "Learns who likes what from ratings (neural collaborative filtering).",
            "It reaches an accuracy of 0.93 on ratings that it has not seen within a minute on two cores.",
            arrays("binary_crossentropy", "accuracy", 128, 20, 0.003, 9000),
            neural_matrix_factorization("neumf_small", 400, 300, 8, [32, 32, 16]), "ratings"),
        "transformer-small.yaml": job(
            "transformer-small", f"{translator}, with a small Transformer.",
            "It gets 98 of 100 letters right within a minute on two cores.",
            arrays(LOGITS, "accuracy", 64, 4, 0.002, 1250),
            encoder_decoder("transformer_small", letters, 56, target, 48, 4, 96, 1, dropout=0.0), "dates"),
        "nmt-small.yaml": job(
            "nmt-small", f"{translator}, with a recurrent network and attention.",
            "It gets 98 of 100 letters right within a minute on two cores.",
            arrays(LOGITS, "accuracy", 64, 4, 0.003, 1250),
            translation("nmt_small", letters, 56, letters, target, 48), "dates"),
        "bert-small.yaml": job(
            "bert-small", "Judges with a small BERT whether sentences follow a formal grammar.",
            "It judges 97 of 100 sentences right within a minute on two cores.",
            arrays(LOGITS, "accuracy", 64, 12, 0.001, 3750),
            bert("bert_small", 34, 24, 32, 4, 64, 2, dropout=0.0, head=2), "judgements"),
        "gpt2-small.yaml": job(
            "gpt2-small", "Learns the sentences of a formal grammar with a small GPT-2.",
            "It predicts 39 of 100 words within a minute on two cores; the grammar leaves the others open.",
            arrays(LOGITS, "accuracy", 64, 4, 0.002, 750),
            gpt2("gpt2_small", 34, 24, 32, 4, 2, dropout=0.0, head=True), "sentences"),
    }


def models():
    """Returns the text of each architecture."""
    image = [224, 224, 3]
    return {
        "resnet-50.json": resnet("resnet50", [3, 4, 6, 3], 1000, image, 64, stem=True, v1_5=False),
        "resnet-50-v1.5.json": resnet("resnet50_v1_5", [3, 4, 6, 3], 1000, image, 64, stem=True, v1_5=True),
        "neumf.json": neural_matrix_factorization("neumf", 138493, 26744, 64, [256, 256, 128, 64]),
        "transformer-base.json": encoder_decoder("transformer_base", 37000, 256, 256, 512, 8, 2048, 6),
        "bert-base.json": bert("bert_base", 30522, 512, 768, 12, 3072, 12),
        "gpt2-124m.json": gpt2("gpt2_124m", 50257, 1024, 768, 12, 12),
        "nmt.json": translation("nmt", 5000, 64, 5000, 64, 256),
        "densenet-121.json": densenet("densenet121", [6, 12, 24, 16], 1000, image, 32, stem=True),
    }


def benchmarks():
    """Returns the text of each model that only a benchmark uses."""
    return {
        "encoder.json": encoder_layer("encoder", 128, 512, 8, 2048),
        "lstm.json": lstm("lstm", 64, 256, 256),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a file is not current")
    check = parser.parse_args().check
    stale = []
    texts = {EXAMPLES / name: text for name, text in {**models(), **jobs()}.items()}
    texts |= {BENCHMARKS / name: text for name, text in benchmarks().items()}
    for path, text in texts.items():
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path.name)
        if not check:
            path.write_text(text)
    if check and stale:
        sys.exit(f"not current: {', '.join(stale)}; run deploy/dev/write_models.py")


if __name__ == "__main__":
    main()
