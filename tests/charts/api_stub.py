#!/usr/bin/env python3
"""Answers the requests that helm sends while it renders the chart for a cluster. Prints the port on
which it listens.

  api_stub.py FOLDER    answers requests for a Secret with FOLDER/secret.json, if this file exists
"""
import http.server
import json
import pathlib
import sys

FOLDER = pathlib.Path(sys.argv[1])
# The kinds that the chart uses with its default values. For each version: first the namespaced kinds, then the
# cluster-wide ones.
KINDS = {
    "v1": (["Secret", "Service", "ServiceAccount"], ["Namespace"]),
    "apps/v1": (["Deployment"], []),
    "apiextensions.k8s.io/v1": ([], ["CustomResourceDefinition"]),
    "rbac.authorization.k8s.io/v1": (["Role", "RoleBinding"], ["ClusterRole", "ClusterRoleBinding"]),
    "flowcontrol.apiserver.k8s.io/v1": ([], ["FlowSchema", "PriorityLevelConfiguration"]),
}
SECRETS = "/api/v1/namespaces/somewhere/secrets/"


def path_of(group_version):
    return ("/apis/" if "/" in group_version else "/api/") + group_version


def resources(group_version):
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": [
        {"name": kind.lower() + "s", "singularName": kind.lower(), "kind": kind, "namespaced": namespaced, "verbs": ["get"]}
        for namespaced, kinds in zip((True, False), KINDS[group_version]) for kind in kinds]}


def group(group_version):
    version = {"groupVersion": group_version, "version": group_version.split("/")[1]}
    return {"name": group_version.split("/")[0], "versions": [version], "preferredVersion": version}


ANSWERS = {
    "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group(each) for each in KINDS if "/" in each]},
    **{path_of(each): resources(each) for each in KINDS},
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin": {
        "kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "cluster-admin"}},
    "/api/v1/namespaces/somewhere": {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "somewhere"}},
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.split("?")[0]
        answer = ANSWERS.get(path)
        if path.startswith(SECRETS) and (FOLDER / "secret.json").exists():
            answer = json.loads((FOLDER / "secret.json").read_text())
        missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        body = json.dumps(answer or missing).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
