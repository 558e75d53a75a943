"""What a simulation found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import of_buffer, table

if TYPE_CHECKING:
    import pandas as pd

#: A structured array.
Table: TypeAlias = npt.NDArray[np.void]

_GROUP = (
    "from",
    "to",
    "jobs",
    "size_mean",
    "sojourn_mean",
    "slowdown_mean",
    "slowdown_max",
    "stretch_mean",
)

#: A job's fields; ``replication`` counts from 0.
_JOB = np.dtype(
    [
        ("arrival", np.float64),
        ("size", np.float64),
        ("alone", np.float64),
        ("start", np.float64),
        ("end", np.float64),
        ("sojourn", np.float64),
        ("slowdown", np.float64),
        ("failed", np.bool_),
        ("replication", np.int32),
    ]
)


class DoubtWarning(UserWarning):
    """A run is too short for its means and intervals to be trusted."""


class LeftOutWarning(UserWarning):
    """A trace has lines that are not requests for a whole file, or cannot be read."""


@dataclass(frozen=True)
class Stretch:
    """Starvation stretch: a job's time in the system over that under processor sharing with the
    same arrivals. A job above 1 starves."""

    mean: float
    max: float
    #: The share of jobs above 1.
    share_above_one: float
    #: That of the largest job, and how large that is, in bytes.
    largest_job: float
    largest_bytes: float


@dataclass(frozen=True)
class Recovery:
    """What is left after overloads."""

    #: How many overloads ended.
    overloads: int
    #: How many were followed by another, or by the end, before the system had recovered.
    not_recovered: int
    #: Jobs in the system when an overload ended, on average.
    jobs_at_end_mean: float
    #: The number of jobs at which a system counts as recovered.
    jobs_recovered: int
    #: Seconds that it took; ``None`` if it never happened.
    seconds_mean: float | None
    seconds_max: float | None


@dataclass(frozen=True)
class PolicyResult:
    """One policy's results. Times are seconds, sizes bytes on the link.

    *Sojourn* is the time in the system, *slowdown* that over the time the job would take alone,
    *C²* the squared coefficient of variation. Half widths are half a confidence interval, ``None``
    for too few jobs.
    """

    policy: str
    #: Jobs counted, in all replications, after the warm-up.
    requests: int
    #: Jobs that their users gave up; they count with the time until then.
    failed: int
    #: Attempts given up.
    aborts: int
    sojourn_mean: float
    sojourn_mean_half_width: float | None
    sojourn_p50: float
    sojourn_p90: float
    sojourn_p99: float
    sojourn_p999: float
    sojourn_max: float
    sojourn_variance: float
    sojourn_c2: float
    #: Mean sojourn of the largest 1 % of the jobs.
    largest_percent_sojourn_mean: float
    slowdown_mean: float
    slowdown_mean_half_width: float | None
    slowdown_p50: float
    slowdown_p99: float
    slowdown_max: float
    slowdown_variance: float
    slowdown_c2: float
    #: Jobs in the system on average over time.
    number_mean: float
    #: The correlation of neighbouring batches, where the intervals' batches depend on each other.
    batches_resemblance: float | None
    #: ``None`` with ``stretch=False``.
    stretch: Stretch | None
    #: ``None`` without overloads.
    recovery: Recovery | None
    #: Fields ``requests`` and ``sojourn_mean`` for each group of ``users``.
    by_users: Table = field(repr=False)
    #: Bins of ratio 1.2 in bytes, up to the largest job. Fields: ``from``, ``to``, ``jobs``,
    #: ``size_mean``, ``sojourn_mean``, ``slowdown_mean``, ``slowdown_max``, ``stretch_mean``.
    by_size: Table = field(repr=False)
    #: 200 buckets of half a percent of the jobs by size; ``from`` and ``to`` are percents.
    by_percentile: Table = field(repr=False)
    #: By nines of size: ``from`` 2 ``to`` 3 are the jobs from the 99th percentile to the 99.9th.
    by_nines: Table = field(repr=False)
    #: Jobs in the system over time: fields ``time`` and ``number``.
    number_over_time: Table = field(repr=False)
    #: Mean sojourn of the jobs that arrived around a time: fields ``time`` and ``sojourn_mean``.
    sojourn_over_time: Table = field(repr=False)
    #: The share of jobs with a longer sojourn: fields ``sojourn`` and ``share``.
    sojourn_complementary: Table = field(repr=False)
    _jobs: Table | None = field(repr=False)

    @property
    def jobs(self) -> Table:
        """Each job that was counted, by replication and arrival: a structured array.

        Fields: ``arrival``, ``start`` and ``end`` in seconds, ``size`` in bytes, ``alone`` (how
        long it would have taken alone), ``sojourn``, ``slowdown``, ``failed`` (its user gave up),
        ``replication``. ``start`` is when it was first served, in its user's last attempt; NaN if
        it never was. Where all jobs share, as under ``fair``, they are served from the first.
        """
        if self._jobs is None:
            raise ValueError("jobs: were not kept; want simulate(..., keep_jobs=True)")
        return self._jobs

    def frame(self) -> pd.DataFrame:
        """The jobs as a pandas DataFrame."""
        return _pandas().DataFrame(self.jobs)

    @classmethod
    def _of(cls, found: dict[str, Any], jobs: Table | None) -> PolicyResult:
        known = {item.name for item in fields(cls)}
        values = {name: value for name, value in found.items() if name in known}
        if (stretch := found["stretch"]) is not None:
            values["stretch"] = Stretch(**stretch)
        if (recovery := found["recovery"]) is not None:
            values["recovery"] = Recovery(**recovery)
        for name in ("by_size", "by_percentile", "by_nines"):
            values[name] = table(found[name], _GROUP)
        values["by_users"] = table(found["by_users"], ("requests", "sojourn_mean"))
        values["number_over_time"] = table(found["number_over_time"], ("time", "number"))
        values["sojourn_over_time"] = table(found["sojourn_over_time"], ("time", "sojourn_mean"))
        values["sojourn_complementary"] = table(
            found["sojourn_complementary"], ("sojourn", "share")
        )
        return cls(**values, _jobs=jobs)

    _SCALARS = (
        "requests",
        "failed",
        "sojourn_mean",
        "sojourn_mean_half_width",
        "sojourn_p50",
        "sojourn_p90",
        "sojourn_p99",
        "sojourn_p999",
        "sojourn_max",
        "sojourn_c2",
        "largest_percent_sojourn_mean",
        "slowdown_mean",
        "slowdown_mean_half_width",
        "slowdown_p50",
        "slowdown_p99",
        "slowdown_max",
        "number_mean",
    )


class Results(Mapping[str, PolicyResult]):
    """The results by policy: ``runs["srpt"].slowdown_mean``. Other names of a policy will do."""

    def __init__(
        self,
        by_policy: dict[str, PolicyResult],
        warnings: tuple[str, ...],
        left_out: tuple[str, ...],
    ) -> None:
        self._by_policy = by_policy
        #: Why intervals should not be trusted.
        self.warnings = warnings
        #: What a trace left out.
        self.left_out = left_out

    def __getitem__(self, policy: str) -> PolicyResult:
        try:
            return self._by_policy[_core.policy_name(policy)]
        except (KeyError, ValueError):
            known = ", ".join(self._by_policy)
            raise KeyError(f"policy {policy!r}: was not simulated; have {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_policy)

    def __len__(self) -> int:
        return len(self._by_policy)

    def __repr__(self) -> str:
        means = (f"{name}: {found.sojourn_mean:.6g} s" for name, found in self.items())
        return f"<Results {', '.join(means)}>"

    def frame(self) -> pd.DataFrame:
        """The scalars of all policies as a pandas DataFrame, a row a policy."""
        rows = [
            {name: getattr(found, name) for name in PolicyResult._SCALARS}
            for found in self.values()
        ]
        return _pandas().DataFrame(rows, index=_pandas().Index(self, name="policy"))


def jobs_of(columns: dict[str, Any], policy: int) -> Table:
    """The structured array of one policy's jobs."""
    sojourn = of_buffer(columns["sojourn"][policy])
    start = of_buffer(columns["start"][policy])
    jobs = np.empty(len(sojourn), dtype=_JOB)
    for name in ("arrival", "size", "alone", "replication"):
        jobs[name] = of_buffer(columns[name])
    jobs["start"] = start
    jobs["failed"] = sojourn < 0
    jobs["sojourn"] = np.abs(sojourn)
    jobs["end"] = jobs["arrival"] + jobs["sojourn"]
    jobs["slowdown"] = jobs["sojourn"] / jobs["alone"]
    return jobs


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("frame: needs pandas; pip install pandas") from None
    return pandas
