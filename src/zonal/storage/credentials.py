"""Credentials of S3 for obstore, which reads no profiles and assumes no roles: by botocore, as AWS's own tools do."""

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from importlib.util import find_spec
from typing import Any

from zonal.errors import TableError, quoted

Provider = Callable[[], dict[str, Any]]
"""Returns the credentials of the moment."""


def s3_credentials(arguments: Mapping[str, Any], region: str) -> Provider | None:
    """Return what gives credentials to obstore, by arguments of `S3FileSystem`; None where it finds them itself."""
    role = arguments.get("role_arn")
    if "access_key" in arguments and role is None:
        return lambda: _credential(
            arguments["access_key"], arguments.get("secret_key", ""), arguments.get("session_token"), None
        )
    if find_spec("botocore") is None:
        if role is None and "profile" not in arguments:
            return None
        what = f"The role {quoted(role)}" if role else f"The profile {quoted(arguments['profile'])}"
        raise TableError(f"{what} needs botocore for commits. Run: pip install 'zonal[stores]'.")
    return _of_role(arguments, region) if role else _of_session(arguments.get("profile"))


def _of_session(profile: str | None) -> Provider | None:
    """Return credentials as AWS's tools find them: of the environment, of profiles, containers and machines."""
    from botocore.session import Session  # noqa: PLC0415 - slow to import, and an extra

    found = Session(profile=profile).get_credentials()
    if found is None:
        return None

    def provide() -> dict[str, Any]:
        now = found.get_frozen_credentials()  # renewed by itself, where it is about to expire
        return _credential(now.access_key, now.secret_key, now.token, getattr(found, "_expiry_time", None))

    return provide


def _of_role(arguments: Mapping[str, Any], region: str) -> Provider:
    """Return credentials of a role that is assumed anew whenever the last ones expire."""
    from botocore.session import Session  # noqa: PLC0415

    keys = {
        "aws_access_key_id": arguments.get("access_key"),
        "aws_secret_access_key": arguments.get("secret_key"),
        "aws_session_token": arguments.get("session_token"),
    }
    client = Session(profile=arguments.get("profile")).create_client("sts", region_name=region, **keys)

    def provide() -> dict[str, Any]:
        asked = {"RoleArn": arguments["role_arn"], "RoleSessionName": arguments.get("session_name", "zonal")}
        found = client.assume_role(**asked)["Credentials"]
        return _credential(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], found["Expiration"])

    return provide


def _credential(key: str, secret: str, token: str | None, expires: datetime | None) -> dict[str, Any]:
    if expires is not None and expires.tzinfo is None:
        expires = expires.replace(tzinfo=timezone.utc)
    return {"access_key_id": key, "secret_access_key": secret, "token": token, "expires_at": expires}
