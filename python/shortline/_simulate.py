"""The simulator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from . import _core
from ._results import DoubtWarning, LeftOutWarning, PolicyResult, Results, jobs_of
from ._sources import Alternating, Jobs, Source, Steady, Trace, Workload, count


def simulate(
    source: Source,
    *,
    rate: float | str,
    policies: str | Sequence[str] = ("srpt", "fair"),
    seed: int = 1,
    keep_jobs: bool = True,
    servers: int = 1,
    dispatch: str | None = None,
    guardrails: float | None = None,
    aging: float | None = None,
    growing: float | None = None,
    estimate_sigma: float = 0.0,
    clients: str | Sequence[str] = (),
    users: str | Sequence[str] = (),
    greedy: str | None = None,
    burst: int = 128 * 1024,
    quantum: int = 4344,
    backend_capacity: float | str | None = None,
    backend_thrash: str | None = None,
    start_delay: float = 0.0,
    setup: float = 0.0,
    abort_after: float | None = None,
    retries: int = 0,
    warmup: int | None = None,
    replications: int | None = None,
    confidence: float = 0.99,
    stretch: bool = True,
    jobs_in_system_max: int = 100_000_000,
) -> Results:
    """Puts a source's jobs through a queue, under each policy the very same jobs.

    What ``shortline sim`` does, with its numbers to the last digit. Other threads run meanwhile, all
    cores compute, and Ctrl-C ends it.

    Args:
        source: where jobs come from: :class:`Jobs`, :class:`Trace`, :class:`Workload`,
            :class:`Steady` or :class:`Alternating`.
        rate: of each server, in bits per second, or text such as ``"10mbit"``.
        policies: names, as a list or separated by commas; see :func:`policies`.
        seed: of all random numbers.
        keep_jobs: whether :attr:`PolicyResult.jobs` is wanted: some 80 bytes a job and policy, for
            20 million jobs at most.
        servers: how many there are of that rate; a job is on one of them at most.
        dispatch: each server has a queue of its own, to which a job goes at its arrival by
            ``"round-robin"``, ``"fewest-jobs"`` or ``"least-work"``.
        guardrails: with ``dispatch`` and :class:`Steady`: keep the servers' work of each size
            within this factor, 1 or more.
        aging: overdue jobs go first: overdue is this many times its service time after arrival.
        growing: priority grows with age; it is highest after this many times the service time.
        estimate_sigma: policies see ``size * exp(sigma * Z)`` with Z standard normal.
        clients: classes of clients that take their rate at most, ``"1mbit/100ms*0.3"`` each.
        users: who asks: ``"20"`` are 20 users, ``"100/1"`` 100 behind one address (policy
            ``shares``). By default each request is a client of its own.
        greedy: a client that always waits for so many responses, such as ``"64*1KB"``.
        burst: bytes that a client may get in a row under ``shares``; 0 for no standing back.
        quantum: the length of a turn where jobs take turns, in bytes.
        backend_capacity: puts a gate before servers that share: so many seconds of estimated
            service are admitted at once, or ``"auto"``, or ``"off"``. Policies fifo, sjf and fair.
        backend_thrash: with it: ``"20:0.02"`` loses 2 % of the throughput for each job beyond 20.
        start_delay: seconds from an arrival until its service can begin.
        setup: seconds of work of each job beside its bytes.
        abort_after: seconds after which a user gives up and asks again, ``retries`` times.
        retries: how often a user asks again.
        warmup: jobs at the start that are not counted; by default a tenth of ``jobs`` and all of
            ``preload`` for :class:`Steady`, none for others but ``preload``.
        replications: runs with other random numbers; by default 4 for :class:`Steady` and
            :class:`Alternating`, else 1.
        confidence: of the intervals.
        stretch: whether starvation stretch is wanted, for which processor sharing runs beside.
        jobs_in_system_max: a limit of memory.

    Returns:
        The results by policy.

    Raises:
        ValueError: something cannot be simulated; the message says what would be right.

    Warns:
        DoubtWarning: the run is too short for its intervals to be trusted.
        LeftOutWarning: lines of a trace are no requests.
    """
    if not isinstance(source, Jobs | Trace | Workload | Steady | Alternating):
        raise TypeError(
            f"source {source!r}: want Jobs, Trace, Workload, Steady or Alternating, such as "
            'Steady("exp:1250", load=0.8)'
        )
    if isinstance(backend_capacity, int | float):
        backend_capacity = f"{round(backend_capacity * 1e9)}ns"
    options = {
        "policies": policies if isinstance(policies, str) else ",".join(policies),
        "rate": rate,
        "seed": count("seed", seed),
        "servers": count("servers", servers),
        "dispatch": dispatch,
        "guardrails": guardrails,
        "aging": aging,
        "growing": growing,
        "estimate_sigma": estimate_sigma,
        "clients": _list(clients),
        "users": _list(users),
        "greedy": greedy,
        "burst": count("burst", burst),
        "quantum": count("quantum", quantum),
        "backend_capacity": backend_capacity,
        "backend_thrash": backend_thrash,
        "start_delay": start_delay,
        "setup": setup,
        "abort_after": abort_after,
        "retries": count("retries", retries),
        "warmup": None if warmup is None else count("warmup", warmup),
        "replications": None if replications is None else count("replications", replications),
        "confidence": confidence,
        "stretch": stretch,
        "jobs_in_system_max": count("jobs_in_system_max", jobs_in_system_max),
    }
    found, columns, doubts, left_out = _core.simulate(source._native, options, keep_jobs)
    by_policy = {
        result["policy"]: PolicyResult._of(
            result, None if columns is None else jobs_of(columns, place)
        )
        for place, result in enumerate(found)
    }
    for line in doubts:
        warnings.warn(line, DoubtWarning, stacklevel=2)
    for line in left_out:
        warnings.warn(line, LeftOutWarning, stacklevel=2)
    return Results(by_policy, tuple(doubts), tuple(left_out))


def _list(given: str | Sequence[str]) -> list[str]:
    parts = given.split(",") if isinstance(given, str) else list(given)
    for part in parts:
        if not isinstance(part, str):
            raise TypeError(f"{part!r}: want text")
    return [part.strip() for part in parts]
