"""A REST catalog of Iceberg on loopback that vends tokens for a bucket, over a SQL catalog that keeps its tables."""

import json
import logging
from threading import Lock, Thread

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import CommitTableRequest
from werkzeug import Request, Response
from werkzeug.routing import Map, Rule
from werkzeug.serving import make_server

_ROUTES = Map([
    Rule("/v1/config", endpoint="config"),
    Rule("/v1/namespaces", endpoint="namespaces"),
    Rule("/v1/namespaces/<namespace>/tables", endpoint="tables"),
    Rule("/v1/namespaces/<namespace>/tables/<table>", methods=["GET", "HEAD"], endpoint="load"),
    Rule("/v1/namespaces/<namespace>/tables/<table>", methods=["POST"], endpoint="commit"),
])  # fmt: skip


class RestServer:
    """Vends a new token with each table that is loaded; the store refuses those that are `revoked`."""

    def __init__(self, store, folder):
        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
        self.store, self._lock = store, Lock()
        self.catalog = SqlCatalog(
            "kept", uri=f"sqlite:///{folder}/kept.db", warehouse=f"{store.place}warehouse", **store.properties
        )
        self.catalog.create_namespace_if_not_exists("db")
        self.vended, self.ends, self.fault, self.loads = [], None, None, 0
        self._server = make_server("127.0.0.1", 0, self._answered, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def revoke(self):
        """Let the store refuse all tokens that were vended so far."""
        self.store.revoked |= set(self.vended)

    @property
    def properties(self):
        """What zonal is given: neither keys nor a token."""
        return {"type": "rest", "uri": self.url, "s3.endpoint": self.store.url, "s3.region": "us-east-1"}

    def client(self):
        return RestCatalog("theirs", **self.properties)

    def _answered(self, environ, start_response):
        request = Request(environ)
        name, values = _ROUTES.bind_to_environ(environ).match()
        with self._lock:
            answer = getattr(self, f"_{name}")(request, **values)
        return answer(environ, start_response)

    def _config(self, _):
        return _as_json({"defaults": {}, "overrides": {}})

    def _namespaces(self, request):
        found = [] if request.args.get("parent") else self.catalog.list_namespaces()
        return _as_json({"namespaces": found})

    def _tables(self, _, namespace):
        found = self.catalog.list_tables(namespace)
        return _as_json({"identifiers": [{"namespace": list(name[:-1]), "name": name[-1]} for name in found]})

    def _load(self, _, namespace, table):
        self.loads += 1
        try:
            return _as_json(self._shown(self.catalog.load_table((namespace, table))))
        except NoSuchTableError:
            return _problem(404, "NoSuchTableException")

    def _commit(self, request, namespace, table):
        asked = CommitTableRequest.model_validate_json(request.get_data())
        loaded = self.catalog.load_table((namespace, table))
        try:
            self.catalog.commit_table(loaded, asked.requirements, asked.updates)
        except CommitFailedException:
            return _problem(409, "CommitFailedException")
        if self.fault is not None:
            fault, self.fault = self.fault, None
            return _problem(fault, "CommitStateUnknownException")
        return _as_json(self._shown(self.catalog.load_table((namespace, table))))

    def _shown(self, table):
        token = f"vended-token-{len(self.vended)}"
        self.vended.append(token)
        keys = {
            "s3.access-key-id": f"VENDED-KEY-{token}", "s3.secret-access-key": f"vended-secret-{token}",
            "s3.session-token": token,
        }  # fmt: skip
        if self.ends is not None:
            keys["s3.session-token-expires-at-ms"] = str(int(self.ends() * 1000))
        return {
            "metadata-location": table.metadata_location,
            "metadata": json.loads(table.metadata.model_dump_json()),
            "config": {},
            "storage-credentials": [{"prefix": self.store.place, "config": keys}],
        }


def _as_json(value):
    return Response(json.dumps(value), content_type="application/json")


def _problem(status, kind):
    error = {"error": {"message": "on purpose", "type": kind, "code": status}}
    return Response(json.dumps(error), status, content_type="application/json")
