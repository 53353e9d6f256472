"""Interpret locations: local paths, places in object stores, and other names that people type."""

import os
import re
from urllib.parse import urlsplit

from zonal.errors import TableError, option, quoted

_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/")
_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "az": "abfss", "azure": "abfss", "viewfs": "hdfs"}
STORES = {
    "s3": "s3://BUCKET/PATH",
    "gs": "gs://BUCKET/PATH",
    "abfss": "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH",
}
"""Supported object stores, and the form of their locations."""
_TYPED = re.compile(
    r"(?P<scheme>s3[an]?|gc?s|abfss?|az|azure|wasbs?|adl|hdfs|viewfs|dbfs|https?|file):?(?P<rest>.*)", re.IGNORECASE
)
_WINDOWS = re.compile(r"(?P<drive>[a-zA-Z]):(?P<path>[\\/].*)|\\\\.*")
_CATALOG_NAME = re.compile(r"[\w`-]+(\.[\w`-]+){1,2}")


def is_uri(location: str) -> bool:
    return _URI.match(location) is not None


def store_of(scheme: str) -> str:
    """Return the usual name of a scheme's store.

    >>> store_of("S3A"), store_of("abfs"), store_of("ftp")
    ('s3', 'abfss', 'ftp')
    """
    return _ALIASES.get(scheme.lower(), scheme.lower())


def local_path(location: str) -> str | None:
    """Return the path of a location on a local or mounted file system; None where it is in an object store.

    A `file:` URI may be written in any way; that of another machine is refused.

    >>> local_path("file:/x/y"), local_path("file://localhost/x/y"), local_path("/x/y"), local_path("s3://x/y")
    ('/x/y', '/x/y', '/x/y', None)
    """
    if location[:5].lower() != "file:":
        return None if is_uri(location) else location
    path = location[5:]
    if path.startswith("//"):
        host, _, path = path[2:].partition("/")
        refuse_host(host, location)
    return f"/{path.lstrip('/')}"


def refuse_host(host: str, uri: str) -> None:
    if host.lower() not in ("", "localhost"):
        raise TableError(
            f"{quoted(uri, limit=300)} names a file of the machine {quoted(host)}. Of this one, a path has "
            "three slashes, as in file:///path."
        )


def refuse_other_names(location: str) -> None:
    """Raise an error for a location that can't be opened, and say what to write instead.

    A name that exists on the local disk is a path, whatever it looks like.
    """
    if advice := _advice(location):
        raise TableError(f"{shown(location)} can't be opened. {advice}")


def shown(location: str) -> str:
    """Quote a location without the user, password and options that a URI may hold.

    >>> shown("s3://me:secret@bucket/x?region=eu")
    "'s3://bucket/x'"
    """
    if is_uri(location):
        scheme, mark, rest = location.partition("://")
        host, slash, path = rest.partition("?")[0].partition("/")
        if store_of(scheme) not in ("abfss", "wasb", "wasbs"):
            host = host.rpartition("@")[2]
        location = f"{scheme}{mark}{host}{slash}{path}"
    return quoted(location, limit=300)


def catalog_hint(name: str) -> str:
    """Say how to name a table of a catalog, where a name looks like one; empty otherwise."""
    if not _CATALOG_NAME.fullmatch(name) or name.rpartition(".")[2].lower() in (
        "parquet",
        "json",
        "csv",
        "avro",
        "orc",
    ):
        return ""
    parts = name.replace("`", "").split(".")
    catalog = f" (with {option('catalog')}, where PyIceberg isn't configured for it)" if len(parts) == 3 else ""
    return (
        f"If it is a table of a catalog: an Iceberg table is named iceberg:{'.'.join(parts)}{catalog}, and a "
        "Delta table by its location, which DESCRIBE DETAIL prints."
    )


def _advice(location: str) -> str:
    if not is_uri(location):
        return "" if os.path.lexists(location) else _advice_on_path(location)
    scheme = urlsplit(location).scheme.lower()
    store = store_of(scheme)
    if scheme in _INSTEAD:
        return _INSTEAD[scheme](location)
    if store not in (*STORES, "hdfs", "file"):
        return (
            f"zonal doesn't know the storage {scheme}://. It opens local paths, {', '.join(STORES.values())} and "
            f"hdfs://; other stores that speak S3's protocol are s3://BUCKET/PATH with {option('storage_options')} "
            "aws_endpoint_url=…."
        )
    if "://" not in location:
        return _right_slashes(store, location) if store in STORES else ""
    return _advice_on_store(store, location)


def _advice_on_store(store: str, location: str) -> str:
    host = urlsplit(location).netloc
    if store not in STORES:
        return ""
    if not host.rpartition("@")[2]:
        return f"It names no {'container' if store == 'abfss' else 'bucket'}: write {STORES[store]}."
    if store == "abfss" and "@" not in host and "." in host:
        container, _, path = urlsplit(location).path.lstrip("/").partition("/")
        return f"The container stands before the account: abfss://{container or 'CONTAINER'}@{host}/{path}."
    return ""


def _advice_on_path(location: str) -> str:
    if os.name != "nt" and (match := _WINDOWS.fullmatch(location)):
        if match["drive"] is None:
            return "It is a path of Windows: mount the share, and give the path where it is mounted."
        path = match["path"].replace("\\", "/")
        return f"It is a path of Windows. In WSL that is /mnt/{match['drive'].lower()}{path}; in a container, mount it."
    match = _TYPED.fullmatch(location)
    if match is None or not location[len(match["scheme"]) :].startswith((":", "//")):
        return ""
    scheme = match["scheme"].lower()
    if scheme in _INSTEAD:
        return _INSTEAD[scheme](f"{scheme}://{match['rest'].lstrip('/')}")
    return _right_slashes(store_of(scheme), location) if store_of(scheme) in STORES else ""


def _right_slashes(store: str, location: str) -> str:
    rest = re.sub("^[a-zA-Z0-9]+:?/*", "", location)
    return f"A place there is written {STORES[store]}: did you mean {shown(f'{store}://{rest}')}?"


def _not_dbfs(location: str) -> str:
    path = location.partition(":")[2].lstrip("/")
    return (
        f"DBFS is known to Databricks alone. On its clusters it is mounted: {quoted(f'/dbfs/{path}', limit=300)}. "
        "Elsewhere give the table's place in the object store (s3://, abfss://, gs://), which DESCRIBE DETAIL prints."
    )


def _not_wasb(location: str) -> str:
    container, _, host = urlsplit(location).netloc.rpartition("@")
    if not container:
        return f"The driver wasbs:// is retired: write {STORES['abfss']}."
    instead = f"abfss://{container}@{host.replace('.blob.', '.dfs.', 1)}{urlsplit(location).path}"
    return f"The driver wasbs:// is retired; the same place is {quoted(instead, limit=300)}."


def _not_adl(_: str) -> str:
    return f"Data Lake Storage Gen1 is retired. Of Gen2, write {STORES['abfss']}."


def _not_http(location: str) -> str:
    parts = urlsplit(location)
    host, path = parts.netloc.rpartition("@")[2], parts.path.lstrip("/")
    first, _, rest = path.partition("/")
    if match := re.fullmatch(r"(?P<bucket>.+)\.s3[.-].*amazonaws\.com(\.cn)?", host):
        instead = f"s3://{match['bucket']}/{path}"
    elif re.fullmatch(r"s3[.-].*amazonaws\.com(\.cn)?", host):
        instead = f"s3://{path}"
    elif host in ("storage.googleapis.com", "storage.cloud.google.com"):
        instead = f"gs://{path}"
    elif re.search(r"\.(blob|dfs)\.", host):
        instead = f"abfss://{first}@{host.replace('.blob.', '.dfs.', 1)}/{rest}"
    else:
        return (
            "A web server can't list its files. Name the place in its object store, as in s3://BUCKET/PATH with "
            f"{option('storage_options')} aws_endpoint_url={parts.scheme}://{host}, or download the files."
        )
    return f"Name the place in its object store: {quoted(instead, limit=300)}."


_INSTEAD = {
    "dbfs": _not_dbfs,
    "wasb": _not_wasb,
    "wasbs": _not_wasb,
    "adl": _not_adl,
    "http": _not_http,
    "https": _not_http,
}
