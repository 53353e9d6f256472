"""Check the address of a Spark master or server: its form, and whether anything answers there.

Spark's own clients try for a minute and more before they give up, and then report another problem.
"""

import os
import re
import socket
import urllib.request

from zonal.errors import ZonalError, quoted, suggestion

SECONDS = 10.0
"""Time limit for an answer from all addresses of a master, or from a server."""

_MASTERS = ("here", "local", "local[*]", "local[4]", "yarn", "spark://HOST:7077", "k8s://https://HOST:443")
_MASTER = re.compile(r"local(-cluster)?(\[.*\])?|yarn|(spark|k8s)://.+")
_CHECK = "Start it there, or check the host, the port and firewalls between."


def check_master(master: str) -> None:
    """Raise an error where Spark knows no such master, or where none answers."""
    if not _MASTER.fullmatch(master):
        near = suggestion(master, ["yarn", "local", "here"]) if re.fullmatch(r"[\w-]+", master) else ""
        known = near if near.startswith("Did") else f"Masters are: {', '.join(_MASTERS)}."
        raise ZonalError(f"Spark knows no master {shown(master)}. {known}")
    if master.startswith("spark://"):
        _knock_at_masters(master)
    elif (
        match := re.match(r"k8s://(?:(https?)://)?(?:\[([^\]]+)\]|([^:/]+))(?::(\d{1,5}))?(?:/|$)", master)
    ) is not None:
        host, port = match[2] or match[3], int(match[4] or (80 if match[1] == "http" else 443))
        if not _goes_by_proxy(host) and (problem := _knock(host, port, SECONDS)):
            raise ZonalError(f"No Kubernetes answers at {shown(master)}: {problem}. {_CHECK}")


def check_server(remote: str) -> None:
    """Raise an error where no Spark Connect server answers; `local[2]` and the like start one of their own."""
    if not remote.startswith("sc:"):
        if not remote.startswith("local") or not _MASTER.fullmatch(remote):
            raise ZonalError(f"{shown(remote)} is no Spark Connect server: write it as sc://HOST or sc://HOST:PORT.")
        return
    match = re.match(r"sc://(?:\[([^\]]+)\]|([^:/;]+))(?::(\d{1,5}))?(?:/|$)", remote)
    if match is None:
        return  # an address that Spark judges
    host, port = match[1] or match[2], int(match[3] or 15002)
    if not _goes_by_proxy(host) and (problem := _knock(host, port, SECONDS)):
        raise ZonalError(f"No Spark Connect server answers at {shown(remote)}: {problem}. {_CHECK}")


def shown(address: str) -> str:
    """Quote an address without its parameters."""
    return quoted(public(address), limit=200)


def public(address: str) -> str:
    """Return an address without its parameters, which may hold a token."""
    return address.partition(";")[0]


def _knock_at_masters(master: str) -> None:
    """Raise an error unless one master answers; those of one cluster are separated by commas."""
    addresses = []
    for each in master.removeprefix("spark://").split(","):
        match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:/\[\]]+)):(\d{1,5})", each)
        if match is None:
            raise ZonalError(f"{shown(master)} is no address of a Spark master: write it as spark://HOST:PORT.")
        addresses.append((match[1] or match[2], int(match[3])))
    problems = []
    for host, port in addresses:
        problem = _knock(host, port, max(SECONDS / len(addresses), 2.0))
        if problem is None:
            return
        problems.append(problem if len(addresses) == 1 else f"{host}:{port}: {problem}")
    raise ZonalError(f"No Spark master answers at {shown(master)}: {'; '.join(problems)}. {_CHECK}")


def _knock(host: str, port: int, seconds: float) -> str | None:
    """Return what is wrong with an address; None where something answers."""
    try:
        socket.create_connection((host, port), timeout=seconds).close()
    except TimeoutError:
        return f"nothing came back for {seconds:.0f} s"
    except socket.gaierror as error:
        return f"the host isn't known ({error.strerror})"
    except (OSError, OverflowError, UnicodeError) as error:
        return str(getattr(error, "strerror", None) or error)
    return None


def _goes_by_proxy(host: str) -> bool:
    """Tell whether HTTP clients reach this host through a proxy, so that a direct connection tells nothing."""
    named = [name for name in os.environ if name.lower() in ("grpc_proxy", "https_proxy", "http_proxy", "all_proxy")]
    bypassed = urllib.request.proxy_bypass_environment(host)  # type: ignore[attr-defined]
    return any(os.environ[name] for name in named) and not bypassed
