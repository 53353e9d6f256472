"""Processes that all commit to one folder of an object store at once."""

import json
import subprocess
import sys

_RACER = """
import json, sys
from zonal.storage import Storage
from zonal.storage.exclusive import exclusive_folder
place, who, commits = sys.argv[1], sys.argv[2], int(sys.argv[3])
folder = exclusive_folder(Storage(place, json.loads(sys.stdin.readline())), f"{place}/log")
folder.check()
print("ready", flush=True)
sys.stdin.readline()
version = 0
while commits:
    if folder.put_if_absent(f"{version:020d}.json", f"{who}-{version}", sending=lambda: None):
        print(version)
        commits -= 1
    version += 1
"""


def check_race(server, *, processes, commits):
    """Let each commit several times: nobody's version is another's, none is left out, and probes are removed."""
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [
        subprocess.Popen([sys.executable, "-c", _RACER, f"{server.place}t", str(number), str(commits)], **piped)
        for number in range(processes)
    ]
    for racer in racers:
        _say(racer, json.dumps(server.options))
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        _say(racer, "go")
    won = [[int(line) for line in racer.communicate(timeout=300)[0].split()] for racer in racers]
    assert sorted(version for versions in won for version in versions) == [*range(processes * commits)]
    held = {
        f"t/log/{version:020d}.json": f"{who}-{version}" for who, versions in enumerate(won) for version in versions
    }
    assert {name: server.read(name).decode() for name in server.objects() if name.startswith("t/log/")} == held


def _say(process, line):
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
