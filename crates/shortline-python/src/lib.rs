//! `shortline._core`: what the Python package asks the simulator and the formulas.
//!
//! The package (`python/shortline`) is what people use. It has the types, the docstrings and the
//! NumPy arrays. This module takes and gives plain values: text, numbers, dicts, and columns of
//! numbers as buffers in the machine's byte order. Settings are read as `shortline sim` reads its
//! flags, by the same parsers, and a refusal is a `ValueError` with the parser's line.
//!
//! Nothing here holds the interpreter while it computes. A simulation asks for signals on the way,
//! so that Ctrl-C ends it.

mod columns;
mod distribution;
mod interrupt;
mod kept;
mod model;
mod options;
mod simulate;
mod source;

use std::fmt::Display;

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

/// The native half of `shortline`.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use super::distribution::Distribution;
    #[pymodule_export]
    use super::model::{alternating, policies, policy_name, sojourns, solve, tail};
    #[pymodule_export]
    use super::simulate::simulate;
    #[pymodule_export]
    use super::source::Source;
}

/// What was asked for cannot be done, and why in one line.
fn refused(why: impl Display) -> PyErr {
    PyValueError::new_err(why.to_string())
}
