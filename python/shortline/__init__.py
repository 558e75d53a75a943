"""Exact simulation and closed forms of size-based scheduling.

A queue in front of a link or server, jobs of known or estimated sizes, and the policies of the web
server Shortline: the simulator runs the server's own scheduler.

    >>> import shortline as sl
    >>> runs = sl.simulate(sl.Steady("exp:1250", load=0.5, jobs=20_000), rate="10mbit")
    >>> bool(runs["srpt"].sojourn_mean < runs["fair"].sojourn_mean)
    True
    >>> round(float(sl.model.sojourn_mean("srpt", "exp:1", 0.5)), 4)
    1.4254

Units: times are seconds, sizes bytes on the link, rates bits per second. In :mod:`shortline.model`
sizes are times of service, and times are in the same unit.

A wrong argument is a :class:`ValueError` (or :class:`TypeError`) that says what would be right. The
same arguments and seed give the same numbers on every machine, however many cores it has.
"""

from . import model
from ._distribution import Distribution
from ._policies import Policy, policies
from ._results import DoubtWarning, LeftOutWarning, PolicyResult, Results
from ._simulate import simulate
from ._sources import Alternating, Jobs, Source, Steady, Trace, Wire, Workload

__all__ = [
    "Alternating",
    "Distribution",
    "DoubtWarning",
    "Jobs",
    "LeftOutWarning",
    "Policy",
    "PolicyResult",
    "Results",
    "Source",
    "Steady",
    "Trace",
    "Wire",
    "Workload",
    "model",
    "policies",
    "simulate",
]
