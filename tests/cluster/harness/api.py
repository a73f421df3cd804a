"""Provides a client of the Kubernetes API. It has one keep-alive connection per thread, and sends
and receives JSON."""
import http.client
import json
import socket
import ssl
import threading
import urllib.parse

TFJOBS = "/apis/kubeflow.org/v1/tfjobs"


def tfjobs(namespace):
    return f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"


def core(namespace, resource):
    return f"/api/v1/namespaces/{namespace}/{resource}"


class ApiError(Exception):
    def __init__(self, method, path, code, body):
        super().__init__(f"{method} {path}: {code} {body[:300]}")
        self.code = code


class Api:
    def __init__(self, server, ca, certificate, key):
        """`server` is https://HOST:PORT; the other arguments are paths of PEM files."""
        url = urllib.parse.urlsplit(server)
        self._host, self._port = url.hostname, url.port
        self._tls = ssl.create_default_context(cafile=ca)
        self._tls.load_cert_chain(certificate, key)
        self._threads = threading.local()
        self._lock = threading.Lock()
        self._open = set()
        self._closed = False

    def close(self):
        """Aborts the running calls of all threads. Later calls fail."""
        with self._lock:
            self._closed = True
            connections, self._open = self._open, set()
        for connection in connections:
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)  # wakes the reader
            except (AttributeError, OSError):
                pass  # the socket is not connected, or no longer connected
            connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _connect(self, timeout):
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        with self._lock:
            if self._closed:
                raise ConnectionError("the client was closed")
            self._open.add(connection)
        return connection

    def _disconnect(self, connection):
        connection.close()
        with self._lock:
            self._open.discard(connection)

    def raw(self, method, path, body=None, headers=None, timeout=60):
        """Returns (status, body as bytes). Opens a new connection if the server has closed the
        previous one."""
        for fresh in (False, True):
            connection = getattr(self._threads, "connection", None)
            if connection is None or fresh:
                connection = self._threads.connection = self._connect(timeout)
            connection.timeout = timeout
            try:
                connection.request(method, path, body, headers or {})
                response = connection.getresponse()
                return response.status, response.read()
            except (http.client.HTTPException, OSError):
                self._disconnect(connection)
                self._threads.connection = None
                if fresh or method == "POST":
                    raise
        raise AssertionError("unreachable")

    def request(self, method, path, body=None, content_type="application/json", accept="application/json"):
        """Returns the response's JSON. Raises ApiError if the status is 400 or more."""
        data = None if body is None else json.dumps(body)
        code, answer = self.raw(method, path, data, {"Content-Type": content_type, "Accept": accept})
        if code >= 400:
            raise ApiError(method, path, code, answer.decode(errors="replace"))
        return json.loads(answer)

    def get(self, path):
        return self.request("GET", path)

    def find(self, path):
        """Returns the object, or None if it does not exist."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def create(self, path, body):
        return self.request("POST", path, body)

    def patch(self, path, body):
        return self.request("PATCH", path, body, content_type="application/merge-patch+json")

    def delete(self, path, body=None):
        return self.request("DELETE", path, body)

    def items(self, path):
        return self.get(path)["items"]

    def count(self, path):
        """Returns the number of objects in a collection without reading them all. `path` must not
        have selectors."""
        page = self.get(path + "?limit=1")
        return len(page["items"]) + page["metadata"].get("remainingItemCount", 0)

    def column(self, path, name):
        """Returns one column of the output of `kubectl get` as {object's name: cell}."""
        table = self.request("GET", path + "?includeObject=Metadata",
                             accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        index = [column["name"] for column in table["columnDefinitions"]].index(name)
        return {row["object"]["metadata"]["name"]: row["cells"][index] for row in table.get("rows") or []}

    def watch(self, path, version="", timeout=600):
        """Yields (type, object) until the server ends the stream or sends nothing for
        `timeout` seconds."""
        query = urllib.parse.urlencode({"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true"})
        connection = self._connect(timeout)
        try:
            connection.request("GET", f"{path}{'&' if '?' in path else '?'}{query}")
            response = connection.getresponse()
            if response.status != 200:
                raise ApiError("WATCH", path, response.status, response.read().decode(errors="replace"))
            while line := response.readline():
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            self._disconnect(connection)
