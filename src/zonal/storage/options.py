"""Resolve storage options by all their names: those of delta-rs and object_store, and PyIceberg's properties."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from zonal.errors import TableError, quoted, suggestion


def _aws(*names: str) -> tuple[str, ...]:
    return tuple(name for bare in names for name in (f"aws_{bare}", bare))


def _azure(*names: str) -> tuple[str, ...]:
    return tuple(name for bare in names for name in (f"azure_storage_{bare}", f"azure_{bare}", bare))


def _pyiceberg(name: str) -> tuple[str, str]:
    return f"s3.{name}", f"client.{name}"


S3: Mapping[str, tuple[str, ...]] = {
    "access_key": (*_aws("access_key_id"), *_pyiceberg("access-key-id")),
    "secret_key": (*_aws("secret_access_key"), *_pyiceberg("secret-access-key")),
    "session_token": (*_aws("session_token"), "aws_token", *_pyiceberg("session-token")),
    "region": (*_aws("region", "default_region"), *_pyiceberg("region")),
    "endpoint": ("aws_endpoint_url_s3", *_aws("endpoint_url", "endpoint"), "s3.endpoint"),
    "allow_http": _aws("allow_http"),
    "anonymous": (*_aws("skip_signature"), "s3.anonymous"),
    "virtual": (*_aws("virtual_hosted_style_request"), "s3.force-virtual-addressing"),
    "role_arn": (*_aws("role_arn", "iam_role_arn"), *_pyiceberg("role-arn")),
    "session_name": (*_aws("role_session_name", "iam_role_session_name"), *_pyiceberg("role-session-name")),
    "profile": (*_aws("profile"), "s3.profile-name", "client.profile-name"),
    "proxy": ("proxy_url", "s3.proxy-uri"),
    "connect_timeout": ("s3.connect-timeout",),
    "request_timeout": ("s3.request-timeout",),
    "tls_ca_file_path": ("aws_ca_bundle",),
}
"""Names of S3's options by meaning; of several that are given, the first counts."""

GCS: Mapping[str, tuple[str, ...]] = {
    "endpoint": (
        "google_endpoint_url", "endpoint_url", "endpoint", "google_base_url", "base_url", "gcs.service.host",
    ),
    "anonymous": ("google_skip_signature", "skip_signature"),
    "access_token": ("google_bearer_token", "gcs.oauth2.token"),
    "key_file": (
        "google_service_account",
        "google_service_account_path",
        "service_account",
        "service_account_path",
        "google_application_credentials",
        "application_credentials",
    ),
    "key": ("google_service_account_key", "service_account_key"),
    "expires": ("gcs.oauth2.token-expires-at",),
    "project_id": ("google_project_id", "gcs.project-id"),
    "default_bucket_location": ("gcs.default-bucket-location",),
}  # fmt: skip

AZURE: Mapping[str, tuple[str, ...]] = {
    "account_name": (*_azure("account_name"), "adls.account-name"),
    "account_key": (*_azure("account_key", "access_key"), "azure_storage_master_key", "adls.account-key"),
    "sas_token": (*_azure("sas_token", "sas_key"), "adls.sas-token"),
    "tenant_id": (*_azure("tenant_id", "authority_id"), "adls.tenant-id"),
    "client_id": (*_azure("client_id"), "adls.client-id"),
    "client_secret": (*_azure("client_secret"), "adls.client-secret"),
    "endpoint": _azure("endpoint"),
    "allow_http": ("azure_allow_http", "allow_http"),
    "emulator": _azure("use_emulator"),
    "account_host": ("adls.account-host",),
    "blob_storage_authority": ("adls.blob-storage-authority",),
    "dfs_storage_authority": ("adls.dfs-storage-authority",),
    "blob_storage_scheme": ("adls.blob-storage-scheme",),
    "dfs_storage_scheme": ("adls.dfs-storage-scheme",),
}

PROPERTIES: Mapping[str, str] = {
    **{name: f"s3.{name.replace('_', '-')}" for name in ("region", "endpoint", "anonymous", "role_arn")},
    "access_key": "s3.access-key-id",
    "secret_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
    "session_name": "s3.role-session-name",
    "virtual": "s3.force-virtual-addressing",
    "profile": "s3.profile-name",
    "proxy": "s3.proxy-uri",
}
"""What catalogs and PyIceberg call options of S3."""

_FSSPEC_ONLY = frozenset((
    "s3.signer", "s3.signer.uri", "s3.signer.endpoint", "adls.connection-string", "adls.credential", "adls.token",
    "adls.anon", "gcs.access", "gcs.consistency", "gcs.cache-timeout", "gcs.requester-pays", "gcs.session-kwargs",
    "gcs.version-aware", "s3.retry-strategy-impl", "s3.server-side-encryption", "s3.sse-kms-key-id", "hf.endpoint",
    "hf.token", "hdfs.host", "hdfs.port", "hdfs.user", "hdfs.kerberos_ticket", "s3.resolve-region",
))  # fmt: skip
"""Properties of file access that only PyIceberg's own classes know."""

_CATALOG = frozenset((
    "uri", "type", "warehouse", "token", "credential", "scope", "audience", "resource", "prefix", "auth", "ssl",
    "oauth2-server-uri", "snapshot-loading-mode", "scan-planning-mode", "view-endpoints-supported", "rest-page-size",
    "namespace-separator", "token-refresh-enabled", "access-delegation", "py-io-impl", "py-catalog-impl",
    "py-location-provider-impl", "buffer-size", "downcast-ns-timestamp-to-us-on-write", "echo", "pool_pre_ping",
    "init_catalog_tables", "table-name", "catalog-impl", "io-impl",
    "ugi", "lock-check-min-wait-time", "lock-check-max-wait-time", "lock-check-retries",
    "s3.remote-signing-enabled",
))  # fmt: skip
_CATALOG_PREFIXES = ("header.", "rest.", "glue.", "dynamodb.", "hive.", "gcp.bigquery.", "auth.", "ssl.", "p.")
_CUSTOM = ("py-catalog-impl", "py-io-impl")
"""Properties that name custom classes, whose options can't be checked."""

_ENVIRONMENT = "Set {} in the environment instead."
_REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        _aws("web_identity_token_file"), _ENVIRONMENT.format("AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN")
    ),
    **dict.fromkeys(
        _aws("container_credentials_relative_uri", "container_credentials_full_uri", "metadata_endpoint"),
        "Leave it out: roles of containers and machines are found by themselves.",
    ),
    **dict.fromkeys(
        (*_aws("server_side_encryption", "sse_kms_key_id", "sse_bucket_key_enabled"), "s3.server-side-encryption"),
        "Set the default encryption of the bucket instead.",
    ),
    **dict.fromkeys(
        ("aws_s3_allow_unsafe_rename", "allow_unsafe_rename", *_aws("conditional_put", "copy_if_not_exists")),
        "Leave it out: zonal always writes versions on the condition that there is none.",
    ),
    **dict.fromkeys(
        ("aws_s3_locking_provider", "delta_dynamo_table_name", "dynamo_table_name"),
        "zonal takes no locks in DynamoDB: it and writers that rely on them could replace each other's commits. Let "
        "all of them write on condition (aws_conditional_put=etag in delta-rs), or one at a time.",
    ),
    **dict.fromkeys(
        (*_azure("token", "bearer_token"), "adls.token", "adls.credential"),
        "Give azure_storage_sas_token or azure_storage_account_key instead.",
    ),
    "adls.connection-string": "Give azure_storage_account_name and azure_storage_account_key instead.",
    **dict.fromkeys(
        _azure("federated_token_file", "use_azure_cli", "msi_endpoint", "identity_endpoint", "object_id"),
        "Leave it out: without a key, identities are found in the environment, of the machine and of the Azure CLI.",
    ),
    **dict.fromkeys(
        (*_aws("bucket", "bucket_name"), "google_bucket", "google_bucket_name", *_azure("container_name")),
        "Leave it out: the location names it.",
    ),
    **dict.fromkeys(("timeout", "connect_timeout"), "Give s3.request-timeout or s3.connect-timeout, in seconds."),
    "max_retries": "Leave it out: requests are repeated by themselves.",
}  # fmt: skip

_STORES = frozenset(name for store in (S3, GCS, AZURE) for names in store.values() for name in names)


@dataclass(frozen=True)
class Given:
    """Options in layers; the first layer that has an option, under any of its names, counts."""

    layers: tuple[Mapping[str, str], ...]

    def get(self, names: Iterable[str]) -> str | None:
        names = tuple(names)
        return next((layer[name] for layer in self.layers for name in names if layer.get(name)), None)

    def is_true(self, names: Iterable[str]) -> bool:
        value = self.get(names)
        return value is not None and value.lower() in ("true", "1", "yes", "on")


def check_options(options: Mapping[str, str], *, iceberg: bool) -> None:
    """Raise an error for options that nothing would use; known are those of stores and, with `iceberg`, of catalogs."""
    if iceberg and any(name in options for name in _CUSTOM):
        return
    for name in options:
        low = name.lower()
        if low in _STORES or low.startswith("adls.sas-token.") or (iceberg and _is_property(name)):
            continue
        if low in _REFUSED:
            raise TableError(f"The storage option {quoted(name)} can't be used. {_REFUSED[low]}")
        if _is_property(name):
            raise TableError(
                f"The storage option {quoted(name)} is for an Iceberg table, named as iceberg:NAMESPACE.TABLE."
            )
        known = sorted(_STORES | _CATALOG | _FSSPEC_ONLY if iceberg else _STORES)
        raise TableError(f"Unknown storage option {quoted(name)}. {suggestion(name, known)}")


def for_pyiceberg(options: Mapping[str, str]) -> dict[str, str]:
    """Return options under the names that catalogs know: delta-rs's names of S3 options become PyIceberg's.

    >>> for_pyiceberg({"AWS_REGION": "eu-west-1", "uri": "http://catalog"})
    {'s3.region': 'eu-west-1', 'uri': 'http://catalog'}
    """
    meanings = {name: PROPERTIES[what] for what, names in S3.items() if what in PROPERTIES for name in names}
    translated = {meanings[name.lower()]: value for name, value in options.items() if name.lower() in meanings}
    kept = {name: value for name, value in options.items() if "." in name or name.lower() not in meanings}
    return {**translated, **kept}


def store_options(properties: Mapping[str, object]) -> dict[str, str]:
    """Return only those of a catalog's properties that are for object stores: they are sent to workers."""
    named = {name.lower(): str(value) for name, value in properties.items()}
    return {name: value for name, value in named.items() if name in _STORES or name.startswith("adls.sas-token.")}


def needs_pyiceberg(properties: Mapping[str, object]) -> bool:
    """Tell whether files must be opened by PyIceberg's or custom classes, by a class or an option of theirs."""
    return "py-io-impl" in properties or any(name in _FSSPEC_ONLY for name in properties)


def _is_property(name: str) -> bool:
    return name in _CATALOG or name in _FSSPEC_ONLY or name.startswith(_CATALOG_PREFIXES)
