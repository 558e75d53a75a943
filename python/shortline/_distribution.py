"""Distributions of job sizes."""

from __future__ import annotations

import warnings
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

import numpy.typing as npt

from . import _core
from ._arrays import Floats, floats, of_buffer, row

if TYPE_CHECKING:
    from ._sources import Wire


class Distribution:
    """A distribution of sizes above 0, in any unit.

    Made from the text that ``shortline sim --dist`` takes, or by one of the class methods::

        Distribution("bp:332,1e10,1.1")
        Distribution.bounded_pareto(332, 1e10, 1.1)

    Texts: ``exp:MEAN``, ``bp:LOW,HIGH,ALPHA`` (Bounded Pareto; HIGH may be ``inf``), ``det:SIZE``,
    ``weibull:SHAPE,MEAN``, ``uniform:LOW,HIGH``, ``lognormal-pareto:MU,SIGMA,CUT,HIGH,ALPHA``,
    ``surge-001``, ``world-cup``. Where a function wants a distribution, the text will do.
    """

    __slots__ = ("_native",)
    _native: _core.Distribution

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f'distribution {text!r}: want text such as "exp:1"')
        self._native = _core.Distribution(text)

    @classmethod
    def _of(cls, native: _core.Distribution) -> Distribution:
        made = cls.__new__(cls)
        made._native = native
        return made

    @classmethod
    def exponential(cls, mean: float) -> Distribution:
        """Exponential sizes."""
        return cls._of(_core.Distribution.exponential(mean))

    @classmethod
    def bounded_pareto(cls, low: float, high: float, alpha: float) -> Distribution:
        """Bounded Pareto sizes from ``low`` to ``high``, which may be infinite."""
        return cls._of(_core.Distribution.bounded_pareto(low, high, alpha))

    @classmethod
    def deterministic(cls, size: float) -> Distribution:
        """One size for all jobs."""
        return cls._of(_core.Distribution.deterministic(size))

    @classmethod
    def weibull(cls, shape: float, mean: float) -> Distribution:
        """Weibull sizes; heavier than exponential below shape 1."""
        return cls._of(_core.Distribution.weibull(shape, mean))

    @classmethod
    def uniform(cls, low: float, high: float) -> Distribution:
        """Uniform sizes from ``low``, which may be 0, to ``high``."""
        return cls._of(_core.Distribution.uniform(low, high))

    @classmethod
    def lognormal_pareto(
        cls, mu: float, sigma: float, cut: float, high: float, alpha: float
    ) -> Distribution:
        """A log-normal body (``mu`` and ``sigma`` of the logarithm) below ``cut``, and a Bounded
        Pareto tail from there to ``high``."""
        return cls._of(_core.Distribution.lognormal_pareto(mu, sigma, cut, high, alpha))

    @classmethod
    def empirical(cls, sizes: npt.ArrayLike) -> Distribution:
        """The sizes of a list, each as likely as it is frequent."""
        return cls._of(_core.Distribution.empirical(row("sizes", sizes)))

    @classmethod
    def of_trace(cls, path: str | PathLike[str], wire: Wire | None = None) -> Distribution:
        """The sizes of a trace's responses, in bytes on the link (see :class:`Trace`)."""
        from ._results import LeftOutWarning
        from ._sources import Wire, readable

        native, left_out = _core.Distribution.of_trace(readable(path), (wire or Wire())._native)
        for line in left_out:
            warnings.warn(line, LeftOutWarning, stacklevel=2)
        return cls._of(native)

    @property
    def mean(self) -> float:
        """E[S]; infinite where it does not exist."""
        return self._native.moment(1)

    @property
    def c2(self) -> float:
        """The squared coefficient of variation, variance over squared mean."""
        return self._native.moment(2) / self.mean**2 - 1.0

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest size; 0 and infinite if sizes come arbitrarily close."""
        return self._native.range()

    def moment(self, power: int) -> float:
        """E[S^power]; infinite where it does not exist."""
        return self._native.moment(power)

    def share_above(self, size: npt.ArrayLike) -> Floats:
        """P(S > size), elementwise, without loss of digits far out in the tail."""
        sizes = floats("size", size)
        return of_buffer(self._native.share_above(sizes.ravel())).reshape(sizes.shape)

    def cdf(self, size: npt.ArrayLike) -> Floats:
        """P(S <= size), elementwise."""
        return 1.0 - self.share_above(size)

    def quantile(self, share: npt.ArrayLike) -> Floats:
        """The smallest size with P(S <= size) >= share, elementwise; shares are from 0 to 1."""
        shares = floats("share", share)
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError("share: want numbers from 0 to 1")
        above = 1.0 - shares
        return of_buffer(self._native.size_exceeded_by(above.ravel())).reshape(shares.shape)

    def sample(self, count: int, seed: int = 1) -> Floats:
        """So many sizes drawn at random; a seed gives the same ones on every machine."""
        if count < 0:
            raise ValueError(f"count {count}: want at least 0")
        return of_buffer(self._native.sample(count, seed))

    def __str__(self) -> str:
        return str(self._native)

    def __repr__(self) -> str:
        return f"<Distribution {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribution) and self._native == other._native

    def __hash__(self) -> int:
        return hash(str(self))


#: A distribution, or its text.
Sizes: TypeAlias = Distribution | str


def native(sizes: Sizes) -> _core.Distribution:
    """The native half of a distribution or of its text."""
    made = sizes if isinstance(sizes, Distribution) else Distribution(sizes)
    return made._native
