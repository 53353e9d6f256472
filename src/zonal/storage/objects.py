"""Objects in object stores by obstore, which can do what pyarrow's file systems can't: writes where a name is free.

It also copies objects within a store, and removes them without the empty ones that pyarrow leaves in place of folders.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
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
_ENDLESS = re.compile(r"status code: 416|non-partial response")
"""An empty object has no end, and some servers know no ranges: then the whole is asked for."""
_REFUSED = re.compile(r"status code: (4\d\d|501)")
_COMPARED_AT_ONCE = 8 * 2**20
_REFUSALS = ("PermissionDeniedError", "UnauthenticatedError", "NotSupportedError", "UnknownConfigurationKeyError")


class TakenError(Exception):
    """An object has the name already."""


class RefusedError(OSError):
    """The store refused to do what it was asked for; other errors leave open whether it did."""


class MissingError(RefusedError, FileNotFoundError):
    """There is no object of this name."""


@dataclass(frozen=True)
class StoredObject:
    """What a store tells of an object."""

    size: int
    time: datetime
    """When it was written, by the store's clock."""
    tag: str | None
    """Another one for each content; in some stores, for each object."""


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

        with self._told():
            obstore.put(self._opened, name, body, mode="create", use_multipart=False)

    def copy(self, source: str, target: str) -> None:
        """Copy an object within the store, over what there is."""
        import obstore  # noqa: PLC0415

        with self._told():
            obstore.copy(self._opened, source, target)

    def copy_if_absent(self, source: str, target: str) -> None:
        """Copy an object within the store; errors are those of `create`. Some stores ignore the condition."""
        import obstore  # noqa: PLC0415

        with self._told():
            obstore.copy(self._opened, source, target, overwrite=False)

    def read(self, name: str) -> bytes | None:
        """Return an object's content; None if there is none of this name."""
        import obstore  # noqa: PLC0415

        try:
            with self._told():
                return bytes(obstore.get(self._opened, name).bytes())
        except MissingError:
            return None

    def read_end(self, name: str, count: int) -> tuple[memoryview, int]:
        """Return up to so many bytes from an object's end, and the size of the whole object, by one request."""
        import obstore  # noqa: PLC0415

        with self._caused(name):
            try:
                found = obstore.get(self._opened, name, options={"range": {"suffix": count}})
            except _errors() as error:
                if not _ENDLESS.search(str(error)):
                    raise
                found = obstore.get(self._opened, name)
            return memoryview(found.bytes()), int(found.meta["size"])

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Return ranges of an object, each from its first number up to the second; near ones by one request."""
        import obstore  # noqa: PLC0415

        if not ranges:
            return []
        starts, stops = map(list, zip(*ranges, strict=True))
        with self._caused(name):
            parts = obstore.get_ranges(self._opened, name, starts=starts, ends=stops, coalesce=_NEAR)
        return [memoryview(part) for part in parts]

    @contextmanager
    def _caused(self, name: str) -> Iterator[None]:
        """Turn errors of reading into those of a file system, which say the cause alone."""
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(ENOENT, strerror(ENOENT), name) from None
        except _errors() as error:
            raise OSError(hidden(str(_in_one_line(error)), self._store.secrets)) from None

    def look(self, name: str) -> StoredObject | None:
        """Return what the store tells of an object; None if there is none of this name."""
        import obstore  # noqa: PLC0415

        try:
            with self._told():
                return _stored(obstore.head(self._opened, name))
        except MissingError:
            return None

    def is_same(self, name: str, other: str) -> bool:
        """Tell whether two objects have the same content."""
        one, two = self.look(name), self.look(other)
        if one is None or two is None or one.size != two.size:
            return False
        # In S3 equal tags are equal hashes; different ones may belong to equal content.
        if self._store.kind == "s3" and one.tag is not None and one.tag == two.tag:
            return True
        starts = range(0, one.size, _COMPARED_AT_ONCE)
        return all(self._part(name, start, one.size) == self._part(other, start, one.size) for start in starts)

    def _part(self, name: str, start: int, size: int) -> bytes:
        import obstore  # noqa: PLC0415

        with self._told():
            end = min(size, start + _COMPARED_AT_ONCE)
            return bytes(obstore.get_range(self._opened, name, start=start, end=end))

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder."""
        return [_last(prefix) for prefix in self._listed(folder)["common_prefixes"]]

    def objects(self, folder: str) -> dict[str, StoredObject]:
        """Return the objects in a folder by their names, without those of folders in it."""
        return {_last(found["path"]): _stored(found) for found in self._listed(folder)["objects"]}

    def _listed(self, folder: str) -> Mapping[str, Any]:
        import obstore  # noqa: PLC0415

        with self._told():
            found: Mapping[str, Any] = obstore.list_with_delimiter(self._opened, folder)
        return found

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects; raise a `RefusedError` if they weren't removed."""
        import obstore  # noqa: PLC0415

        try:
            with self._told():
                obstore.delete(self._opened, list(names))
        except MissingError:
            # Stores other than S3 end at the first that isn't there, before others are gone.
            for name in names if len(names) > 1 else ():
                self.remove([name])

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn errors of obstore into those of this module."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415

        try:
            yield
        except (AlreadyExistsError, PreconditionError) as error:
            raise TakenError from error
        except FileNotFoundError as error:
            raise MissingError(self.told(error)) from None
        except _errors() as error:
            is_refused = type(error).__name__ in _REFUSALS or _REFUSED.search(str(error))
            raise (RefusedError if is_refused else OSError)(self.told(error)) from None

    def told(self, error: BaseException) -> str:
        """Say what went wrong in one line, without credentials."""
        plain = _in_one_line(error)
        check = what_to_check(self._store.kind, plain)
        return f"{hidden(str(plain), self._store.secrets)} (at {self._store.endpoint}). {check}".rstrip()


def _stored(found: Mapping[str, Any]) -> StoredObject:
    return StoredObject(found["size"], found["last_modified"], found["e_tag"])


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


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
    config: dict[str, Any] = {"region": region, "copy_if_not_exists": f"header: {_free_header(endpoint)}: *"}
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


def _free_header(endpoint: str | None) -> str:
    """Name the header by which a copy is made only where the name is free; servers that don't know it ignore it."""
    return "cf-copy-destination-if-none-match" if ".r2.cloudflarestorage.com" in (endpoint or "") else "if-none-match"


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
