"""Defines the architectures in deploy/examples/models, as the JSON of Keras 3's model.to_json().

Arguments with Keras' default values are omitted.
"""

import json


class Functional:
    """A functional model under construction. Calling it adds a layer and returns the layer's name."""

    def __init__(self, name):
        self.name = name
        self.layers = []
        self.inputs = []

    def input(self, name, shape, dtype="float32"):
        config = {"batch_shape": [None, *shape], "dtype": dtype, "name": name}
        self._append("InputLayer", config, [])
        self.inputs.append(name)
        return name

    def __call__(self, class_name, *inputs, name, call=None, **config):
        """Adds a layer and calls it. A list of inputs counts as one argument, as for Add. `call`
        contains the other arguments of the call."""
        self._append(class_name, {"name": name, **config}, [self._node(inputs, call)])
        return name

    def operation(self, class_name, x, name, **config):
        """Adds a function of keras.ops.nn, and returns its name."""
        self._append(class_name, {"name": name, **config}, [self._node([x], None)], "keras.src.ops.nn")
        return name

    def again(self, name, *inputs, call=None):
        """Adds another call of the layer `name`."""
        layer = next(layer for layer in self.layers if layer["name"] == name)
        layer["inbound_nodes"].append(self._node(inputs, call))
        return (name, len(layer["inbound_nodes"]) - 1)

    def json(self, *outputs):
        def ends(names):
            return [[name, 0, 0] for name in names]

        first, last = ends(self.inputs), ends(outputs)
        head = json.dumps({"name": self.name})[1:-1]
        layers = ",\n".join(json.dumps(layer, separators=(",", ":")) for layer in self.layers)
        return (f'{{"module":"keras.src.models.functional","class_name":"Functional","config":{{{head},"layers":[\n{layers}],\n'
                f'"input_layers":{json.dumps(first)},"output_layers":{json.dumps(last)}}}}}\n')

    def _append(self, class_name, config, nodes, module="keras.layers"):
        self.layers.append({"module": module, "class_name": class_name, "config": config,
                            "name": config["name"], "inbound_nodes": nodes})

    def _node(self, inputs, call):
        args = [[self._tensor(one) for one in arg] if isinstance(arg, list) else self._tensor(arg)
                for arg in inputs]
        return {"args": args, "kwargs": call or {}}

    @staticmethod
    def _tensor(value):
        name, node = value if isinstance(value, tuple) else (value, 0)
        # Keras requires a shape and a type here, but uses neither.
        return {"class_name": "__keras_tensor__",
                "config": {"shape": [None], "dtype": "float32", "keras_history": [name, node, 0]}}


def images(net, shape):
    """Adds the input. Images without a channel axis get one."""
    x = net.input("images", shape)
    return x if len(shape) == 3 else net("Reshape", x, name="channel", target_shape=[*shape, 1])


def resnet(name, blocks, classes, image, first_width, stem, v1_5, **batch_norm):
    """A residual network of bottleneck blocks (He et al., Deep Residual Learning for Image Recognition).

    v1_5 puts the stride into the 3 x 3 convolution, and omits the biases, which are redundant before a
    batch normalization. The first version is that of Keras Applications.
    """
    net = Functional(name)
    epsilon = 1.001e-5

    def conv_bn(x, prefix, filters, size, strides=1, padding="same", activation=True):
        x = net("Conv2D", x, name=f"{prefix}_conv", filters=filters, kernel_size=size,
                strides=strides, padding=padding, use_bias=not v1_5)
        x = net("BatchNormalization", x, name=f"{prefix}_bn", epsilon=epsilon, **batch_norm)
        return net("Activation", x, name=f"{prefix}_relu", activation="relu") if activation else x

    def bottleneck(x, prefix, width, strides, project):
        skip = x
        if project:
            skip = conv_bn(x, f"{prefix}_0", 4 * width, 1, strides, activation=False)
        first, second = (1, strides) if v1_5 else (strides, 1)
        x = conv_bn(x, f"{prefix}_1", width, 1, first)
        x = conv_bn(x, f"{prefix}_2", width, 3, second)
        x = conv_bn(x, f"{prefix}_3", 4 * width, 1, activation=False)
        x = net("Add", [skip, x], name=f"{prefix}_add")
        return net("Activation", x, name=f"{prefix}_out", activation="relu")

    x = images(net, image)
    if stem:
        x = net("ZeroPadding2D", x, name="conv1_pad", padding=3)
        x = conv_bn(x, "conv1", first_width, 7, 2, padding="valid")
        x = net("ZeroPadding2D", x, name="pool1_pad", padding=1)
        x = net("MaxPooling2D", x, name="pool1_pool", pool_size=3, strides=2)
    else:
        x = conv_bn(x, "conv1", first_width, 3)
    for stage, count in enumerate(blocks):
        for block in range(count):
            strides = 2 if stage > 0 and block == 0 else 1
            x = bottleneck(x, f"conv{stage + 2}_block{block + 1}", first_width << stage, strides,
                           project=block == 0)
    x = net("GlobalAveragePooling2D", x, name="avg_pool")
    return net.json(net("Dense", x, name="predictions", units=classes, activation="softmax"))


def densenet(name, blocks, classes, image, growth, stem, **batch_norm):
    """A densely connected network (Huang et al., Densely Connected Convolutional Networks)."""
    net = Functional(name)
    epsilon = 1.001e-5

    def bn_relu(x, prefix):
        x = net("BatchNormalization", x, name=f"{prefix}_bn", epsilon=epsilon, **batch_norm)
        return net("Activation", x, name=f"{prefix}_relu", activation="relu")

    def conv(x, prefix, filters, size, **arguments):
        return net("Conv2D", x, name=f"{prefix}_conv", filters=filters, kernel_size=size, use_bias=False,
                   **arguments)

    x = images(net, image)
    if stem:
        x = net("ZeroPadding2D", x, name="zero_padding2d", padding=3)
        x = bn_relu(conv(x, "conv1", 2 * growth, 7, strides=2), "conv1")
        x = net("ZeroPadding2D", x, name="zero_padding2d_1", padding=1)
        x = net("MaxPooling2D", x, name="pool1", pool_size=3, strides=2)
    else:
        x = conv(x, "conv1", 2 * growth, 3, padding="same")
    channels = 2 * growth
    for stage, count in enumerate(blocks, start=2):
        for block in range(count):
            prefix = f"conv{stage}_block{block + 1}"
            y = conv(bn_relu(x, f"{prefix}_0"), f"{prefix}_1", 4 * growth, 1)
            y = conv(bn_relu(y, f"{prefix}_1"), f"{prefix}_2", growth, 3, padding="same")
            x = net("Concatenate", [x, y], name=f"{prefix}_concat")
            channels += growth
        if stage < len(blocks) + 1:
            channels //= 2
            x = conv(bn_relu(x, f"pool{stage}"), f"pool{stage}", channels, 1)
            x = net("AveragePooling2D", x, name=f"pool{stage}_pool", pool_size=2)
    x = net("GlobalAveragePooling2D", bn_relu(x, "last"), name="avg_pool")
    return net.json(net("Dense", x, name="predictions", units=classes, activation="softmax"))


def neural_matrix_factorization(name, users, items, factors, widths):
    """NeuMF (He et al., Neural Collaborative Filtering): a product of embeddings in parallel with a perceptron."""
    net = Functional(name)
    user, item = net.input("user", [], "int32"), net.input("item", [], "int32")

    def embedding(x, count, width, part):
        return net("Embedding", x, name=f"{part}_{x}", input_dim=count, output_dim=width)

    product = net("Multiply", [embedding(user, users, factors, "factors"),
                               embedding(item, items, factors, "factors")], name="product")
    x = net("Concatenate", [embedding(user, users, widths[0] // 2, "features"),
                            embedding(item, items, widths[0] // 2, "features")], name="features")
    for i, width in enumerate(widths[1:], start=1):
        x = net("Dense", x, name=f"dense_{i}", units=width, activation="relu")
    x = net("Concatenate", [product, x], name="both")
    return net.json(net("Dense", x, name="prediction", units=1, activation="sigmoid"))


class Transformer(Functional):
    """Parts that the models below share."""

    def __init__(self, name, width, heads, hidden, dropout, epsilon, activation, norm_first):
        super().__init__(name)
        self.width, self.heads, self.hidden = width, heads, hidden
        self.dropout, self.epsilon = dropout, epsilon
        self.activation, self.norm_first = activation, norm_first

    def embedding(self, x, name, count, **arguments):
        return self("Embedding", x, name=name, input_dim=count, output_dim=self.width, **arguments)

    def norm(self, x, name):
        return self("LayerNormalization", x, name=name, epsilon=self.epsilon)

    def drop(self, x, name):
        return self("Dropout", x, name=name, rate=self.dropout) if self.dropout else x

    def residual(self, x, name, layer):
        """Adds layer(x) to x, with the normalization before the layer or after the sum."""
        if self.norm_first:
            return self("Add", [x, self.drop(layer(self.norm(x, f"{name}_norm")), f"{name}_dropout")],
                        name=f"{name}_add")
        y = self("Add", [x, self.drop(layer(x), f"{name}_dropout")], name=f"{name}_add")
        return self.norm(y, f"{name}_norm")

    def attend(self, name, query, value, causal=False):
        return self("MultiHeadAttention", query, value, name=name, num_heads=self.heads,
                    key_dim=self.width // self.heads, dropout=self.dropout,
                    call={"use_causal_mask": True} if causal else None)

    def feed_forward(self, name, x):
        if self.activation == "approximate_gelu":
            x = self("Dense", x, name=f"{name}_hidden", units=self.hidden)
            x = self.operation("Gelu", x, name=f"{name}_gelu", approximate=True)
        else:
            x = self("Dense", x, name=f"{name}_hidden", units=self.hidden, activation=self.activation)
        return self("Dense", x, name=f"{name}_output", units=self.width)

    def block(self, x, name, causal=False, memory=None):
        x = self.residual(x, f"{name}_attention",
                          lambda y: self.attend(f"{name}_self_attention", y, y, causal))
        if memory is not None:
            x = self.residual(x, f"{name}_cross", lambda y: self.attend(f"{name}_cross_attention", y, memory))
        return self.residual(x, f"{name}_ffn", lambda y: self.feed_forward(f"{name}_ffn", y))


def encoder_decoder(name, vocabulary, source_length, target_length, width, heads, hidden, layers, dropout=0.1):
    """The Transformer (Vaswani et al., Attention Is All You Need), with learned positions."""
    net = Transformer(name, width, heads, hidden, dropout, 1e-6, "relu", norm_first=False)
    source = net.input("source", [source_length], "int32")
    source_positions = net.input("source_positions", [source_length], "int32")
    target = net.input("target", [target_length], "int32")
    target_positions = net.input("target_positions", [target_length], "int32")
    scale = width ** 0.5

    def begin(tokens, at, name):
        tokens = net("Rescaling", tokens, name=f"{name}_scale", scale=scale, offset=0.0)
        return net.drop(net("Add", [tokens, at], name=f"{name}_embedding"), f"{name}_dropout")

    x = begin(net.embedding(source, "tokens", vocabulary, mask_zero=True),
              net.embedding(source_positions, "positions", max(source_length, target_length)),
              "encoder")
    for i in range(layers):
        x = net.block(x, f"encoder_{i}")
    y = begin(net.again("tokens", target), net.again("positions", target_positions), "decoder")
    for i in range(layers):
        y = net.block(y, f"decoder_{i}", causal=True, memory=x)
    return net.json(net("Dense", y, name="logits", units=vocabulary))


def bert(name, vocabulary, positions, width, heads, hidden, layers, dropout=0.1, head=None):
    """BERT's encoder and pooler (Devlin et al.). `head` adds a classifier of that many classes."""
    net = Transformer(name, width, heads, hidden, dropout, 1e-12, "gelu", norm_first=False)
    tokens = net.input("tokens", [positions], "int32")
    segments = net.input("segments", [positions], "int32")
    at = net.input("positions", [positions], "int32")
    x = net("Add", [net.embedding(tokens, "token_embedding", vocabulary, mask_zero=True),
                    net.embedding(at, "position_embedding", positions),
                    net.embedding(segments, "segment_embedding", 2)], name="embedding")
    x = net.drop(net.norm(x, "embedding_norm"), "embedding_dropout")
    for i in range(layers):
        x = net.block(x, f"layer_{i}")
    first = net("Flatten", net("Cropping1D", x, name="first", cropping=[0, positions - 1]), name="first_flat")
    pooled = net("Dense", first, name="pooler", units=width, activation="tanh")
    if head is None:
        return net.json(x, pooled)
    return net.json(net("Dense", net.drop(pooled, "head_dropout"), name="logits", units=head))


def gpt2(name, vocabulary, positions, width, heads, layers, dropout=0.1, head=False):
    """GPT-2's decoder (Radford et al.), up to its last normalization. `head` adds logits."""
    net = Transformer(name, width, heads, 4 * width, dropout, 1e-5, "approximate_gelu", norm_first=True)
    tokens = net.input("tokens", [positions], "int32")
    at = net.input("positions", [positions], "int32")
    x = net("Add", [net.embedding(tokens, "wte", vocabulary), net.embedding(at, "wpe", positions)], name="embedding")
    x = net.drop(x, "embedding_dropout")
    for i in range(layers):
        x = net.block(x, f"h_{i}", causal=True)
    x = net.norm(x, "ln_f")
    return net.json(net("Dense", x, name="logits", units=vocabulary, use_bias=False) if head else x)


def translation(name, source_vocabulary, source_length, target_vocabulary, target_length, width):
    """A recurrent translator with attention (Bahdanau et al., as in TensorFlow's tutorial)."""
    net = Functional(name)
    source = net.input("source", [source_length], "int32")
    target = net.input("target", [target_length], "int32")
    x = net("Embedding", source, name="source_embedding", input_dim=source_vocabulary, output_dim=width,
            mask_zero=True)
    gru = {"module": "keras.layers", "class_name": "GRU",
           "config": {"name": "encoder_gru", "units": width, "return_sequences": True}}
    x = net("Bidirectional", x, name="encoder", layer=gru, merge_mode="sum")
    y = net("Embedding", target, name="target_embedding", input_dim=target_vocabulary, output_dim=width)
    y = net("GRU", y, name="decoder", units=width, return_sequences=True)
    context = net("MultiHeadAttention", y, x, name="attention", num_heads=1, key_dim=width)
    y = net("LayerNormalization", net("Add", [y, context], name="attention_add"), name="attention_norm")
    return net.json(net("Dense", y, name="logits", units=target_vocabulary))


def encoder_layer(name, length, width, heads, hidden):
    """A layer of the Transformer's encoder, on its own."""
    net = Transformer(name, width, heads, hidden, 0.0, 1e-6, "relu", norm_first=False)
    return net.json(net.block(net.input("sequences", [length, width]), "encoder"))


def lstm(name, length, features, units):
    """An LSTM layer that returns the outputs of all steps."""
    net = Functional(name)
    return net.json(net("LSTM", net.input("sequences", [length, features]), name="lstm", units=units,
                        return_sequences=True))
