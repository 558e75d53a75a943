//! Cells by the logarithm of a positive number, 128 to a factor of 2: a table of bounded size
//! for numbers of any magnitude.
//!
//! The first bits of a float, exponent and 7 bits of fraction, name its cell, so finding it takes
//! no logarithm. A cell is at most 0.8 % wide.

const FRACTION_BITS: u32 = 7;
const DROPPED_BITS: u32 = 52 - FRACTION_BITS;

/// Cells from the one of the smallest number seen to that of the largest.
#[derive(Clone, Debug)]
pub(crate) struct LogCells<T> {
    first: usize,
    cells: Vec<T>,
}

impl<T: Clone + Default> LogCells<T> {
    pub(crate) fn new() -> Self {
        Self {
            first: 0,
            cells: Vec::new(),
        }
    }

    /// The cell of a number that is finite and not below 0.
    pub(crate) fn at(&mut self, value: f64) -> &mut T {
        let name = (value.to_bits() >> DROPPED_BITS) as usize;
        self.make_room(name);
        &mut self.cells[name - self.first]
    }

    /// All cells in ascending order, with the numbers at their ends.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (f64, f64, &T)> {
        let border = |name: usize| f64::from_bits((name as u64) << DROPPED_BITS);
        self.cells.iter().enumerate().map(move |(index, cell)| {
            let name = self.first + index;
            (border(name), border(name + 1), cell)
        })
    }

    /// Adds each cell of another table with `add`.
    pub(crate) fn merge(&mut self, other: &Self, add: impl Fn(&mut T, &T)) {
        if other.cells.is_empty() {
            return;
        }
        self.make_room(other.first);
        self.make_room(other.first + other.cells.len() - 1);
        let shift = other.first - self.first;
        for (mine, theirs) in self.cells[shift..].iter_mut().zip(&other.cells) {
            add(mine, theirs);
        }
    }

    fn make_room(&mut self, name: usize) {
        if self.cells.is_empty() {
            self.first = name;
        }
        if name < self.first {
            let missing = self.first - name;
            self.cells
                .splice(0..0, std::iter::repeat_n(T::default(), missing));
            self.first = name;
        }
        let needed = name - self.first + 1;
        if needed > self.cells.len() {
            self.cells.resize(needed, T::default());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cell_holds_its_number_and_is_narrow(values in prop::collection::vec(1e-9..1e18f64, 1..20)) {
            let mut cells = LogCells::<Vec<f64>>::new();
            for &value in &values {
                cells.at(value).push(value);
            }
            let mut merged = LogCells::<Vec<f64>>::new();
            merged.at(1.0).push(1.0);
            merged.merge(&cells, |mine, theirs| mine.extend(theirs));
            let mut seen = 0;
            for (low, high, cell) in merged.iter() {
                prop_assert!(high / low < 1.0079);
                prop_assert!(cell.iter().all(|value| (low..high).contains(value)));
                seen += cell.len();
            }
            prop_assert_eq!(seen, values.len() + 1);
        }
    }
}
