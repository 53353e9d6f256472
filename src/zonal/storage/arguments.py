"""Translate storage options, the environment and a location's own options to arguments of pyarrow's file systems."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from zonal.errors import TableError, option, quoted, suggestion
from zonal.storage.options import AZURE, GCS, S3, Given

_IN_LOCATION = {
    "s3": {"region": "aws_region", "endpoint_override": "aws_endpoint_url", "scheme": "scheme"},
    "gs": {"endpoint_override": "google_endpoint_url", "scheme": "scheme", "project_id": "google_project_id"},
}
"""Options in the query of a location's URI, as pyarrow reads them."""
_DFS = ".dfs.core.windows.net"
AZURITE = {
    "account_name": "devstoreaccount1",
    # The emulator's only key, which is public: its documentation prints it.
    "account_key": "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
}
"""The only account of Azure's emulator."""
_AZURITE_HOST = "127.0.0.1:10000"


def in_location(store: str, location: str) -> dict[str, str]:
    """Return the options that a location contains: `s3://KEY:SECRET@bucket/path?region=…`."""
    parts = urlsplit(location)
    known = _IN_LOCATION.get(store, {})
    options = {}
    for name, value in parse_qsl(parts.query):
        if name not in known:
            raise TableError(f"Unknown option {quoted(name)} in the location. {suggestion(name, known)}")
        options[known[name]] = value
    user, _, host = parts.netloc.rpartition("@")
    if store == "s3" and host and user:
        key, _, secret = user.partition(":")
        options |= {"aws_access_key_id": unquote(key), "aws_secret_access_key": unquote(secret)}
    if store == "gs" and user == "anonymous":
        options["google_skip_signature"] = "true"
    return options


def s3_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the S3 settings of the environment that `S3FileSystem`, unlike `FileSystem.from_uri`, doesn't read itself.

    It does read credentials, profiles and regions.
    """
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP")
    return {name.lower(): environment[name] for name in names if environment.get(name)}


def s3_arguments(given: Given) -> dict[str, Any]:
    """Translate options of S3; without any, the environment decides.

    >>> s3_arguments(Given(({"aws_region": "eu-central-1", "aws_endpoint_url": "http://minio:9000"},)))
    {'region': 'eu-central-1', 'endpoint_override': 'minio:9000', 'scheme': 'http'}
    """
    names = (
        "access_key", "secret_key", "session_token", "region", "role_arn", "session_name", "tls_ca_file_path",
        "profile",
    )  # fmt: skip
    arguments: dict[str, Any] = {name: given.get(S3[name]) for name in names}
    arguments["proxy_options"] = given.get(S3["proxy"])
    for name in ("connect_timeout", "request_timeout"):
        arguments[name] = _seconds(name, given.get(S3[name]))
    if endpoint := given.get(S3["endpoint"]):
        arguments |= _endpoint(endpoint, plain=given.is_true(S3["allow_http"]), scheme=given.get(("scheme",)))
    if given.is_true(S3["anonymous"]):
        arguments["anonymous"] = True
    if given.is_true(S3["virtual"]):
        arguments["force_virtual_addressing"] = True
    return {name: value for name, value in arguments.items() if value is not None}


def gcs_arguments(given: Given) -> dict[str, Any]:
    """Translate options of Google storage; a key file is read here, since workers may not have it."""
    arguments: dict[str, Any] = {name: given.get(GCS[name]) for name in ("project_id", "default_bucket_location")}
    if endpoint := given.get(GCS["endpoint"]):
        arguments |= _endpoint(endpoint, plain=False, scheme=given.get(("scheme",)))
    if token := given.get(GCS["access_token"]):
        expires = int(given.get(GCS["expires"]) or 0)
        end = datetime.fromtimestamp(expires / 1000) if expires else datetime.now() + timedelta(hours=1)
        arguments |= {"access_token": token, "credential_token_expiration": end}
    elif key := given.get(GCS["key"]) or _key_in(given.get(GCS["key_file"])):
        arguments["key"] = key
    elif given.is_true(GCS["anonymous"]) or arguments.get("scheme") == "http":
        arguments["anonymous"] = True  # emulators have no credentials, and real ones never go over plain HTTP
    return {name: value for name, value in arguments.items() if value is not None}


def azure_arguments(given: Given, host: str) -> dict[str, Any]:
    """Translate options of Azure storage; `container@account.dfs.core.windows.net` names the account, too.

    Other hosts, such as those of OneLake and of national clouds, are taken from the location.

    >>> found = azure_arguments(Given(({},)), "work@onelake.dfs.fabric.microsoft.com")
    >>> found["account_name"], found["dfs_storage_authority"], found["blob_storage_authority"]
    ('onelake', '.dfs.fabric.microsoft.com', '.blob.fabric.microsoft.com')
    """
    names = ("account_key", "tenant_id", "client_id", "client_secret")
    server = host.partition("@")[2] or given.get(AZURE["account_host"]) or ""
    emulated = given.is_true(AZURE["emulator"])
    account = _account(server) or given.get(AZURE["account_name"]) or (AZURITE["account_name"] if emulated else None)
    if account is None:
        container = host.partition("@")[0]
        raise TableError(
            f"{quoted(f'abfss://{host}')} doesn't say which storage account it is in. Write "
            f"abfss://{container}@ACCOUNT{_DFS}/PATH, or give {option('storage_options')} "
            "azure_storage_account_name=ACCOUNT."
        )
    arguments: dict[str, Any] = {name: given.get(AZURE[name]) for name in names}
    sas = (f"adls.sas-token.{account}", f"adls.sas-token.{account}{_DFS}")
    arguments |= {"account_name": account, "sas_token": given.get((*AZURE["sas_token"], *sas))}
    if emulated and not (arguments["account_key"] or arguments["sas_token"]):
        arguments["account_key"] = AZURITE["account_key"]
    arguments |= _azure_hosts(given, server, account, emulated)
    return {name: value for name, value in arguments.items() if value is not None}


def _account(server: str) -> str | None:
    """Return the account of a host, its first label; None for the address of an emulator."""
    first, dot, _ = server.partition(".")
    return first if dot and not first.isdecimal() else None


def _azure_hosts(given: Given, server: str, account: str, emulated: bool) -> dict[str, str]:
    endpoint = given.get(AZURE["endpoint"])
    arguments = {}
    if endpoint or emulated or (server and _account(server) is None):
        plain = emulated or given.is_true(AZURE["allow_http"])
        parts = _endpoint(endpoint or (_AZURITE_HOST if emulated else server), plain=plain)
        server, scheme = parts["endpoint_override"].partition("/")[0], parts["scheme"]
        arguments = {"blob_storage_scheme": scheme, "dfs_storage_scheme": scheme}
    if server and server != f"{account}{_DFS}":
        authority = server.removeprefix(account) if server.startswith(f"{account}.") else server
        arguments["blob_storage_authority"] = authority.replace(".dfs.", ".blob.", 1)
        arguments["dfs_storage_authority"] = authority.replace(".blob.", ".dfs.", 1)
    names = ("blob_storage_authority", "dfs_storage_authority", "blob_storage_scheme", "dfs_storage_scheme")
    return arguments | {name: value for name in names if (value := given.get(AZURE[name]))}


def _endpoint(text: str, *, plain: bool, scheme: str | None = None) -> dict[str, str]:
    written, _, host = text.rpartition("://")
    return {"endpoint_override": host.rstrip("/"), "scheme": written or scheme or ("http" if plain else "https")}


def _key_in(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"The key file {quoted(path, limit=300)} can't be read: {error}") from None


def _seconds(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise TableError(f"The storage option s3.{name.replace('_', '-')} is not a number of seconds.") from None
