"""Where tables lie: local files and object stores, by way of pyarrow's file systems."""

import errno
import os
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from os.path import abspath
from stat import S_ISREG
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs

from zonal.errors import TableError, quoted

_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/")
_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "az": "abfss", "azure": "abfss"}


class Storage:
    """Where a table lies, and how its files are opened.

    Locations of files are literal (nothing is percent-encoded) and carry no credentials: local paths, or
    `scheme://bucket/key`.
    """

    def __init__(self, location: str, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        self._filesystems: dict[tuple[str, str], pa.fs.FileSystem] = {}
        if not _is_uri(location):
            self.root = abspath(location)
        elif urlsplit(location).scheme.lower() == "file":
            _refuse_host(urlsplit(location).netloc, location)
            self.root = abspath(unquote(urlsplit(location).path))
        else:
            parts = urlsplit(location)
            scheme, host = parts.scheme.lower(), parts.netloc
            if _ALIASES.get(scheme, scheme) == "s3":
                host = host.rpartition("@")[2]
            self.root = f"{scheme}://{host}{parts.path}".rstrip("/")
            self._filesystems[scheme, host] = self._connect(location)

    def resolve(self, path: str) -> str:
        """Return the location of a path in the log: a relative path or a URI, percent-encoded once ("Add File")."""
        full, literal = _is_uri(path), unquote(path) if "%" in path else path
        if full:
            return local_path(literal) or literal
        if not literal.startswith("/"):
            return f"{self.root}/{literal}"
        # As in every URI, a leading slash starts at the store's root.
        return literal if not _is_uri(self.root) else "/".join(self.root.split("/", 3)[:3]) + literal

    def locate(self, location: str) -> tuple[pa.fs.FileSystem, str]:
        """Return the file system of a location, and the path in it."""
        if (path := local_path(location)) is not None:
            return pa.fs.LocalFileSystem(), path
        scheme, _, rest = location.partition("://")
        scheme = scheme.lower()
        host, _, path = rest.partition("/")
        if (scheme, host) not in self._filesystems:
            self._filesystems[scheme, host] = self._connect(f"{scheme}://{host}/")
        return self._filesystems[scheme, host], f"{host.partition('@')[0]}/{path}"

    def _connect(self, uri: str) -> pa.fs.FileSystem:
        scheme = _ALIASES.get(urlsplit(uri).scheme.lower(), urlsplit(uri).scheme.lower())
        try:
            if scheme == "s3" and (arguments := s3_arguments(self._options)):
                return pa.fs.S3FileSystem(**arguments)
            if scheme == "gs" and (arguments := gcs_arguments(self._options)):
                return pa.fs.GcsFileSystem(**arguments)
            if scheme == "abfss":
                return pa.fs.AzureFileSystem(**azure_arguments(self._options, urlsplit(uri).netloc))
            return pa.fs.FileSystem.from_uri(re.sub("^[^:]+", scheme, uri))[0]
        except (OSError, ValueError, TypeError, AttributeError) as error:
            # The URI may hold credentials: the scheme is all that is safe to show.
            raise TableError(
                f"Can't open the storage {scheme}:// of the table ({type(error).__name__}). "
                "Check the location and the storage options."
            ) from None


def local_path(location: str) -> str | None:
    """Return the path of a location on a local or mounted file system; None where it is in an object store.

    A `file:` URI may be written in any way; that of another machine is refused.

    >>> local_path("file:/x/y"), local_path("file://localhost/x/y"), local_path("/x/y"), local_path("s3://x/y")
    ('/x/y', '/x/y', '/x/y', None)
    """
    if location[:5].lower() != "file:":
        return None if _is_uri(location) else location
    path = location[5:]
    if path.startswith("//"):
        host, _, path = path[2:].partition("/")
        _refuse_host(host, location)
    return f"/{path.lstrip('/')}"


def _refuse_host(host: str, uri: str) -> None:
    if host.lower() not in ("", "localhost"):
        raise TableError(
            f"{quoted(uri, limit=300)} names a file of the machine {quoted(host)}. Of this one, a path has "
            "three slashes, as in file:///path."
        )


def open_regular(filesystem: pa.fs.FileSystem, path: str) -> pa.NativeFile:
    """Open a file for random access, but on a local disk nothing that `refuse_special` refuses."""
    if isinstance(filesystem, pa.fs.LocalFileSystem):
        refuse_special(path)
    return filesystem.open_input_file(path)


def refuse_special(location: str) -> None:
    """Raise an `OSError` for a local pipe, socket or device: opening one may wait forever, and reading never end."""
    path = local_path(location)
    if path is not None and not S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "It isn't a regular file", path)


def _is_uri(location: str) -> bool:
    return _URI.match(location) is not None


def _option(options: Mapping[str, str], *names: str) -> str | None:
    return next((options[name] for name in names if options.get(name)), None)


def _is_true(value: str | None) -> bool:
    return value is not None and value.lower() in ("true", "1", "yes", "on")


def s3_arguments(options: Mapping[str, str]) -> dict[str, Any]:
    """Translate the usual names of S3 options and PyIceberg's; empty where there are none: the environment decides.

    >>> s3_arguments({"aws_region": "eu-central-1", "aws_endpoint_url": "http://minio:9000"})
    {'region': 'eu-central-1', 'endpoint_override': 'minio:9000', 'scheme': 'http'}
    """
    given: dict[str, Any] = {
        "access_key": _option(options, "aws_access_key_id", "access_key_id", *_pyiceberg("access-key-id")),
        "secret_key": _option(options, "aws_secret_access_key", "secret_access_key", *_pyiceberg("secret-access-key")),
        "session_token": _option(
            options, "aws_session_token", "session_token", "aws_token", *_pyiceberg("session-token")
        ),
        "region": _option(options, "aws_region", "region", "aws_default_region", *_pyiceberg("region")),
        "role_arn": _option(options, *_pyiceberg("role-arn")),
        "session_name": _option(options, *_pyiceberg("role-session-name")),
        "proxy_options": _option(options, "s3.proxy-uri"),
    }
    names = ("aws_endpoint_url_s3", "aws_endpoint_url", "aws_endpoint", "endpoint_url", "s3.endpoint")
    if endpoint := _option(options, *names):
        scheme, _, host = endpoint.rpartition("://")
        plain = _is_true(options.get("aws_allow_http")) and not scheme
        given |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or ("http" if plain else "https")}
    if _is_true(_option(options, "aws_skip_signature", "skip_signature", "s3.anonymous")):
        given["anonymous"] = True
    styles = ("aws_virtual_hosted_style_request", "virtual_hosted_style_request", "s3.force-virtual-addressing")
    if _is_true(_option(options, *styles)):
        given["force_virtual_addressing"] = True
    return {name: value for name, value in given.items() if value is not None}


def _pyiceberg(name: str) -> tuple[str, str]:
    return f"s3.{name}", f"client.{name}"


def gcs_arguments(options: Mapping[str, str]) -> dict[str, Any]:
    """Translate options of Google storage; a key file is read from GOOGLE_APPLICATION_CREDENTIALS only."""
    if endpoint := _option(options, "google_endpoint_url", "endpoint_url", "gcs.service.host"):
        scheme, _, host = endpoint.rpartition("://")
        return {"anonymous": True, "endpoint_override": host, "scheme": scheme or "https"}
    if token := _option(options, "gcs.oauth2.token"):
        expires = int(options.get("gcs.oauth2.token-expires-at") or 0)
        end = datetime.fromtimestamp(expires / 1000) if expires else datetime.now() + timedelta(hours=1)
        return {"access_token": token, "credential_token_expiration": end}
    return {"anonymous": True} if _is_true(_option(options, "google_skip_signature", "skip_signature")) else {}


def azure_arguments(options: Mapping[str, str], host: str) -> dict[str, Any]:
    """Translate options of Azure storage; `container@account.dfs.core.windows.net` names the account, too."""
    account = host.partition("@")[2].partition(".")[0]
    given = {
        "account_name": account or _option(options, "azure_storage_account_name", "account_name", "adls.account-name"),
        "account_key": _option(
            options, "azure_storage_account_key", "azure_storage_access_key", "account_key", "adls.account-key"
        ),
        "sas_token": _option(
            options,
            "azure_storage_sas_token",
            "azure_storage_sas_key",
            "sas_token",
            "adls.sas-token",
            f"adls.sas-token.{account}",
            f"adls.sas-token.{account}.dfs.core.windows.net",
        ),
        "tenant_id": _option(options, "adls.tenant-id"),
        "client_id": _option(options, "adls.client-id"),
        "client_secret": _option(options, "adls.client-secret"),
    }
    return {name: value for name, value in given.items() if value is not None}
