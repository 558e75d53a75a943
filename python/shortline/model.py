"""Closed forms of one M/G/1 queue, vectorised over loads and sizes.

Jobs arrive as a Poisson process at a server of speed 1: sizes are times of service, and times are
in the unit of the sizes. With ``exp:1`` that is the mean service time, as in the tables of
``shortline model``.

Policies: ``srpt``, ``psjf``, ``sjf``, ``las``, ``fair`` (or ``ps``), ``fifo`` (or ``fcfs``). The
formulas are Pollaczek-Khinchin's (fifo), Kleinrock's (fair), Phipps's (sjf), Schrage and Miller's
(srpt) and Schrage's (las); a mesh four times as coarse changes no mean by more than 1e-7.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import Floats, floats, of_buffer, table
from ._distribution import Sizes, native
from ._results import Table
from ._sources import phases

__all__ = [
    "Analysis",
    "Tail",
    "alternating",
    "slowdown",
    "slowdown_mean",
    "sojourn",
    "sojourn_mean",
    "solve",
    "tail",
]


@dataclass(frozen=True)
class Analysis:
    """The means under one policy.

    *Sojourn* is the time in the system T, *slowdown* T over the size S; T(x) is that of a job of
    size x.
    """

    policy: str
    #: E[T].
    sojourn_mean: float
    #: E[T/S]; infinite if jobs next to no size wait.
    slowdown_mean: float
    #: The largest E[T(x)]/x of any size x, and that size: infinite if ever larger jobs approach
    #: it, 0 if ever smaller ones do.
    slowdown_max: float
    slowdown_max_size: float
    #: E[T(x)]/x of the largest size, or its limit.
    slowdown_largest: float
    #: Single sizes up to the largest. Fields: ``share_above`` (of the jobs), ``load_above``,
    #: ``size``, ``sojourn``, ``slowdown``.
    points: Table = field(repr=False)
    #: 200 buckets of half a percent of the jobs by size, with the fields of
    #: :attr:`shortline.PolicyResult.by_percentile` that a formula has: ``from``, ``to``,
    #: ``sojourn_mean``, ``slowdown_mean``.
    by_percentile: Table = field(repr=False)


@dataclass(frozen=True)
class Tail:
    """P(T > t) is about ``C * exp(-decay_rate * t)``; no policy has a larger rate."""

    decay_rate: float
    #: C under fifo, and under boost: the least of all policies.
    fifo: float
    boost: float


def solve(policy: str, sizes: Sizes, load: float) -> Analysis:
    """All that the form of a policy says of the queue at one load, above 0 and below 1."""
    return _analysis(_solve(policy, sizes, np.array([load], dtype=np.float64))[0])


def sojourn_mean(policy: str, sizes: Sizes, load: npt.ArrayLike) -> Floats:
    """E[T] at each load, in the shape of ``load``."""
    return _means("sojourn_mean", policy, sizes, load)


def slowdown_mean(policy: str, sizes: Sizes, load: npt.ArrayLike) -> Floats:
    """E[T/S] at each load, in the shape of ``load``."""
    return _means("slowdown_mean", policy, sizes, load)


def sojourn(policy: str, sizes: Sizes, load: float, size: npt.ArrayLike) -> Floats:
    """E[T(x)] of a job of each size x, in the shape of ``size``; sizes are above 0."""
    wanted = floats("size", size)
    found = _core.sojourns(policy, native(sizes), load, wanted.ravel())
    return of_buffer(found).reshape(wanted.shape)


def slowdown(policy: str, sizes: Sizes, load: float, size: npt.ArrayLike) -> Floats:
    """E[T(x)]/x of a job of each size x, in the shape of ``size``."""
    return sojourn(policy, sizes, load, size) / floats("size", size)


def alternating(
    policy: str,
    sizes: Sizes,
    schedule: str | tuple[float, float, float, float],
    rate: float | str,
) -> Analysis:
    """The approximate means of a load that alternates, one of which may be above 1.

    Args:
        policy: ``srpt`` or ``fair``.
        sizes: in bytes on the link.
        schedule: seconds of low and of high load, then the two loads, or ``w1`` to ``w10``.
        rate: of the link, in bits per second or as text such as ``"10mbit"``.

    Returns:
        The means over the arrivals of a period; times are seconds, sizes bytes, and slowdown is
        the time in the system over the time on the idle link.
    """
    return _analysis(_core.alternating(policy, native(sizes), phases(schedule), rate))


def tail(sizes: Sizes, load: float) -> Tail:
    """How the share of jobs that take longer than a time falls, for light-tailed sizes."""
    return Tail(**_core.tail(native(sizes), load))


def _solve(policy: str, sizes: Sizes, loads: Floats) -> list[dict[str, Any]]:
    return _core.solve(policy, native(sizes), loads)


def _means(name: str, policy: str, sizes: Sizes, load: npt.ArrayLike) -> Floats:
    loads = floats("load", load)
    found = _solve(policy, sizes, loads.ravel())
    return np.array([one[name] for one in found], dtype=np.float64).reshape(loads.shape)


def _analysis(found: dict[str, Any]) -> Analysis:
    points = table(found.pop("points"), ("share_above", "load_above", "size", "sojourn", "slowdown"))
    buckets = found.pop("buckets")
    borders = np.arange(len(buckets) + 1) * 100.0 / len(buckets)
    by_percentile = table(
        [
            (low, high, bucket["sojourn"], bucket["slowdown"])
            for low, high, bucket in zip(borders, borders[1:], buckets)
        ],
        ("from", "to", "sojourn_mean", "slowdown_mean"),
    )
    return Analysis(**found, points=points, by_percentile=by_percentile)
