"""Reads and writes HTTP/1.1 messages for the fault proxy."""
import asyncio
import gzip
import urllib.parse


class Closed(Exception):
    """Raised if a connection has ended or must be closed. `last` is sent before the connection is
    closed."""

    def __init__(self, last=b""):
        super().__init__()
        self.last = last


async def read_head(reader):
    """Returns the first line and the headers, or b"" at the end of the stream."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


def parse_head(head):
    line, *rest = head.decode("latin-1").rstrip().split("\r\n")
    return line, {name.strip().lower(): value.strip() for name, _, value in (header.partition(":") for header in rest)}


async def read_chunk(reader):
    """Returns one chunk. The last chunk is b""; a stream without this chunk was truncated."""
    line = await reader.readline()
    if not line:
        raise Closed
    size = int(line.split(b";")[0], 16)
    data = await reader.readexactly(size)
    await reader.readline()
    return data


async def read_body(reader, headers):
    """Returns the body. If it is chunked, the chunks are joined."""
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while data := await read_chunk(reader):
            body += data
        return body
    return await reader.readexactly(int(headers.get("content-length", 0)))


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def framed(body, headers):
    """Encodes a body in the form that the headers announce."""
    if headers.get("transfer-encoding") != "chunked":
        return body
    return (chunk(body) if body else b"") + chunk(b"")


def with_query(head, query):
    """Returns a request's head with these query parameters added. They replace parameters with the
    same names."""
    line, _, rest = head.partition(b"\r\n")
    method, target, version = line.decode("latin-1").split(" ")
    path, _, own = target.partition("?")
    merged = {**dict(urllib.parse.parse_qsl(own, keep_blank_values=True)), **query}
    return f"{method} {path}?{urllib.parse.urlencode(merged)} {version}\r\n".encode("latin-1") + rest


def compressed(line, headers, body):
    """Returns the complete response with its body compressed."""
    body = gzip.compress(body)
    kept = {name: value for name, value in headers.items() if name not in ("content-length", "transfer-encoding")}
    lines = [line, *(f"{name}: {value}" for name, value in kept.items()),
             "content-encoding: gzip", f"content-length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
