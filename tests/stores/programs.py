"""Programs that serve stores and catalogs: fetched once to `build/stores`, started on loopback, and always stopped."""

import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2] / "build" / "stores"
PATIENCE = 900
"""Seconds for a download or a build: a gateway in Go is compiled."""
VERSITYGW, AZURITE, ICEBERG = "1.8.0", "3.35.0", "1.11.0"
"""Versions; that of Iceberg is in `rest/pom.xml`."""
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"


def versitygw():
    """Return the path of an S3 gateway, compiled by Go."""
    command = ["go", "install", f"github.com/versity/versitygw/cmd/versitygw@v{VERSITYGW}"]
    return _fetched(f"versitygw-{VERSITYGW}", command, GOBIN="{}") / "versitygw"


def azurite():
    """Return the path of Microsoft's emulator of Azure's blobs, by npm."""
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", "{}", f"azurite@{AZURITE}"]
    return _fetched(f"azurite-{AZURITE}", command) / "node_modules" / ".bin" / "azurite-blob"


def rest_catalog():
    """Return the classpath of a REST catalog: Iceberg's own test fixture, by Maven, and a class that starts it."""
    source = Path(__file__).parent / "rest"
    jars = ["mvn", "-q", "-B", "-f", str(source), f"{COPY}:copy-dependencies", "-DoutputDirectory={}/jars"]
    folder = _fetched(f"iceberg-rest-{ICEBERG}", jars)
    if not (folder / "classes" / "org").exists():
        if shutil.which("javac") is None:
            pytest.skip("there is no javac to compile the class that starts Iceberg's REST fixture")
        run(["javac", "-cp", f"{folder}/jars/*", "-d", f"{folder}/classes", f"{source}/LoopbackCatalog.java"], folder)
    return f"{folder}/classes:{folder}/jars/*"


def _fetched(name, command, **environment):
    """Return the folder of a program, which a command makes there (`{}`); skip the test where it can't be had."""
    folder, part = HOME / name, HOME / f".{name}"
    if not folder.exists():
        if shutil.which(command[0]) is None:
            pytest.skip(f"{name} isn't in {HOME}, and there is no {command[0]} to fetch it")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        filled = {key: value.format(part) for key, value in environment.items()}
        run([each.format(part) for each in command], part, **filled)
        part.rename(folder)
    return folder


def run(command, folder, **environment):
    """Run a command that needs a network; skip the test where it fails."""
    given = {"env": os.environ | environment, "cwd": folder, "capture_output": True, "text": True}
    try:
        done = subprocess.run(command, timeout=PATIENCE, check=False, **given)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{command[0]} took more than {PATIENCE} seconds")
    if done.returncode:
        pytest.skip(f"{' '.join(command)[:200]} failed: {(done.stderr or done.stdout)[-500:].strip()}")


@contextmanager
def served(command, folder, **environment):
    """Start a server, whose port `{}` is in its command, and yield its address once it accepts connections."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(word).replace("{}", str(port)) for word in command]
    with (folder / "server.log").open("w") as log:
        given = {"cwd": folder, "stdout": log, "stderr": log, "env": os.environ | environment}
        process = subprocess.Popen(words, **given)
        try:
            _wait(process, port, folder / "server.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process, port, log):
    for _ in range(600):
        assert process.poll() is None, log.read_text()[-2000:]
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"the server didn't listen within a minute: {log.read_text()[-2000:]}")
