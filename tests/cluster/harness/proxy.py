"""Provides a TLS proxy that injects network and server faults between the operator and the API
server.

    with FaultProxy(cluster) as proxy:
        operator = Operator(program, proxy.kubeconfig)
        proxy.rule = lambda request: Answer(503) if request.method == "PATCH" else None

`rule` is called for every request, on the proxy's thread. If it returns None, the request is passed
on. The proxy speaks HTTP/1.1 with one upstream connection per client connection, and records all
requests in `proxy.requests`. It authenticates to the API server as the administrator, regardless of
the clients' credentials. With certificate=False, it does not authenticate, and the server checks
the clients' tokens."""
import asyncio
import dataclasses
import json
import ssl
import threading
import time
import typing
import urllib.parse

from .messages import Closed, chunk, compressed, framed, parse_head, read_body, read_chunk, read_head, with_query

PROTOBUF = b"application/vnd.kubernetes.protobuf"


@dataclasses.dataclass
class Request:
    method: str
    path: str
    query: dict
    headers: dict
    body: bytes
    code: int = 0  # status code of the response; 0 until there is one
    time: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def watch(self):
        return self.query.get("watch") in ("1", "true")

    @property
    def write(self):
        return self.method in ("POST", "PUT", "PATCH", "DELETE")

    def __str__(self):
        return f"{'WATCH' if self.watch else self.method} {self.path}"


@dataclasses.dataclass
class Answer:
    """Responds without passing the request on to the API server."""
    code: int
    message: str = "injected"
    reason: str = ""
    headers: dict = dataclasses.field(default_factory=dict)
    details: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Ask:
    """Passes the request on with these query parameters, which replace parameters with the same
    names."""
    query: dict


@dataclasses.dataclass
class Gzip:
    """Compresses the response. Cannot be used for watches."""


@dataclasses.dataclass
class Drop:
    """Closes the connection before the request is passed on or, with executed=True, after the API
    server has responded."""
    executed: bool = False


@dataclasses.dataclass
class Stall:
    """Sends nothing for this many seconds, and then closes the connection. Does this before the
    request is passed on or, with executed=True, after the API server has responded."""
    seconds: float = 3600
    executed: bool = False


@dataclasses.dataclass
class Call:
    """Calls `function` before the request is passed on or, with executed=True, after the API server
    has responded. Then applies the fault that the function returns; None means no fault."""
    function: typing.Callable
    executed: bool = False


@dataclasses.dataclass
class Lines:
    """Passes each line of a watch to `edit`, which returns the bytes to send instead (b"" to drop
    the line), or a list of pieces to send one by one. If `edit` raises Stalled, the stream stops
    but stays open. If `edit` raises Closed(bytes), the bytes are sent and the stream is closed."""
    edit: typing.Callable


@dataclasses.dataclass
class Late:
    """Delays a line of a watch by `lag()` seconds. Lines that arrive in this time are sent together
    with the delayed line, in the order in which `order(lines)` returns them."""
    lag: typing.Callable
    order: typing.Callable = list


class Stalled(Exception):
    pass


class FaultProxy:
    def __init__(self, cluster, certificate=True):
        self._cluster, self._certificate = cluster, certificate
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # connections may end in any way
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._writers = set()
        self.rule = None
        self.requests = []
        self.kubeconfig = cluster.state / f"proxy-{id(self)}.kubeconfig"

    def __enter__(self):
        self._thread.start()
        self._server = self._run(self._listen())
        self.server = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        text = self._cluster.kubeconfig.read_text()
        self.kubeconfig.write_text(text.replace(self._cluster.server, self.server))
        return self

    def __exit__(self, *_):
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self):
        """Closes all connections."""
        self._run(self._cut())

    def certify(self, certificate, key):
        """Presents this certificate to new connections. The arguments are the paths of two
        files."""
        self._run(self._certify(certificate, key))

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _listen(self):
        pki = self._cluster.state / "pki"
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        await self._certify(pki / "apiserver.crt", pki / "apiserver.key")
        self._upstream = ssl.create_default_context(cafile=pki / "ca.crt")
        if self._certificate:
            self._upstream.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls, limit=1 << 25)

    async def _certify(self, certificate, key):
        self._tls.load_cert_chain(certificate, key)

    async def _cut(self):
        for writer in list(self._writers):
            writer.transport.abort()

    async def _close(self):
        self._server.close()
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _serve(self, reader, writer):
        upstream = None
        self._writers.add(writer)
        try:
            while head := await read_head(reader):
                upstream = upstream or await self._open_upstream()
                await self._exchange(head, reader, writer, upstream)
        except (Closed, OSError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
            if upstream:
                upstream[1].transport.abort()

    async def _open_upstream(self):
        url = urllib.parse.urlsplit(self._cluster.server)
        return await asyncio.open_connection(url.hostname, url.port, ssl=self._upstream, limit=1 << 25)

    async def _exchange(self, head, reader, writer, upstream):
        line, headers = parse_head(head)
        method, target, _ = line.split(" ", 2)
        path, _, query = target.partition("?")
        request = Request(method, path, dict(urllib.parse.parse_qsl(query)), headers, await read_body(reader, headers))
        self.requests.append(request)
        fault = await self._before(self.rule(request) if self.rule else None, request, writer)
        if isinstance(fault, Answer):
            return await answer(writer, request, fault)
        if isinstance(fault, Ask):
            head = with_query(head, fault.query)
        if isinstance(fault, (Late, Lines)):
            head = head.replace(PROTOBUF + b", ", b"")  # `order` and `edit` read lines of JSON
        upstream[1].write(head + framed(request.body, request.headers))
        response = await read_head(upstream[0])
        if not response:
            raise Closed
        status, headers = parse_head(response)
        request.code = int(status.split(" ")[1])
        if request.watch and request.code == 200:
            writer.write(response)
            events = frames_of(upstream[0]) if PROTOBUF in response else lines_of(upstream[0])
            if isinstance(fault, Late):
                return await relay_late(events, writer, fault)
            return await relay_events(events, writer, fault.edit if isinstance(fault, Lines) else None)
        body = await read_body(upstream[0], headers)
        await self._after(fault, request)
        writer.write(compressed(status, headers, body) if isinstance(fault, Gzip) else response + framed(body, headers))
        await writer.drain()

    async def _before(self, fault, request, writer):
        while isinstance(fault, Call) and not fault.executed:
            fault = await asyncio.to_thread(fault.function)
        if isinstance(fault, (Drop, Stall)) and not fault.executed:
            await give_up(fault)
        return fault

    async def _after(self, fault, request):
        while isinstance(fault, Call):
            fault = await asyncio.to_thread(fault.function)
        if isinstance(fault, (Drop, Stall)):
            await give_up(fault)


async def give_up(fault):
    if isinstance(fault, Stall):
        await asyncio.sleep(fault.seconds)
    raise Closed


async def answer(writer, request, fault):
    request.code = fault.code
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": fault.code,
                       "reason": fault.reason, "message": fault.message, "details": fault.details}).encode()
    headers = {"Content-Type": "application/json", "Content-Length": len(body), **fault.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {fault.code} Injected\r\n{lines}\r\n".encode() + body)
    await writer.drain()


async def send(writer, data):
    if writer.is_closing():
        raise Closed
    writer.write(data)
    await writer.drain()


async def lines_of(upstream):
    rest = b""
    while data := await read_chunk(upstream):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line + b"\n"


async def frames_of(upstream):
    """Yields the events of a watch in protobuf. Each event starts with its length, in four
    bytes."""
    rest = b""
    while data := await read_chunk(upstream):
        rest += data
        while len(rest) >= 4 and len(rest) >= (end := 4 + int.from_bytes(rest[:4], "big")):
            yield rest[:end]
            rest = rest[end:]


async def relay_events(events, writer, edit):
    """Forwards a watch, and applies `edit` to each event."""
    async for line in events:
        try:
            out = line if edit is None else edit(line)
        except Stalled:
            await asyncio.sleep(3600)
        except Closed as closed:
            if closed.last:
                await send(writer, chunk(closed.last))
            raise
        for piece in out if isinstance(out, list) else [out]:
            if piece:
                await send(writer, chunk(piece))
    await send(writer, chunk(b""))


async def relay_late(events, writer, fault):
    """Forwards a watch. Reads the events as they arrive, and sends them at the times that the fault
    determines."""
    came = asyncio.Queue()

    async def read():
        try:
            async for event in events:
                came.put_nowait(event)
        finally:
            came.put_nowait(None)

    reading = asyncio.create_task(read())
    try:
        lines = []
        while None not in lines:
            lines = [await came.get()]
            await asyncio.sleep(fault.lag())
            while not came.empty():
                lines.append(came.get_nowait())
            for line in fault.order([line for line in lines if line is not None]):
                await send(writer, chunk(line))
        await reading
        await send(writer, chunk(b""))
    finally:
        reading.cancel()
