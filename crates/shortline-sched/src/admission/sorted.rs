//! A sorted list of few entries that change often: the tenants that wait by their tags, the types that wait by their
//! first requests.
//!
//! A list and not a tree: mostly one waits or a few do, an entry changes with each admission, and a tree of one entry frees
//! and allocates a node each time. Of the thousand that can be in a table all may wait. Then a change moves 32 KiB at most,
//! about a microsecond.

/// See the module's text.
#[derive(Debug)]
pub(super) struct Sorted<T>(Vec<T>);

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy + Ord> Sorted<T> {
    /// All of them, the least first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// The least.
    pub fn first(&self) -> Option<T> {
        self.0.first().copied()
    }

    /// The one after `entry`, which need not be there.
    pub fn after(&self, entry: T) -> Option<T> {
        let place = self.0.partition_point(|other| *other <= entry);
        self.0.get(place).copied()
    }

    /// Adds an entry. Does nothing if it is there.
    pub fn insert(&mut self, entry: T) {
        if let Err(place) = self.0.binary_search(&entry) {
            self.0.insert(place, entry);
        }
    }

    /// Removes an entry, if it is there.
    pub fn remove(&mut self, entry: T) {
        if let Ok(place) = self.0.binary_search(&entry) {
            self.0.remove(place);
        }
    }

    /// Puts `new` into the list in the place of `old`, if that is there.
    pub fn replace(&mut self, old: T, new: T) {
        let Ok(from) = self.0.binary_search(&old) else {
            return;
        };
        let to = self.0.partition_point(|other| *other < new);
        // What lies between the two places moves by one.
        if to > from + 1 {
            self.0[from..to].rotate_left(1);
            self.0[to - 1] = new;
        } else if to < from {
            self.0[to..=from].rotate_right(1);
            self.0[to] = new;
        } else {
            self.0[from] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    type Entry = (u128, usize);

    fn entry() -> impl Strategy<Value = Entry> {
        (0..8u128, 0..4usize)
    }

    proptest! {
        /// As a set of the standard library has them.
        #[test]
        fn it_is_a_sorted_set(steps in prop::collection::vec((0..3u8, entry(), entry()), 0..60)) {
            let (mut waiting, mut set) = (Sorted::default(), BTreeSet::new());
            for (step, one, other) in steps {
                match step {
                    0 => {
                        waiting.insert(one);
                        set.insert(one);
                    }
                    1 => {
                        waiting.remove(one);
                        set.remove(&one);
                    }
                    _ if !set.contains(&other) && set.remove(&one) => {
                        waiting.replace(one, other);
                        set.insert(other);
                    }
                    _ => {}
                }
                prop_assert!(waiting.iter().eq(set.iter()));
                prop_assert_eq!(waiting.first(), set.first().copied());
                let after = set.iter().find(|entry| **entry > one).copied();
                prop_assert_eq!(waiting.after(one), after);
            }
        }
    }
}
