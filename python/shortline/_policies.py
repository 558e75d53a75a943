"""The policies by name."""

from typing import NamedTuple

from . import _core

_SUMMARIES = {
    "fair": "processor sharing: all jobs share evenly",
    "fifo": "first in, first out",
    "sjf": "shortest job first, not preempting",
    "psjf": "shortest job first, preempting, by original size",
    "srpt": "shortest remaining processing time first: the least mean time in the system",
    "bands": "by the band of the remaining size, fair inside one; bands:1KB,9KB or bands:6",
    "quickfix": "small before large, fair within each kind; quickfix:2KB",
    "swift": "by remaining size and round trip time",
    "fcf": "by remaining size over the connection's throughput",
    "srrt": "shortest remaining response time first",
    "stert": "shortest total estimated response time first",
    "las": "least attained service first: for unknown sizes",
    "fsp": "in the order in which processor sharing would end the jobs",
    "boost": "in order of arrival, with short jobs counted as earlier: the shortest tail",
    "gittins": "the smallest Gittins rank first, for sizes that are only estimated",
    "shares": "in the order of fair sharing among clients, shortest first inside one",
}
_ALIASES = {"fair": ("ps",), "fifo": ("fcfs",), "srpt": ("scf",)}


class Policy(NamedTuple):
    """What can be said of a policy."""

    #: Its name in ``simulate``.
    name: str
    #: Other names of it.
    aliases: tuple[str, ...]
    #: What it does.
    summary: str
    #: What it needs to know: ``sizes`` at most, also the ``rate``, or each connection's ``path``
    #: (then ``simulate`` wants ``clients``).
    needs: str
    #: Whether :mod:`shortline.model` knows its means.
    has_closed_form: bool


def policies() -> tuple[Policy, ...]:
    """All policies that ``simulate`` knows."""
    return tuple(
        Policy(name, _ALIASES.get(name, ()), _SUMMARIES[name], needs, has_closed_form)
        for name, needs, has_closed_form in _core.policies()
    )
