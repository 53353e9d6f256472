"""On local disks a file appears whole or not at all, and only where its name is free."""

import errno
import os
import threading
from pathlib import Path

import pytest

from zonal.errors import CommitUnknownError, TableError
from zonal.storage.hard_links import HardLinks


def put(folder, name, text):
    return HardLinks(str(folder)).put_if_absent(name, text, sending=lambda: None)


def test_of_many_that_put_one_file_one_succeeds(tmp_path):
    path, won = str(tmp_path / "00.json"), []
    ready = threading.Barrier(8)

    def race(number):
        ready.wait()
        if put(tmp_path, "00.json", f"{number}\n" * 1000):
            won.append(number)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert Path(path).read_text() == f"{won[0]}\n" * 1000
    assert os.listdir(tmp_path) == ["00.json"]


def test_a_link_that_was_made_although_an_error_came_back_counts(tmp_path, monkeypatch):
    real = os.link

    def repeated(source, target):
        real(source, target)
        raise FileExistsError(errno.EEXIST, "a network file system asked twice")

    monkeypatch.setattr(os, "link", repeated)
    assert put(tmp_path, "a", "text")
    assert (tmp_path / "a").read_text() == "text"


@pytest.mark.parametrize(("code", "error"), [(errno.EPERM, TableError), (errno.EIO, CommitUnknownError)])
def test_an_error_of_the_link_says_whether_the_outcome_is_known(tmp_path, monkeypatch, code, error):
    def refuse(*_):
        raise OSError(code, "no")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(error) as caught:
        put(tmp_path, "a", "text")
    assert type(caught.value) is error
    assert os.listdir(tmp_path) == []
