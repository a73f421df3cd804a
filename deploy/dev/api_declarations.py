#!/usr/bin/env python3
"""api_declarations.py [--compare TAGFILE] HEADER...: lists what the headers of the C++ API declare for programs, one name per line.

These are classes and structs, free functions, and public member functions. The names do not contain the namespace
tfjob::api, but inner namespaces and classes: `ops::Exp`, `Session::Compile`. Constructors, destructors, conversions and
operators of a class belong to the class, and are not listed. Deleted and defaulted functions are not listed either.
Overloads have one name, and are listed once. The parser understands the headers as clang-format writes them; it is not
a parser for C++. --compare fails if the list differs from that of a tag file, which Doxygen wrote."""
import re
import sys
import xml.etree.ElementTree

BRACKETS = {"(": ")", "{": "}"}
COMMENT_OR_STRING = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])'|^\s*#[^\n]*", re.MULTILINE)
OPERATOR = re.compile(r"\boperator\s*(\(\s*\)|\[\]|[-+*/<>=!]+)")
ACCESS = re.compile(r"^\s*(public|private|protected)\s*:\s*$")
SCOPE = re.compile(r"\s*(?:template\s*<[^{]*>\s*)?(namespace|class|struct)\b\s*(?:\[\[\w+\]\]\s*)?([\w:]+)[^()=]*$")
OUTER = "tfjob::api"


class Parser:
    """Reads one header. `names` maps each name to the index of the line where its first declaration starts."""

    def __init__(self, text):
        self.text = COMMENT_OR_STRING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        self.at = 0
        self.names = {}
        self.read_scope([], "namespace", True)

    def read_scope(self, path, kind, public):
        start = self.at
        while self.at < len(self.text):
            statement = self.text[start:self.at + 1]
            char = self.text[self.at]
            if char == "}":
                self.at += 1
                return
            if char == "(":
                self.skip_brackets()
            elif char == "{":
                start = self.open_brace(path, kind, public, start)
            elif char == ";":
                self.record(path, kind, public, start, self.text[start:self.at])
                self.at += 1
                start = self.at
            elif char == ":" and ACCESS.match(statement):
                public = ACCESS.match(statement)[1] == "public"
                self.at += 1
                start = self.at
            else:
                self.at += 1

    def open_brace(self, path, kind, public, start):
        """Handles a `{`. Returns where the current statement starts afterwards."""
        statement = self.text[start:self.at]
        scope = SCOPE.match(statement)
        if not scope:
            self.skip_brackets()
            following = re.match(r"\s*(.?)", self.text[self.at:])[1]
            is_body = "(" in without_templates(statement) and not re.search(r"=\s*$", statement)
            if is_body and following not in "{,;":
                self.record(path, kind, public, start, statement)
                return self.at
            return start
        inner = [part for part in scope[2].split("::") if part not in OUTER.split("::")]
        if scope[1] != "namespace" and public:
            self.add(path + inner, start)
        self.at += 1
        self.read_scope(path + inner, scope[1], public and scope[1] != "class")
        return self.at

    def skip_brackets(self):
        depth = 0
        while True:
            char = self.text[self.at]
            depth += (char in "({") - (char in ")}")
            self.at += 1
            if depth == 0:
                return

    def record(self, path, kind, public, start, statement):
        """Adds the function that the statement declares, if it is one that programs call by its name."""
        head = re.sub(r"^\s*template\s*<[^\n]*>\s", " ", statement)
        if not public or re.search(r"=\s*(delete|default)\s*$", head) or re.match(r"\s*(using|friend|enum)\b", head):
            return
        operator = OPERATOR.search(head)
        if operator and kind == "namespace":
            self.add(path + ["operator" + operator[1]], start)
            return
        name = re.match(r"[^=]*?(?<![\w~])([A-Za-z_]\w*)\s*\(", without_templates(head))
        is_conversion = re.search(r"\boperator\b", head)
        if name and not is_conversion and (not path or name[1] != path[-1]) and "~" not in head:
            self.add(path + [name[1]], start)

    def add(self, path, start):
        first = start + len(self.text[start:]) - len(self.text[start:].lstrip())
        self.names.setdefault("::".join(path), self.text.count("\n", 0, first))


def without_templates(text):
    text = OPERATOR.sub("operator ", text)
    while True:
        shorter = re.sub(r"<[^<>]*>", "", text)
        if shorter == text:
            return text
        text = shorter


def declarations(path):
    with open(path, encoding="utf-8") as header:
        return Parser(header.read()).names


def documented(tag_file):
    """Returns the names of the declarations in a tag file of Doxygen, without constructors and operators of classes."""
    names = set()
    for compound in xml.etree.ElementTree.parse(tag_file).getroot():
        path = compound.findtext("name").split("::")[2:]
        kind = compound.get("kind")
        if kind in ("class", "struct"):
            names.add("::".join(path))
        for member in compound.findall("member") if kind in ("class", "struct", "namespace") else []:
            name = re.sub(r"^operator\s+(?=\W)", "operator", member.findtext("name"))
            of_class = kind != "namespace" and (name.startswith(("operator", "~")) or name == path[-1])
            if member.get("kind") == "function" and not of_class:
                names.add("::".join(path + [name]))
    return names


def compare(tag_file, listed):
    """Prints what only one of the two lists contains. Returns the exit code."""
    both = (documented(tag_file), set(listed))
    for name in sorted(both[0] ^ both[1]):
        print(f"{name}: only {'Doxygen' if name in both[0] else 'api_declarations.py'} lists it", file=sys.stderr)
    return 0 if both[0] == both[1] else 1


def main(arguments):
    tag_file = arguments[1] if arguments[:1] == ["--compare"] else None
    listed = dict.fromkeys(name for path in arguments[2 if tag_file else 0:] for name in declarations(path))
    if tag_file:
        return compare(tag_file, listed)
    print("\n".join(listed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
