"""Send results to a webhook of a chat or an alerting service."""

import base64
import socket
import threading
from http.client import HTTPException, responses
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from zonal.errors import ZonalError, quoted

_SECONDS = 10.0


class WebhookError(ZonalError):
    """The webhook's address can't be used or reached, or the server refuses the result."""


def post(url: str, body: str) -> None:
    """Send a JSON text by POST, and return when the server has accepted it.

    Only http and https are used, and an answer must come in 10 seconds. Errors name only the host: path, query and
    password of a webhook are secrets.
    """
    parts = check_url(url)
    shown = f"{parts.scheme}://{parts.hostname}{'' if parts.port is None else f':{parts.port}'}"
    problems: list[WebhookError] = []

    def call() -> None:
        try:
            _call(parts, body, shown)
        except WebhookError as error:
            problems.append(error)

    # In a thread: a server that sends a byte now and then would keep every single read from timing out.
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if thread.is_alive():
        raise WebhookError(f"The webhook at {shown} gave no answer in {_SECONDS:.0f} seconds.")
    if problems:
        raise problems[0]


def _call(parts: SplitResult, body: str, shown: str) -> None:
    try:
        _opener().open(_request(parts, body), timeout=_SECONDS).close()
    except HTTPError as error:
        error.close()
        raise WebhookError(_refused(shown, error.code)) from None
    except (ConnectionError, HTTPException) as error:
        raise WebhookError(f"The webhook at {shown} didn't take the result: {_why(error)}") from None
    except (URLError, OSError, UnicodeError) as error:
        reason = getattr(error, "reason", error)
        raise WebhookError(f"The webhook at {shown} can't be reached: {_why(reason)} Check its address.") from None


def check_url(url: str) -> SplitResult:
    """Parse an address; refuse one that can't be used without showing it."""
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise WebhookError("The webhook's address can't be read: give a URL such as https://HOST/PATH.") from None
    if parts.scheme not in ("http", "https"):
        begins = f"begins with {quoted(parts.scheme)}" if parts.scheme else "has no scheme"
        raise WebhookError(f"The webhook's address {begins}: only http and https are used, as in https://HOST/PATH.")
    if not usable:
        raise WebhookError("The webhook's address names no host: give a URL such as https://HOST/PATH.")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise WebhookError("The webhook's address has characters that a URL can't have: write them as %20.")
    return parts


def _opener() -> OpenerDirector:
    """Build an opener for HTTP alone that follows no redirect: a POST could lose its body, or arrive anywhere."""
    opener = OpenerDirector()
    for handler in (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPErrorProcessor, HTTPDefaultErrorHandler):
        opener.add_handler(handler())
    return opener


def _request(parts: SplitResult, body: str) -> Request:
    host = parts.netloc.rpartition("@")[2]
    address = urlunsplit((parts.scheme, host, parts.path or "/", parts.query, ""))
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "zonal"}
    if parts.username is not None:
        named = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(named.encode()).decode()}"
    data = body.encode(errors="backslashreplace")  # a lone surrogate: as JSON escapes it
    return Request(address, data, headers, method="POST")  # noqa: S310 - its scheme was checked


def _refused(shown: str, code: int) -> str:
    if 300 <= code < 400:
        return f"The webhook at {shown} answered {code}: it points elsewhere. Give the address that it points to."
    meaning = f" ({responses[code]})" if code in responses else ""
    return f"The webhook at {shown} answered {code}{meaning}: it didn't take the result."


def _why(reason: object) -> str:
    """Say what went wrong without quoting the address."""
    if isinstance(reason, TimeoutError):
        return f"no answer in {_SECONDS:.0f} seconds."
    if isinstance(reason, socket.gaierror | UnicodeError | str):
        return "its host is not known."
    if isinstance(reason, ConnectionResetError):
        return "it closed the connection without an answer."
    if isinstance(reason, HTTPException):
        return "its answer is no HTTP."
    if isinstance(reason, OSError) and reason.strerror:
        return f"{reason.strerror}."
    return f"{type(reason).__name__}."
