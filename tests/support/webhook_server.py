"""A server on this machine that hears what a webhook gets."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.heard.append((self.path, dict(self.headers), body))
        for name, value in self.server.headers.items():
            self.send_response(self.server.code) if name == "" else self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"x" * self.server.length)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_):
        """Print nothing."""


@contextmanager
def listening(code=200, headers=None, length=0):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.heard, server.code, server.headers, server.length = [], code, {"": "", **(headers or {})}, length
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server, f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
