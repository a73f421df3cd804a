#!/usr/bin/env python3
"""Creates the data of the examples in this folder that do not train on images.

    deploy/examples/models/make_data.py ratings|dates|sentences|judgements FOLDER

Writes train.npz and eval.npz to FOLDER, which is created. The same kind always yields the same data.

    ratings      user, item -> y: does the user like the item? Tastes and items are random
                 vectors; their product decides, with some noise
    dates        source, target -> y: dates in words, letter by letter, and the same in ISO 8601
    sentences    tokens -> y: words of a small formal grammar, and the word that comes next
    judgements   tokens -> y: does the sentence follow that grammar?

The data of every kind except ratings also contain positions, for models that have no other
information about the order of a sequence.
"""

import array
import datetime
import math
import pathlib
import random
import sys
import zipfile


def npy(values, shape, code, descr):
    """Returns a .npy file (numpy.org/doc/stable/reference/generated/numpy.lib.format.html)."""
    data = array.array(code, values)
    if sys.byteorder == "big":
        data.byteswap()
    head = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + data.tobytes()


def write(path, arrays):
    """Writes a .npz file of rows of integers. The labels are int64, and everything else is int32."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in arrays.items():
            shape = [len(rows)]
            values = rows
            if isinstance(rows[0], list):
                shape.append(len(rows[0]))
                values = [value for row in rows for value in row]
            code, descr = ("q", "<i8") if name == "y" else ("i", "<i4")
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), npy(values, shape, code, descr))


def columns(rows):
    """Turns a list of dicts into a dict of lists."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def ratings(draw, count):
    users, items, factors = 400, 300, 6
    vector = lambda seed: [random.Random(seed).gauss(0, 1) for _ in range(factors)]
    tastes = [vector(f"user {i}") for i in range(users)]
    kinds = [vector(f"item {i}") for i in range(items)]

    def row():
        user, item = draw.randrange(users), draw.randrange(items)
        product = sum(a * b for a, b in zip(tastes[user], kinds[item])) / math.sqrt(factors)
        return {"user": user, "item": item, "y": int(product + draw.gauss(0, 0.1) > 0)}

    return columns([row() for _ in range(count)])


LETTERS = "\0^ abcdefghijklmnopqrstuvwxyz-0123456789"  # \0 is padding, ^ starts the answer
SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
         "sixteen seventeen eighteen nineteen").split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
            "nine": "ninth", "twelve": "twelfth", "twenty": "twentieth", "thirty": "thirtieth"}
SOURCE_LENGTH, TARGET_LENGTH = 56, 10


def in_words(number):
    if number < 20:
        return SMALL[number]
    tens = TENS[number // 10]
    return tens if number % 10 == 0 else f"{tens} {SMALL[number % 10]}"


def year_in_words(year):
    hundreds, rest = divmod(year, 100)
    if 2000 <= year < 2010:
        return "two thousand" + (f" {SMALL[rest]}" if rest else "")
    if rest == 0:
        return f"{in_words(hundreds)} hundred"
    return f"{in_words(hundreds)} {'oh ' if rest < 10 else ''}{in_words(rest)}"


def ordinal(number):
    *first, last = in_words(number).split()
    return " ".join([*first, ORDINALS.get(last, last + "th")])


def date_in_words(draw, date):
    month = date.strftime("%B").lower()
    form = draw.choice(["the {day} of {month} {year}", "{month} {day} {year}", "{day} {month} {year}"])
    return form.format(day=ordinal(date.day), month=month, year=year_in_words(date.year))


def dates(draw, count):
    first = datetime.date(1900, 1, 1).toordinal()
    last = datetime.date(2099, 12, 31).toordinal()

    def row():
        date = datetime.date.fromordinal(draw.randint(first, last))
        source = [LETTERS.index(letter) for letter in date_in_words(draw, date)]
        answer = [LETTERS.index(letter) for letter in date.isoformat()]
        return {"source": source + [0] * (SOURCE_LENGTH - len(source)),
                "source_positions": list(range(SOURCE_LENGTH)),
                "target": [LETTERS.index("^"), *answer[:-1]],
                "target_positions": list(range(TARGET_LENGTH)),
                "y": answer}

    return columns([row() for _ in range(count)])


# Singular and plural forms: a verb agrees with its subject in number, even if other words stand
# between them.
NOUNS = [("dog", "dogs"), ("cat", "cats"), ("bird", "birds"), ("child", "children"), ("king", "kings")]
VERBS = [("sleeps", "sleep"), ("sings", "sing"), ("runs", "run"), ("laughs", "laugh")]
SEES = [("sees", "see"), ("likes", "like"), ("follows", "follow")]
WORDS = ["", "<start>", ".", "the", "a", "some", "near", "that", "old", "small",
         *[word for pair in NOUNS + VERBS + SEES for word in pair]]
SENTENCE_LENGTH = 24


def noun_phrase(draw, number, depth):
    phrase = [draw.choice(["the", "some"] if number else ["the", "a"])]
    if draw.random() < 0.3:
        phrase.append(draw.choice(["old", "small"]))
    phrase.append(draw.choice(NOUNS)[number])
    if depth > 0 and draw.random() < 0.5:
        phrase += ["near", *noun_phrase(draw, draw.randrange(2), depth - 1)]
    elif depth > 0 and draw.random() < 0.4:
        phrase += ["that", draw.choice(VERBS)[number]]
    return phrase


def sentence(draw):
    """Returns the words, and the position of the verb among them."""
    number = draw.randrange(2)
    words = noun_phrase(draw, number, 2)
    verb = len(words)
    if draw.random() < 0.5:
        words += [draw.choice(VERBS)[number]]
    else:
        words += [draw.choice(SEES)[number], *noun_phrase(draw, draw.randrange(2), 0)]
    return [*words, "."], verb


def sentences(draw, count):
    def row():
        words = ["<start>"]
        while len(words) <= SENTENCE_LENGTH:
            words += sentence(draw)[0]
        ids = [WORDS.index(word) for word in words[:SENTENCE_LENGTH + 1]]
        return {"tokens": ids[:-1], "positions": list(range(SENTENCE_LENGTH)), "y": ids[1:]}

    return columns([row() for _ in range(count)])


def judgements(draw, count):
    def row():
        words, verb = sentence(draw)
        right = draw.randrange(2)
        if not right:
            singular, plural = next(pair for pair in VERBS + SEES if words[verb] in pair)
            words[verb] = plural if words[verb] == singular else singular
        ids = [WORDS.index(word) for word in ["<start>", *words]]
        padded = ids + [0] * (SENTENCE_LENGTH - len(ids))
        return {"tokens": padded, "segments": [0] * SENTENCE_LENGTH,
                "positions": list(range(SENTENCE_LENGTH)), "y": right}

    return columns([row() for _ in range(count)])


KINDS = {"ratings": (ratings, 60000), "dates": (dates, 20000), "sentences": (sentences, 12000),
         "judgements": (judgements, 20000)}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    make, count = KINDS[sys.argv[1]]
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "train.npz", make(random.Random("train"), count))
    write(folder / "eval.npz", make(random.Random("eval"), 2000))


if __name__ == "__main__":
    main()
