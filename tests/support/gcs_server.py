"""Google Cloud Storage on loopback, by the parts of its APIs that clients here use, with conditions that hold.

pyarrow speaks its JSON API, obstore and delta-rs its XML API: both have the same objects. The server is a process of
its own, since pyarrow's client keeps the interpreter to itself while it waits for some answers.
"""

import json
import logging
import subprocess
import sys
import uuid
from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime, timezone
from email.parser import BytesParser
from hashlib import md5
from itertools import count
from threading import Lock
from urllib.parse import unquote
from urllib.request import urlopen
from xml.sax.saxutils import escape

from werkzeug import Request, Response
from werkzeug.serving import make_server

TIME = "2026-01-01T00:00:00.000Z"
ABSENT = "0"
"""The generation of an object that isn't there, in conditions."""


@dataclass(frozen=True)
class Stored:
    """An object."""

    body: bytes
    generation: int
    time: datetime

    @property
    def stamp(self):
        """Its time, as listings have it."""
        return self.time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class GcsServer:
    """A server with one bucket, `box`, in a process of its own."""

    place = "gs://box/"

    def __init__(self):
        self._process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    @property
    def options(self):
        return {"google_endpoint_url": self.url, "google_skip_signature": "true"}

    @property
    def theirs(self):
        """The same for delta-rs."""
        key = {
            "gcs_base_url": self.url,
            "disable_oauth": True,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        }
        return {"google_service_account_key": json.dumps(key), "allow_http": "true"}

    def objects(self):
        return self._state()["objects"]

    def read(self, name):
        with urlopen(f"{self.url}/box/{name}") as answer:  # noqa: S310 - our own server
            return answer.read()

    def uploads(self):
        """Uploads in pieces that were begun and never completed."""
        return self._state()["uploads"]

    def _state(self):
        with urlopen(f"{self.url}/state") as answer:  # noqa: S310 - our own server
            return json.load(answer)

    def stop(self):
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()


class Bucket:
    """The objects of the bucket, as a WSGI application."""

    def __init__(self):
        self._objects, self._sessions, self._lock, self._numbers = {}, {}, Lock(), count(1)

    def __call__(self, environ, start_response):
        request = Request(environ)
        raw = environ.get("RAW_URI", request.path).partition("?")[0]
        parts = [unquote(part) for part in raw.lstrip("/").split("/")]
        with self._lock:
            answer = self._routed(request, parts, raw)
        return answer(environ, start_response)

    def _routed(self, request, parts, raw):
        if parts == ["state"]:
            uploads = [name for name, _ in self._sessions.values()]
            return _as_json({"objects": sorted(self._objects), "uploads": uploads})
        if parts[0] == "upload":
            return self._uploaded(request)
        if parts[:2] == ["storage", "v1"]:
            return self._json(request, parts[2:])
        if parts[:3] == ["download", "storage", "v1"]:
            return self._json(request, parts[3:])
        return self._xml(request, unquote(raw.lstrip("/").partition("/")[2]))

    # --- both -----------------------------------------------------------------------------------------------------

    def _put(self, name, body, condition):
        """Store an object, if the condition holds; return it, or None."""
        if condition is not None:
            now = self._objects[name].generation if name in self._objects else 0
            if int(condition) != now:
                return None
        self._objects[name] = Stored(body, next(self._numbers), datetime.now(timezone.utc))
        return self._objects[name]

    def _content(self, request, name):
        """Answer with an object's content, or the part of it that is asked for."""
        found = self._objects[name]
        headers = {
            "x-goog-generation": str(found.generation), "ETag": f'"{found.generation}"',
            "Last-Modified": found.time.strftime("%a, %d %b %Y %H:%M:%S GMT"), "Accept-Ranges": "bytes",
            "x-goog-hash": f"md5={_md5(found.body)}",
        }  # fmt: skip
        total = len(found.body)
        if request.range is None:
            return Response(found.body, headers=headers, content_type="application/octet-stream")
        span = request.range.range_for_length(total)
        if span is None:
            return Response(status=416, headers={"Content-Range": f"bytes */{total}"})
        headers |= {"Content-Range": f"bytes {span[0]}-{span[1] - 1}/{total}"}
        return Response(found.body[slice(*span)], 206, headers, content_type="application/octet-stream")

    def _below(self, prefix, delimiter):
        """Return names, and names of folders where a delimiter is given."""
        names, folders = [], []
        for name in sorted(name for name in self._objects if name.startswith(prefix)):
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.append(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                names.append(name)
        return names, sorted(set(folders))

    # --- JSON, of pyarrow -----------------------------------------------------------------------------------------

    def _json(self, request, parts):
        if parts[0] != "b" or parts[1] != "box":
            return _problem(404)
        if len(parts) == 2:
            return _as_json({"kind": "storage#bucket", "name": "box", "id": "box", "timeCreated": TIME})
        if len(parts) == 3:
            return self._listed(request.args)
        name = "/".join(parts[3:])
        if name not in self._objects:
            return _problem(404)
        if request.method == "DELETE":
            del self._objects[name]
            return Response(status=204)
        return self._content(request, name) if request.args.get("alt") == "media" else _as_json(self._resource(name))

    def _listed(self, args):
        names, folders = self._below(args.get("prefix", ""), args.get("delimiter", ""))
        first, last = args.get("startOffset", ""), args.get("endOffset")
        names = [name for name in names if name >= first and (not last or name < last)]
        names = names[: int(args.get("maxResults", 10**9))]
        return _as_json({"kind": "storage#objects", "items": [*map(self._resource, names)], "prefixes": folders})

    def _resource(self, name):
        found = self._objects[name]
        return {
            "kind": "storage#object", "bucket": "box", "name": name, "id": f"box/{name}/{found.generation}",
            "generation": str(found.generation), "metageneration": "1", "size": str(len(found.body)),
            "timeCreated": found.stamp, "updated": found.stamp, "md5Hash": _md5(found.body), "storageClass": "STANDARD",
        }  # fmt: skip

    def _uploaded(self, request):
        args, condition = request.args, request.args.get("ifGenerationMatch")
        if "upload_id" in args:
            return self._piece(request, args["upload_id"])
        if args["uploadType"] == "resumable":
            session = uuid.uuid4().hex
            name = args.get("name") or json.loads(request.get_data())["name"]
            self._sessions[session] = (name, bytearray())
            place = f"{request.host_url}upload/storage/v1/b/box/o?uploadType=resumable&upload_id={session}"
            return Response(headers={"Location": place})
        name, body = args.get("name"), request.get_data()
        if args["uploadType"] == "multipart":
            head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
            about, content = BytesParser().parsebytes(head + body).get_payload()
            name, body = json.loads(about.get_payload(decode=True))["name"], content.get_payload(decode=True)
        return _as_json(self._resource(name)) if self._put(name, body, condition) else _problem(412)

    def _piece(self, request, session):
        """Take the next piece of a resumable upload; the last one says how long the whole is."""
        name, held = self._sessions.get(session, (None, None))
        if name is None:
            return _problem(404)
        held += request.get_data()
        total = request.headers["Content-Range"].rpartition("/")[2]
        if total == "*" or len(held) < int(total):
            return Response(status=308, headers={"Range": f"bytes=0-{len(held) - 1}"} if held else {})
        del self._sessions[session]
        self._put(name, bytes(held), None)
        return _as_json(self._resource(name))

    # --- XML, of obstore and delta-rs -----------------------------------------------------------------------------

    def _xml(self, request, name):
        if not name:
            return self._listed_xml(request.args)
        if request.method == "PUT":
            body = request.get_data()
            if (source := request.headers.get("x-goog-copy-source")) is not None:
                copied = self._objects.get(unquote(source).removeprefix("box/"))
                if copied is None:
                    return _problem(404)
                body = copied.body
            done = self._put(name, body, request.headers.get("x-goog-if-generation-match"))
            if done is None:
                return _problem(412)
            return Response(headers={"ETag": f'"{done.generation}"', "x-goog-generation": str(done.generation)})
        if name not in self._objects:
            return _problem(404)
        if request.method == "DELETE":
            del self._objects[name]
            return Response(status=204)
        return self._content(request, name)

    def _listed_xml(self, args):
        names, folders = self._below(args.get("prefix", ""), args.get("delimiter", ""))
        names = [name for name in names if name > args.get("start-after", "")]
        found = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>{self._objects[name].stamp}</LastModified>"
            f"<ETag>{self._objects[name].generation}</ETag><Size>{len(self._objects[name].body)}</Size></Contents>"
            for name in names
        )
        found += "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in folders)
        return Response(f"<ListBucketResult>{found}</ListBucketResult>", content_type="application/xml")


def _md5(body):
    return b64encode(md5(body, usedforsecurity=False).digest()).decode()


def _as_json(value):
    return Response(json.dumps(value), content_type="application/json")


def _problem(status):
    text = {"error": {"code": status, "message": "on purpose"}}
    return Response(json.dumps(text), status, content_type="application/json")


if __name__ == "__main__":
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = make_server("127.0.0.1", 0, Bucket(), threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()
