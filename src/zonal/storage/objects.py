"""Objects in object stores by obstore, which can do what pyarrow's file systems can't: writes where a name is free.

It also removes objects without the empty ones that pyarrow leaves in place of folders.
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from errno import ENOENT
from importlib.util import find_spec
from os import strerror
from pathlib import Path
from typing import Any

from zonal.errors import TableError
from zonal.storage.causes import hidden, what_to_check
from zonal.storage.credentials import s3_credentials
from zonal.storage.environment import key_file
from zonal.storage.store import ATTEMPTS, Store

COMMITTED_IN = ("s3", "gs", "abfss")
"""Stores in which an object can be created only if its name is free."""
_RETRIES = {"max_retries": ATTEMPTS, "retry_timeout": timedelta(minutes=2)}
_NEAR = 1024**2
"""Ranges that are less than so many bytes apart are read by one request: waiting for another takes longer."""
_REFUSED = re.compile(r"status code: 4\d\d")
_REFUSALS = ("PermissionDeniedError", "UnauthenticatedError", "NotSupportedError", "UnknownConfigurationKeyError")


class TakenError(Exception):
    """An object has the name already."""


class RefusedError(Exception):
    """The store refused to create an object; other errors leave open whether it did."""


def unavailable(kind: str) -> str:
    """Say in a sentence why objects of a store can't be created on condition; empty where they can be."""
    if kind not in COMMITTED_IN:
        return f"zonal can't commit on {kind}://: no file can be created there only if its name is free."
    if find_spec("obstore") is None:
        return "In object stores, commits need obstore (Python 3.11 or later). Run: pip install 'zonal[stores]'."
    return ""


def reads(store: Store) -> bool:
    """Tell whether objects are read here, with fewer requests than pyarrow's, and by the same credentials.

    Azure's server knows no ranges that count from the end.
    """
    if store.kind != "s3" or find_spec("obstore") is None:
        return False
    arguments = dict(store.arguments)
    return find_spec("botocore") is not None or bool(arguments.get("anonymous")) or _has_keys(arguments)


def _has_keys(arguments: dict[str, Any]) -> bool:
    return "access_key" in arguments and "role_arn" not in arguments


class Objects:
    """The objects of a folder in a store."""

    def __init__(self, store: Store, path: str, *, region: str | None = None) -> None:
        """Open a folder by its path in the store; `region` is the bucket's, where options don't give it."""
        if problem := unavailable(store.kind):
            raise TableError(problem)
        self._store = store
        try:
            self._opened = _OPENED[store.kind](store, path, region)
        except _errors() as error:
            raise store.problem(_in_one_line(error)) from None

    def create(self, name: str, body: bytes) -> None:
        """Create an object at once; raise a `TakenError` if there is one, and a `RefusedError` if it wasn't created.

        After any other error it may have been created, now or soon.
        """
        import obstore  # noqa: PLC0415 - an extra
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415

        try:
            obstore.put(self._opened, name, body, mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError) as error:
            raise TakenError from error
        except _errors() as error:
            if type(error).__name__ in _REFUSALS or _REFUSED.search(str(error)):
                raise RefusedError(self.told(error)) from None
            raise OSError(self.told(error)) from None

    def read(self, name: str) -> bytes | None:
        """Return an object's content; None if there is none of this name."""
        import obstore  # noqa: PLC0415

        try:
            return bytes(obstore.get(self._opened, name).bytes())
        except FileNotFoundError:
            return None
        except _errors() as error:
            raise OSError(self.told(error)) from None

    def read_end(self, name: str, count: int) -> tuple[memoryview, int]:
        """Return up to so many bytes from an object's end, and the size of the whole object, by one request."""
        import obstore  # noqa: PLC0415

        try:
            found = obstore.get(self._opened, name, options={"range": {"suffix": count}})
            return memoryview(found.bytes()), int(found.meta["size"])
        except FileNotFoundError:
            raise FileNotFoundError(ENOENT, strerror(ENOENT), name) from None
        except _errors() as error:
            if re.search("416|non-partial response", str(error)):  # an empty object has no end
                whole = self.read(name)
                return memoryview(whole or b""), len(whole or b"")
            raise OSError(hidden(str(_in_one_line(error)), self._store.secrets)) from None

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Return ranges of an object, each from its first number up to the second; near ones by one request."""
        import obstore  # noqa: PLC0415

        if not ranges:
            return []
        starts, stops = map(list, zip(*ranges, strict=True))
        try:
            parts = obstore.get_ranges(self._opened, name, starts=starts, ends=stops, coalesce=_NEAR)
        except FileNotFoundError:
            raise FileNotFoundError(ENOENT, strerror(ENOENT), name) from None
        except _errors() as error:
            raise OSError(hidden(str(_in_one_line(error)), self._store.secrets)) from None
        return [memoryview(part) for part in parts]

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects."""
        import obstore  # noqa: PLC0415

        try:
            obstore.delete(self._opened, list(names))
        except FileNotFoundError:
            pass
        except _errors() as error:
            raise OSError(self.told(error)) from None

    def told(self, error: BaseException) -> str:
        """Say what went wrong in one line, without credentials."""
        plain = _in_one_line(error)
        check = what_to_check(self._store.kind, plain)
        return f"{hidden(str(plain), self._store.secrets)} (at {self._store.endpoint}). {check}".rstrip()


def _errors() -> tuple[type[Exception], ...]:
    from obstore.exceptions import BaseError  # noqa: PLC0415

    return (BaseError, OSError, ValueError)


def _in_one_line(error: BaseException) -> OSError:
    """Return an error of obstore without its request and the store's answer in XML, but with the codes in it."""
    text = str(error).partition("\n\nDebug source")[0]
    return OSError(" ".join(text.split())[:300].rstrip(". "))


# --- stores, by the arguments of pyarrow's file systems --------------------------------------------------------------


def _client(arguments: dict[str, Any], endpoint: str | None) -> dict[str, Any]:
    """Return options of the HTTP client."""
    options: dict[str, Any] = {"allow_http": (endpoint or "").startswith("http://")}
    for name, own in (("connect_timeout", "connect_timeout"), ("request_timeout", "timeout")):
        if name in arguments:
            options[own] = timedelta(seconds=arguments[name])
    if "proxy_options" in arguments:
        options["proxy_url"] = arguments["proxy_options"]
    if "tls_ca_file_path" in arguments:
        options["root_certificate"] = Path(arguments["tls_ca_file_path"]).read_bytes()
    return options


def _s3(store: Store, path: str, region: str | None) -> object:
    from obstore.store import S3Store  # noqa: PLC0415

    arguments, bucket = dict(store.arguments), store.host
    region = arguments.get("region") or region or "us-east-1"
    virtual = bool(arguments.get("force_virtual_addressing"))
    endpoint = None
    if "endpoint_override" in arguments:
        host = f"{bucket}.{arguments['endpoint_override']}" if virtual else arguments["endpoint_override"]
        endpoint = f"{arguments['scheme']}://{host}"
    elif region.startswith("cn-"):
        endpoint = f"https://s3.{region}.amazonaws.com.cn"
    config: dict[str, Any] = {"region": region}
    if endpoint is not None:
        # By this name, since an endpoint of the environment by this name would win over one by the other.
        config |= {"aws_endpoint_url_s3": endpoint, "virtual_hosted_style_request": virtual}
    provider = None
    if arguments.get("anonymous"):
        config["skip_signature"] = True
    else:
        provider = s3_credentials(arguments, region)
    return S3Store(
        bucket, prefix=path, config=config, client_options=_client(arguments, endpoint), retry_config=_RETRIES,
        credential_provider=provider,
    )  # fmt: skip


def _gcs(store: Store, path: str, _: str | None) -> object:
    from obstore.store import GCSStore  # noqa: PLC0415

    arguments = dict(store.arguments)
    endpoint = f"{arguments['scheme']}://{arguments['endpoint_override']}" if "endpoint_override" in arguments else None
    config: dict[str, Any] = {} if endpoint is None else {"base_url": endpoint}
    if arguments.get("anonymous"):
        # Without a token of any kind, puts would ask the machine's role for one.
        config |= {"skip_signature": True, "bearer_token": "anonymous"}
    elif "access_token" in arguments:
        config["bearer_token"] = arguments["access_token"]
    given = {"client_options": _client(arguments, endpoint), "retry_config": _RETRIES}
    if "key" not in arguments:
        return GCSStore(store.host, prefix=path, config=config, **given)
    with key_file(arguments["key"]) as key:
        return GCSStore(store.host, prefix=path, config=config | {"application_credentials": key}, **given)


def _azure(store: Store, path: str, _: str | None) -> object:
    from obstore.store import AzureStore  # noqa: PLC0415

    arguments = dict(store.arguments)
    names = {name: name for name in ("account_name", "account_key", "tenant_id", "client_id", "client_secret")}
    config: dict[str, Any] = {
        own: arguments[name] for name, own in (names | {"sas_token": "sas_key"}).items() if name in arguments
    }
    endpoint = None
    if authority := arguments.get("blob_storage_authority"):
        account = arguments["account_name"]
        # As pyarrow has it: a suffix of the account's own host, or a host with the account in its paths.
        place = f"{account}{authority}" if authority.startswith(".") else f"{authority}/{account}"
        endpoint = config["endpoint"] = f"{arguments.get('blob_storage_scheme', 'https')}://{place}"
    if not {"account_key", "sas_key", "client_id"} & config.keys():
        config["use_azure_cli"] = True  # the last resort of pyarrow's file system, too
    return AzureStore(
        store.host.partition("@")[0], prefix=path, config=config, client_options=_client(arguments, endpoint),
        retry_config=_RETRIES,
    )  # fmt: skip


_OPENED = {"s3": _s3, "gs": _gcs, "abfss": _azure}
