"""A bucket or container of an object store: which one, and by which arguments it is opened."""

from dataclasses import dataclass, field
from typing import Any

from zonal.errors import TableError, quoted
from zonal.storage.causes import cause_of, what_to_check

ATTEMPTS = 10
"""How often a request is made before it has failed."""
_SECRET = frozenset((
    "access_key", "secret_key", "session_token", "access_token", "account_key", "sas_token", "client_secret",
    "key", "proxy_options",
))  # fmt: skip


@dataclass(frozen=True)
class Store:
    """A bucket or container, and the arguments of the file system that opens it."""

    kind: str
    """s3, gs, abfss or hdfs."""
    host: str
    """The bucket, `container@host` or `container`, or Hadoop's host and port."""
    arguments: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    @property
    def endpoint(self) -> str:
        """The URL of the server, as far as it is known before a request."""
        arguments = dict(self.arguments)
        if self.kind == "abfss":
            authority = arguments.get("dfs_storage_authority", ".dfs.core.windows.net")
            server = f"{arguments['account_name']}{authority}" if authority.startswith(".") else authority
            return f"{arguments.get('dfs_storage_scheme', 'https')}://{server}"
        if self.kind == "hdfs":
            return f"hdfs://{self.host}"
        if "endpoint_override" in arguments:
            return f"{arguments['scheme']}://{arguments['endpoint_override']}"
        return "https://storage.googleapis.com" if self.kind == "gs" else f"https://{self.host}.s3.amazonaws.com"

    @property
    def secrets(self) -> list[str]:
        return [str(value) for name, value in self.arguments if name in _SECRET]

    def problem(self, error: BaseException) -> TableError:
        """Return an error that says which store can't be used, why, and what to check."""
        name = quoted(f"{self.kind}://{self.host}")
        at = "" if name[1:-1] == self.endpoint else f" at {self.endpoint}"
        check = what_to_check(self.kind, error) or "Check the location and the storage options."
        return TableError(f"Can't open the storage {name}{at}: {cause_of(error, self.secrets)}. {check}")
