"""The archive of the JVM's classes: when it is used, what it is for, and how many are kept."""

import os
import subprocess
import sys

import pytest

from zonal.errors import ZonalError
from zonal.spark import archive
from zonal.spark.class_archive import archive_flags, archive_folder, archive_name, archives_for
from zonal.spark.java import Java, find_java


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A Java and a Spark of a few bytes, and a cache of their own."""
    base = "java/lib/server/classes.jsa"
    for name, text in {base: "j", "java/lib/modules": "m", "spark/jars/a.jar": "a", "spark/jars/b.jar": "b"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Java(tmp_path / "java", 17, "PATH")


@pytest.fixture
def made(java):
    """An archive that may be used."""
    return put(java, b"classes")


def put(java, content):
    """Put an archive into the cache."""
    folder = archive_folder()
    folder.mkdir(parents=True, mode=0o700)
    (folder / "new").write_bytes(content)
    path = (folder / "new").rename(folder / archive_name(java, folder / "new"))
    path.chmod(0o444)
    return path


def test_an_archive_is_used_where_it_is_there(java, made):
    assert archive_flags(java)[0] == f"-XX:SharedArchiveFile={made}"
    made.unlink()
    assert archive_flags(java) == []


@pytest.mark.parametrize("content", [b"", b"class", b"classez"])
def test_an_archive_that_was_cut_off_or_changed_is_not_used(java, made, content):
    made.chmod(0o644)
    made.write_bytes(content)
    assert archive_flags(java) == []


def test_what_others_may_write_is_not_run(java, made, tmp_path):
    made.chmod(0o664)
    assert archive_flags(java) == [], "a file that a group may write"
    made.chmod(0o444)
    made.parent.chmod(0o777)
    assert archive_flags(java) == [], "a folder in which anyone may replace it"
    made.parent.chmod(0o700)
    made.rename(tmp_path / "elsewhere")
    made.symlink_to(tmp_path / "elsewhere")
    assert archive_flags(java) == [], "a link to a place that nobody looked at"


@pytest.mark.parametrize("change", ["jar", "new jar", "java", "variable"])
def test_another_java_or_spark_has_another_archive(java, made, monkeypatch, tmp_path, change):
    if change == "jar":
        os.utime(tmp_path / "spark/jars/a.jar", (1, 1))
    elif change == "new jar":
        (tmp_path / "spark/jars/c.jar").write_text("c")
    elif change == "java":
        (tmp_path / "java/lib/modules").write_text("newer")
    else:
        monkeypatch.setenv("SPARK_DIST_CLASSPATH", "/more")
    assert archives_for(java, made.parent) == []
    assert archive_flags(java) == []


def test_a_cache_that_java_cannot_name_has_no_archive(java, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a:b"))
    assert archive_folder() is None
    assert archive_flags(java) == []
    monkeypatch.setattr(archive, "find_java", lambda: java)
    with pytest.raises(ZonalError, match="set XDG_CACHE_HOME"):
        archive.make_archive()


def test_a_java_that_is_too_old_is_named(java, monkeypatch):
    monkeypatch.setattr(archive, "find_java", lambda: Java(java.home, 11, "JAVA_HOME"))
    with pytest.raises(ZonalError, match="Archives of classes need Java 13 or later, and zonal uses Java 11"):
        archive.make_archive()


def test_a_java_without_an_archive_of_its_own_is_named(java, monkeypatch):
    (java.home / "lib/server/classes.jsa").unlink()
    monkeypatch.setattr(archive, "find_java", lambda: java)
    with pytest.raises(ZonalError, match=r"has no archive of its own classes.* Install OpenJDK 17 or 21"):
        archive.make_archive()


def test_a_new_archive_appears_when_it_is_complete_and_old_ones_go(java, made, monkeypatch):
    folder = made.parent
    seen = []

    def rehearse(new):
        new.write_bytes(b"new classes")
        seen.extend(archives_for(java, folder))

    monkeypatch.setattr(archive, "find_java", lambda: java)
    monkeypatch.setattr(archive, "_rehearse", rehearse)
    for age, name in enumerate(["older.jsa", "oldest.jsa", "making-left"], start=1):
        (folder / name).mkdir() if "making" in name else (folder / name).write_text("old")
        os.utime(folder / name, (age * -100_000 + 10**9,) * 2)
    path = archive.make_archive()
    assert archive_flags(java)[0] == f"-XX:SharedArchiveFile={path}"
    assert seen == [made], "until it is complete, the old one stays"
    assert sorted(found.name for found in folder.iterdir()) == sorted([path.name, "older.jsa"])


def test_nothing_is_left_of_an_archive_that_failed(java, monkeypatch):
    def rehearse(new):
        new.write_bytes(b"half")
        raise ZonalError("Java made no archive of Spark's classes.")

    monkeypatch.setattr(archive, "find_java", lambda: java)
    monkeypatch.setattr(archive, "_rehearse", rehearse)
    with pytest.raises(ZonalError, match="made no archive"):
        archive.make_archive()
    assert list(archive_folder().iterdir()) == []


STARTED = """
from zonal.spark.session import spark_session
with spark_session(master="local[1]") as spark:
    print(spark.range(3).count())
"""


@pytest.mark.spark
def test_a_session_starts_as_ever_from_an_archive_that_java_refuses(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    put(find_java(), b"no archive" * 1000)
    assert archive_flags(find_java()), "the session is given the archive"
    command = [sys.executable, "-W", "ignore", "-c", STARTED]
    told = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert (told.stdout, told.stderr) == ("3\n", "")
