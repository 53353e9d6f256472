"""A PostgreSQL server for tests: made in a temporary folder, reached by a socket, stopped at the end."""

import glob
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path


def _programs():
    """Find the folder of initdb and pg_ctl."""
    folders = [os.path.dirname(found)] if (found := shutil.which("pg_ctl")) else []
    folders += sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    return next((Path(each) for each in folders if os.access(Path(each) / "initdb", os.X_OK)), None)


def _user():
    """PostgreSQL refuses to run as root: return whom to run it as, None for whoever runs the tests."""
    if os.geteuid() != 0:
        return None
    names = {each.pw_name: each for each in pwd.getpwall()}
    return names.get("postgres") or names.get("nobody")


def reason_not_to():
    """Say why no server can be started here; empty where one can."""
    if _programs() is None:
        return "PostgreSQL's initdb and pg_ctl are not installed"
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed"
    return "root has no other user to run PostgreSQL as" if os.geteuid() == 0 and _user() is None else ""


@contextmanager
def server():
    """Start a server, and give the folder of its socket and its user."""
    user, programs = _user(), _programs()
    folder = Path(tempfile.mkdtemp(prefix="zonal-pg-", dir="/tmp"))
    if user:
        os.chown(folder, user.pw_uid, user.pw_gid)
    who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}

    def run(program, *arguments):
        done = subprocess.run(
            [programs / program, *arguments],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=120, check=False, **who,
        )  # fmt: skip
        assert done.returncode == 0, f"{program} failed: {done.stdout}"

    data = folder / "data"
    try:
        run("initdb", "-D", data, "-U", "zonal", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        settings = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
        run("pg_ctl", "-D", data, "-l", folder / "log", "-o", settings, "-w", "-t", "60", "start")
        try:
            yield folder
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
