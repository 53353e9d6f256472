"""S3 on loopback by moto, in this process, with faults between it and its clients, and all requests heard."""

import logging
import re
import socket
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from io import BytesIO
from threading import Lock, Thread

import boto3
from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.core.base_backend import BackendDict
from moto.core.model_instances import reset_model_data
from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

KEYS = {"aws_access_key_id": "AKIAZONAL", "aws_secret_access_key": "c2VjcmV0LW9mLXpvbmFs", "aws_region": "us-east-1"}
SLOW_DOWN = "503 Slow Down"
CUT = "cut"
"""The connection ends without an answer; of what is uploaded, half arrives."""


@dataclass
class Fault:
    """What happens to the next requests of a kind."""

    method: str
    """`COPY` is a PUT of another object's content, and `DELETE` a POST that names objects to delete."""
    path: str
    """A part of it, or of the names of deleted objects."""
    answer: str = SLOW_DOWN
    times: int = 1
    after: bool = False
    """The request takes effect, and its answer is lost."""
    code: str = "SlowDown"

    def is_of(self, method, path):
        return self.times > 0 and method == self.method and self.path in path


def forget_environment(monkeypatch):
    """Keep out what this machine's environment says of stores."""
    for name in ("ENDPOINT_URL", "ENDPOINT_URL_S3", "PROFILE", "SESSION_TOKEN", "ACCESS_KEY_ID"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@contextmanager
def s3_server(monkeypatch):
    """Yield a server with a bucket of its own, in an environment that says nothing of stores."""
    forget_environment(monkeypatch)
    found = S3Server()
    try:
        yield found
    finally:
        found.stop()


class S3Bucket:
    """A bucket, `box`, at the address `url` of a server that speaks S3's protocol."""

    place = "s3://box/"

    @property
    def options(self):
        return KEYS | {"aws_endpoint_url": self.url}

    @property
    def theirs(self):
        """The same for delta-rs."""
        return self.options | {"allow_http": "true"}

    @property
    def properties(self):
        """The same for PyIceberg."""
        return {
            "s3.endpoint": self.url, "s3.access-key-id": KEYS["aws_access_key_id"],
            "s3.secret-access-key": KEYS["aws_secret_access_key"], "s3.region": KEYS["aws_region"],
        }  # fmt: skip

    @cached_property
    def client(self):
        """A client that is none of those that are tested."""
        return boto3.client(
            "s3", endpoint_url=self.url, region_name="us-east-1", aws_access_key_id=KEYS["aws_access_key_id"],
            aws_secret_access_key=KEYS["aws_secret_access_key"],
        )  # fmt: skip

    def objects(self, prefix=""):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="box", Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def read(self, key):
        return self.client.get_object(Bucket="box", Key=key)["Body"].read()

    def content(self, counts=lambda _: True):
        """Objects with their content, by their keys."""
        return {key: self.read(key) for key in self.objects() if counts(key)}

    def uploads(self):
        """Uploads in parts that were begun and never completed."""
        return [found["Key"] for found in self.client.list_multipart_uploads(Bucket="box").get("Uploads", [])]


class S3Server(S3Bucket):
    """A server with one bucket, by moto; it refuses session tokens that are `revoked`."""

    def __init__(self):
        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
        self._server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=MotoRequestHandler)
        self._lock, self._copying = Lock(), Lock()
        self.heard, self.faults, self.on_put, self.before = [], [], None, lambda *_: None
        self.ignores_conditions = self.ignores_copy_conditions = False
        self.revoked = set()
        # By default a server looks twice a second whether it is to stop, and `stop` would wait for that.
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        _forget_objects()
        self.client.create_bucket(Bucket="box")
        self.heard.clear()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def _keys(self):
        """Moto's own objects: a request for each would be a good part of the time of tests that compare all of them."""
        return s3_backends[ACCOUNT]["aws"].get_bucket("box").keys

    def objects(self, prefix=""):
        return sorted(key for key in self._keys if key.startswith(prefix))

    def read(self, key):
        return self._keys[key].value

    def counts(self):
        """How often each kind of request was heard."""
        return Counter(request.partition(" ")[0] for request in self.heard)

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def __call__(self, environ, start_response):
        method, path = self._kind(environ)
        self.before(method, path)
        with self._lock:
            self.heard.append(f"{method} {path}?{environ.get('QUERY_STRING', '')}")
            fault = next((fault for fault in self.faults if fault.is_of(method, path)), None)
            if fault is not None:
                fault.times -= 1
        if fault is None and environ.get("HTTP_X_AMZ_SECURITY_TOKEN") in self.revoked:
            fault = Fault(method, path, "400 Bad Request", code="ExpiredToken")
        if self.ignores_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        if fault is not None:
            return self._failed(fault, environ, start_response)
        if method == "COPY" and not self.ignores_copy_conditions:
            return self._copied(environ, start_response)
        found = _moto(environ, start_response)
        if self.on_put is not None and method == "PUT":
            self.on_put(path)
        return found

    @staticmethod
    def _kind(environ):
        """Return what a request does, and to which objects."""
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if "HTTP_X_AMZ_COPY_SOURCE" in environ:
            return "COPY", path
        if method != "POST" or not environ.get("QUERY_STRING", "").startswith("delete"):
            return method, path
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        environ["wsgi.input"] = BytesIO(body)
        return "DELETE", " ".join(re.findall("<Key>(.*?)</Key>", body.decode()))

    def _copied(self, environ, start_response):
        """Copy on condition, as S3 does since 2025 and moto doesn't."""
        with self._copying:
            key = environ["PATH_INFO"].encode("latin-1").decode().removeprefix("/box/")
            if environ.get("HTTP_IF_NONE_MATCH") == "*" and s3_backends[ACCOUNT]["aws"].head_object("box", key):
                return _answered(start_response, "412 Precondition Failed", "PreconditionFailed")
            return _moto(environ, start_response)

    def _failed(self, fault, environ, start_response):
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length // 2 if fault.answer == CUT and not fault.after else length)
        if fault.after:
            b"".join(_moto(environ | {"wsgi.input": BytesIO(body)}, lambda *_: None))
        if fault.answer == CUT:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError
        return _answered(start_response, fault.answer, fault.code)


def _moto(environ, start_response):
    """Let the service answer that a request is signed for; moto's own way to find it looks at folders each time."""
    signed = re.search(r"/([\w-]+)/aws4_request", environ.get("HTTP_AUTHORIZATION", ""))
    return _service(signed[1] if signed else "s3")(environ, start_response)


@cache
def _service(name):
    return create_backend_app(name)


def _forget_objects():
    """Forget all buckets: moto's state is that of the process."""
    BackendDict.reset()
    reset_model_data()


def _answered(start_response, status, code):
    text = f"<Error><Code>{code}</Code><Message>on purpose</Message></Error>".encode()
    start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(text)))])
    return [text]
