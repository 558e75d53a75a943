"""Where a simulation's jobs come from."""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeAlias

import numpy.typing as npt

from . import _core
from ._arrays import row
from ._distribution import Sizes, native


@dataclass(frozen=True)
class Wire:
    """What the link carries beside a response's body, in bytes.

    ``body + per_packet * ceil(body / segment) + per_request``; the defaults are TCP over Ethernet
    with a connection a request. ``Wire(per_packet=0, per_request=0)`` counts bodies alone.
    """

    #: Bytes of body in a full packet.
    segment: int = 1448
    #: Bytes beside each packet.
    per_packet: int = 66
    #: Bytes beside each request.
    per_request: int = 480

    @property
    def _native(self) -> tuple[int, int, int]:
        return (
            count("segment", self.segment),
            count("per_packet", self.per_packet),
            count("per_request", self.per_request),
        )


class _Native:
    """A source that is checked, and made, as soon as it is said."""

    _native: _core.Source

    def _set(self, made: _core.Source) -> None:
        object.__setattr__(self, "_native", made)


@dataclass(frozen=True)
class Jobs(_Native):
    """Jobs of your own.

    Args:
        arrival: when each job arrives, in seconds, sorted, from 0 to 1e7 (kept to the nanosecond).
        size: the size of each in bytes on the link, above 0; fractions count. At ``rate=8e9`` a
            byte takes a nanosecond, at ``rate=8e6`` a microsecond.
    """

    arrival: npt.ArrayLike = field(repr=False)
    size: npt.ArrayLike = field(repr=False)

    def __post_init__(self) -> None:
        self._set(_core.Source.jobs(row("arrival", self.arrival), row("size", self.size)))


@dataclass(frozen=True)
class Trace(_Native):
    """The requests of a file: a log in Common or Combined Log Format, JSON of Shortline, Caddy or
    nginx, CSV ``seconds,path,bytes``, or World Cup 98 records; plain, gzip or zstd.

    Memory is for the jobs in the system, however long the file is. Lines that cannot be read or
    ask for no whole file are counted in a :class:`LeftOutWarning`.

    Args:
        path: the file.
        wire: what the link carries beside bodies.
        spread_seed: spread the requests of a second at random with this seed where a file has
            whole seconds. ``None`` spreads them evenly.
    """

    path: str | PathLike[str]
    wire: Wire = Wire()
    spread_seed: int | None = None

    def __post_init__(self) -> None:
        path = readable(self.path)
        self._set(_core.Source.trace(path, self.spread_seed, self.wire._native))


@dataclass(frozen=True)
class Workload(_Native):
    """Requests made up for a site, at a load over time.

    Args:
        name: ``w1`` to ``w10`` (Schroeder and Harchol-Balter 2006, Table I), ``1.4`` (a constant
            load) or ``25s@0.2,25s@1.2``, on a site like the World Cup's or another, as in
            ``nasa:w1``. Sites: world-cup, nasa, surge-001, surge-003, surge-004.
        seconds: how long it lasts, from 1 to 86400.
        wire: what the link carries beside bodies.
    """

    name: str
    seconds: int = 100
    wire: Wire = Wire()

    def __post_init__(self) -> None:
        seconds = count("seconds", self.seconds)
        self._set(_core.Source.requests(self.name, seconds, self.wire._native))


@dataclass(frozen=True)
class Steady(_Native):
    """Random jobs at a steady load: M/G/1 unless ``arrivals_c2`` is another.

    Args:
        sizes: their distribution, in bytes on the link.
        load: above 0 and below 1; 1 is all that the servers can do.
        jobs: how many are counted in each replication, after a warm-up of a tenth.
        arrivals_c2: the squared coefficient of variation of the times between arrivals: 1 is
            Poisson, 0 constant, above 1 hyperexponential.
        preload: jobs there at the start.
    """

    sizes: Sizes
    load: float
    jobs: int = 500_000
    arrivals_c2: float = 1.0
    preload: int = 0

    def __post_init__(self) -> None:
        jobs, preload = count("jobs", self.jobs), count("preload", self.preload)
        sizes = native(self.sizes)
        self._set(_core.Source.steady(sizes, self.load, jobs, self.arrivals_c2, preload))


@dataclass(frozen=True)
class Alternating(_Native):
    """Random jobs at a load that alternates, the low one first.

    Args:
        sizes: their distribution, in bytes on the link.
        schedule: seconds of low and of high load, then the two loads, such as
            ``(25, 25, 0.2, 1.2)``; or a name, ``w1`` to ``w10``.
        seconds: how long it lasts, from 1 to 86400.
        arrivals_c2: as in :class:`Steady`.
        preload: jobs there at the start.
    """

    sizes: Sizes
    schedule: str | tuple[float, float, float, float]
    seconds: int = 100
    arrivals_c2: float = 1.0
    preload: int = 0

    def __post_init__(self) -> None:
        seconds, preload = count("seconds", self.seconds), count("preload", self.preload)
        self._set(
            _core.Source.alternating(
                native(self.sizes), phases(self.schedule), seconds, self.arrivals_c2, preload
            )
        )


#: Anything that ``simulate`` takes jobs from.
Source: TypeAlias = Jobs | Trace | Workload | Steady | Alternating


def phases(
    schedule: str | tuple[float, float, float, float],
) -> str | tuple[float, float, float, float]:
    """A schedule by its name, or its four numbers."""
    if isinstance(schedule, str):
        return schedule
    try:
        low_s, high_s, low, high = (float(number) for number in schedule)
    except (TypeError, ValueError):
        raise ValueError(
            f"schedule {schedule!r}: want seconds of low and of high load and the two loads, such "
            'as (25, 25, 0.2, 1.2), or a name, "w1" to "w10"'
        ) from None
    return (low_s, high_s, low, high)


def count(name: str, value: Any) -> int:
    """A whole number that is not negative; NumPy's integers and 1e6 will do."""
    try:
        whole = operator.index(value)
    except TypeError:
        if not (isinstance(value, float) and value.is_integer()):
            raise TypeError(f"{name} {value!r}: want a whole number") from None
        whole = int(value)
    if not 0 <= whole < 2**64:
        raise ValueError(f"{name} {whole}: want at least 0")
    return whole


def readable(path: str | PathLike[str]) -> str:
    """The path of a file that exists; else Python's own error, such as FileNotFoundError."""
    name = os.fspath(path)
    os.stat(name)
    return name
