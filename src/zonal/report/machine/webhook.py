"""Results to a web address, as a chat or an alarm takes them."""

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
    """A web address that can't be reached, or that takes no result."""


def post(url: str, body: str) -> None:
    """Send a JSON text by POST, and return when the other side has taken it.

    Only http and https; an answer is waited for 10 seconds. Errors name the host alone: path, query and password of a
    webhook are its secret.
    """
    parts = check_url(url)
    shown = f"{parts.scheme}://{parts.hostname}{'' if parts.port is None else f':{parts.port}'}"
    problems: list[WebhookError] = []

    def call() -> None:
        try:
            _call(parts, body, shown)
        except WebhookError as error:
            problems.append(error)

    # A thread of its own, for a server may send a byte now and then and keep every single read from timing out.
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
    """Take an address apart; one that can't be used is refused without being shown."""
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
    """Speak HTTP and nothing else, and follow no redirect: a POST would arrive without its body, or anywhere."""
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
    data = body.encode(errors="backslashreplace")  # half a character: as JSON escapes it, too
    return Request(address, data, headers, method="POST")  # noqa: S310 - its scheme was checked


def _refused(shown: str, code: int) -> str:
    if 300 <= code < 400:
        return f"The webhook at {shown} answered {code}: it points elsewhere. Give the address that it points to."
    meaning = f" ({responses[code]})" if code in responses else ""
    return f"The webhook at {shown} answered {code}{meaning}: it didn't take the result."


def _why(reason: object) -> str:
    """Say what went wrong in words that quote nothing of the address."""
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
