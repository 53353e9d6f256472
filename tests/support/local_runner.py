"""Runs the steps of a rewrite in this process and thread, so that what happens does so in the same order every time."""

from zonal.rewriting.on_this_machine import ThisMachine

run_here = ThisMachine(threads=1)
