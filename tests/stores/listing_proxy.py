"""A proxy for delta-rs in front of azurite, which ignores from which name on a listing is asked for (`startFrom`).

delta-rs takes all that it gets for newer than that, so its second append would fail. zonal talks to azurite itself.
"""

import http.client
import logging
import re
from threading import Thread
from urllib.parse import urlsplit

from werkzeug import Request, Response
from werkzeug.serving import make_server

_BLOB = re.compile(rb"<Blob><Name>(.*?)</Name>.*?</Blob>", re.DOTALL)
_PER_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "content-length")


class ListingProxy:
    """Passes all requests on, and takes older names out of listings."""

    def __init__(self, url):
        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
        self._target = urlsplit(url).netloc
        self._server = make_server("127.0.0.1", 0, self._answered, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def _answered(self, environ, start_response):
        request = Request(environ)
        connection = http.client.HTTPConnection(self._target, timeout=60)
        connection.request(request.method, environ["RAW_URI"], request.get_data(), dict(request.headers))
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if first := request.args.get("startFrom"):
            body = _BLOB.sub(lambda blob: blob[0] if blob[1].decode() >= first else b"", body)
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in _PER_CONNECTION]
        response = Response(body, answer.status, headers)
        if request.method == "HEAD":
            response.headers["Content-Length"] = answer.getheader("Content-Length", "0")
        return response(environ, start_response)
