"""Compares the ids of tokens with those of the package tokenizers, and the ids of terms with those of
keras.layers.StringLookup. run.sh runs it."""
import os
import random
import tempfile
import unicodedata
import unittest

from harness import tool

from tokenizers import ByteLevelBPETokenizer, Tokenizer, models, normalizers, pre_tokenizers, processors

POOLS = (
    "abcdefghij ABC  .,'!?-0123",
    "'s 'll 've 're 't 'm 'd",
    "éèüñçÅß İıſ K ﬁ",
    "中文字符日本語漢字 ひらカタ 한국어 \uf900",
    "😀👩\u200d💻🏽🇩🇪❤️",
    "שלום مرحبا \u200f",
    "\x00\x01\x07\x1b\x7f\x85\xad\u200b\ufeff\ufffd",
    "\u2028\u2029\u3000\u00a0\u1680 \n\t\r  ",
    "\u0301\u0323\u0345\u302e\u1b44\u0f71\u0f72\u0958",
    "a\u0301\u0316\u302eb\u302f\u302e",
    "αΣς ДЖдж",
    "½²³①Ⅷ٣",
)


def corpus(seed, count):
    rng = random.Random(seed)
    texts = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randrange(12)):
            pool = rng.choice(POOLS)
            parts.append("".join(rng.choice(pool) for _ in range(rng.randrange(1, 8))))
        if rng.random() < 0.05:
            parts.append(rng.choice("abé漢") * rng.choice((99, 100, 101, 140)))
        texts.append("".join(parts))
    return texts


def ids_of(tokenizer, texts):
    """Returns the ids that the runtime computes. Texts are strings or bytes."""
    as_bytes = [text if isinstance(text, bytes) else text.encode() for text in texts]
    settings = {"max_length": 1 << 16, "add_special_tokens": False, **tokenizer}
    return tool("tokenize", {"tokenizer": settings, "texts": [text.hex() for text in as_bytes]})


class Tokenize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.texts = corpus(1, 2000)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write_vocabulary(self):
        """Writes a vocabulary with most characters of the corpus, and some parts of its words."""
        rng = random.Random(2)
        tokens = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}

        def add(token):
            if token.strip() and not set(token) & set("\r\n"):
                tokens.setdefault(token, len(tokens))

        for char in sorted(set("".join(self.texts))):
            for form in (char, char.lower(), *unicodedata.normalize("NFD", char.lower())):
                if rng.random() < 0.9:
                    add(form)
                    add("##" + form)
        for text in self.texts[:500]:
            for word in text.lower().split():
                size = rng.randrange(1, 6)
                add(word[:size])
                add("##" + word[size:size + 3])
        # Published vocabularies also have white space at the end of lines, blank lines and repeated tokens.
        lines = [token + rng.choice(("", "", "", " ", "\t", "\u3000")) for token in tokens]
        for line in ("", " ", *rng.sample(lines[4:], 20)):
            lines.insert(rng.randrange(4, len(lines)), line)
        with open(self.path("vocab.txt"), "w", newline="\n", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
        return models.WordPiece.from_file(self.path("vocab.txt"), unk_token="[UNK]")

    def test_wordpiece(self):
        model = self.write_vocabulary()
        for lower, strip in ((True, True), (True, False), (False, False), (False, True)):
            with self.subTest(lower=lower, strip=strip):
                peer = Tokenizer(model)
                peer.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=strip)
                peer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
                ours = ids_of({"name": "wordpiece", "vocabulary": self.path("vocab.txt"), "lower_case": lower,
                               "strip_accents": strip}, self.texts)
                for text, ids in zip(self.texts, ours):
                    self.assertEqual(peer.encode(text).ids, ids, repr(text))

    def test_bpe(self):
        trained = ByteLevelBPETokenizer()
        trained.train_from_iterator(self.texts, vocab_size=1500, special_tokens=["<|endoftext|>"],
                                    show_progress=False)
        trained.save_model(self.folder)
        files = {"name": "bpe", "vocabulary": self.path("vocab.json"), "merges": self.path("merges.txt")}
        peer = Tokenizer(models.BPE.from_file(files["vocabulary"], files["merges"]))
        peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        texts = self.texts + corpus(3, 2000)
        for text, ids in zip(texts, ids_of(files, texts)):
            self.assertEqual(peer.encode(text).ids, ids, repr(text))
        # Bytes that are not UTF-8 are replaced, as in Python.
        damaged = [b"a\xff\xfeb", b"\xe2\x82 x", b"\xed\xa0\x80\xf0\x9f\x98", b"\xc0\x80\xc3"]
        for text, ids in zip(damaged, ids_of(files, damaged)):
            self.assertEqual(peer.encode(text.decode(errors="replace")).ids, ids, repr(text))

    def test_every_character_has_the_same_class_in_bpe(self):
        trained = ByteLevelBPETokenizer()
        trained.train_from_iterator(["a1. a1. "], show_progress=False)
        trained.save_model(self.folder)
        files = {"name": "bpe", "vocabulary": self.path("vocab.json"), "merges": self.path("merges.txt")}
        peer = Tokenizer(models.BPE.from_file(files["vocabulary"], files["merges"]))
        peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        rng = random.Random(4)
        # Omit characters that Python does not know, because they may be newer than one of the two
        # libraries.
        chars = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cs", "Cn")]
        texts = [f"a{char}a 1{char}1 .{char}. {char}" for char in rng.sample(chars, 5000)]
        for text, ids in zip(texts, ids_of(files, texts)):
            self.assertEqual(peer.encode(text).ids, ids, repr(text))

    def test_special_tokens(self):
        peer = Tokenizer(self.write_vocabulary())
        peer.normalizer = normalizers.BertNormalizer()
        peer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        peer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        for length in (2, 4, 16):
            with self.subTest(length=length):
                peer.enable_truncation(max_length=length)
                settings = {"name": "wordpiece", "vocabulary": self.path("vocab.txt"), "add_special_tokens": True,
                            "max_length": length, "truncate": True}
                for text, ids in zip(self.texts, ids_of(settings, self.texts)):
                    self.assertEqual(peer.encode(text).ids, ids, repr(text))

    def compare_with_file(self, peer, texts, **settings):
        """Compares the ids with those of a tokenizer that is saved as tokenizer.json."""
        peer.save(self.path("tokenizer.json"))
        ours = ids_of({"name": "tokenizer_json", "file": self.path("tokenizer.json"), **settings}, texts)
        for text, ids in zip(texts, ours):
            self.assertEqual(peer.encode(text, add_special_tokens=settings.get("add_special_tokens", False)).ids, ids,
                             repr(text))

    def test_tokenizer_json_of_bert(self):
        peer = Tokenizer(self.write_vocabulary())
        peer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
        peer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        for lower, strip in ((True, None), (False, None), (True, False), (False, True)):
            with self.subTest(lower=lower, strip=strip):
                peer.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=strip)
                self.compare_with_file(peer, self.texts)
        for name, processor in (
            ("bert", processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))),
            ("template", processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                       special_tokens=[("[CLS]", 2), ("[SEP]", 3)])),
        ):
            with self.subTest(processor=name):
                peer.post_processor = processor
                self.compare_with_file(peer, self.texts, add_special_tokens=True)

    def test_tokenizer_json_of_gpt2_and_roberta(self):
        trained = ByteLevelBPETokenizer()
        trained.train_from_iterator(self.texts, vocab_size=1500, special_tokens=["<s>", "</s>", "<pad>"],
                                    show_progress=False)
        trained.save_model(self.folder)
        peer = Tokenizer(models.BPE.from_file(self.path("vocab.json"), self.path("merges.txt")))
        peer.add_special_tokens(["<s>", "</s>", "<pad>"])
        for spaced in (False, True):
            with self.subTest(spaced=spaced):
                peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
                peer.post_processor = processors.ByteLevel()
                self.compare_with_file(peer, self.texts)
                peer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0), add_prefix_space=spaced)
                self.compare_with_file(peer, self.texts, add_special_tokens=True)

    def test_other_tokenizers_are_refused(self):
        peer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        with self.assertRaisesRegex(AssertionError, "tokenizer.json: model.type: expected WordPiece or BPE"):
            self.compare_with_file(peer, ["a"])


class Terms(unittest.TestCase):
    def test_string_lookup(self):
        import keras
        rng = random.Random(5)
        vocabulary = ["red", "green", "größe", "漢字"]
        terms = vocabulary + ["".join(rng.choice("abcé漢") for _ in range(rng.randrange(1, 80))) for _ in range(200)]
        for oov in (1, 2, 7, 1000):
            with self.subTest(oov=oov):
                layer = keras.layers.StringLookup(vocabulary=vocabulary, num_oov_indices=oov)
                ours = tool("look-up", {"vocabulary": vocabulary, "num_oov_indices": oov, "terms": terms})
                self.assertEqual([int(i) for i in layer(terms)], ours)


if __name__ == "__main__":
    unittest.main()
