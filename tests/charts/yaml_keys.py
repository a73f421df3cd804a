#!/usr/bin/env python3
"""Reads rendered manifests from standard input, and exits with 1 if a mapping has a key twice, or if a name, a label or
an annotation is not a string. Supports only the block style that the chart's templates produce, not all of YAML."""
import re
import sys

KEY = re.compile(r'^( *)((?:- )*)([^\s#\[{"][^\s]*|"[^"]*"):(?: (.*))?$')
# Plain scalars that YAML 1.1 reads as a number, a date, a boolean or null.
OTHER_TYPE = re.compile(
    r'[-+]?(0x[0-9a-f_]+|[0-9][0-9_]*(\.[0-9_]*)?(e[-+]?[0-9]+)?|\.[0-9_]+|[0-9]+(:[0-9]+)+)'
    r'|[0-9]{4}-[0-9]+-[0-9]+([Tt ].*)?|~|null|true|false|yes|no|on|off|y|n', re.I)
TEXTS = {'labels', 'annotations', 'matchLabels', 'nodeSelector', 'podSelector'}
NAMES = {'name', 'namespace', 'serviceAccountName', 'secretName', 'image', 'priorityClassName'}


def main():
    failed = False
    open_mappings = []  # (indentation, the key that contains the mapping, its keys)
    parents = {}  # the last key, by indentation
    for number, line in enumerate(sys.stdin.read().splitlines(), 1):
        if line == '---':
            open_mappings, parents = [], {}
        match = KEY.match(line)
        if not match:
            continue
        spaces, dashes, key, value = match.groups()
        indent = len(spaces) + len(dashes)
        while open_mappings and (open_mappings[-1][0] > indent or (dashes and open_mappings[-1][0] == indent)):
            open_mappings.pop()
        if not open_mappings or open_mappings[-1][0] < indent:
            above = [at for at in parents if at < indent]
            open_mappings.append((indent, parents[max(above)] if above else '', set()))
        parents = {at: name for at, name in parents.items() if at < indent}
        parents[indent] = key
        _, container, keys = open_mappings[-1]
        if key in keys:
            print(f'line {number}: {key} is there twice')
            failed = True
        keys.add(key)
        if (key in NAMES or container in TEXTS) and OTHER_TYPE.fullmatch(value or ''):
            print(f'line {number}: {line.strip()} is not a string')
            failed = True
    sys.exit(1 if failed else 0)


main()
