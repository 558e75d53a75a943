//! Columns of numbers on their way to and from NumPy: buffers of 64-bit numbers in the machine's
//! byte order, which NumPy takes over without a copy.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// The numbers of a buffer, such as an array of `float64`.
pub fn numbers(py: Python<'_>, buffer: &PyBuffer<f64>) -> PyResult<Vec<f64>> {
    buffer.to_vec(py)
}

/// A buffer of these numbers.
pub fn column<'py>(
    py: Python<'py>,
    numbers: impl ExactSizeIterator<Item = f64>,
) -> PyResult<Bound<'py, PyByteArray>> {
    const WIDTH: usize = size_of::<f64>();
    PyByteArray::new_with(py, numbers.len() * WIDTH, |bytes| {
        for (place, number) in bytes.chunks_exact_mut(WIDTH).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(())
    })
}
