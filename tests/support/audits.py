"""Audits of a table's life, with its own log and without a look at rows."""

import zonal
from support.cluster_options import grouped


def asked_of(life, **more):
    options = {"queries": zonal.Logs([life.log], cap=None), "look": False, **more}
    return zonal.audit(life.name, **life.options, **grouped(**options))


def at(life, stage, **more):
    """The audit of a stage, by its version."""
    return asked_of(life, at=life.stages[stage].version, **more)
