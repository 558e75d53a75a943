//! A 4-ary min-heap that knows where each of its items is.
//!
//! Jobs leave a queue in the middle as often as at the front: a client goes away, a
//! connection stops taking bytes. So the heap keeps the position of every item and
//! removes any of them in O(log n).
//!
//! Why four children: the tree is half as deep as a binary one, and the four keys that
//! are compared at a level lie side by side in two cache lines. Keys are stored in the
//! heap, not looked up in the jobs, because a lookup would be a cache miss each.
//!
//! Items are small integers below the caller's number of slots. Keys of different items
//! must differ, so that the order does not depend on the heap's history.

/// The position of an item that is not in the heap.
const ABSENT: u32 = u32::MAX;
const CHILDREN: usize = 4;

/// Items by ascending key, with removal from anywhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexedHeap<K> {
    entries: Vec<Entry<K>>,
    /// The position in `entries` of each item, or [`ABSENT`].
    positions: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry<K> {
    key: K,
    item: u32,
}

impl<K: Copy + Ord> IndexedHeap<K> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            positions: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn contains(&self, item: u32) -> bool {
        self.position(item).is_some()
    }

    /// The smallest key and its item.
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.entries.first().map(|entry| (entry.key, entry.item))
    }

    /// Adds an item, or moves it to where its new key belongs.
    pub(crate) fn insert(&mut self, item: u32, key: K) {
        let entry = Entry { key, item };
        match self.position(item) {
            Some(position) => self.settle(position, entry),
            None => {
                let position = self.entries.len();
                self.entries.push(entry);
                self.make_room(item);
                self.rise(position, entry);
            }
        }
    }

    /// Takes an item out; false if it was not in.
    pub(crate) fn remove(&mut self, item: u32) -> bool {
        let Some(position) = self.position(item) else {
            return false;
        };
        self.positions[item as usize] = ABSENT;
        if let Some(last) = self.entries.pop()
            && position < self.entries.len()
        {
            self.settle(position, last);
        }
        true
    }

    fn position(&self, item: u32) -> Option<usize> {
        match self.positions.get(item as usize) {
            None | Some(&ABSENT) => None,
            Some(&position) => Some(position as usize),
        }
    }

    fn make_room(&mut self, item: u32) {
        let slots = item as usize + 1;
        if self.positions.len() < slots {
            self.positions.resize(slots, ABSENT);
        }
    }

    /// Puts an entry in the place of whatever is at `position`, then restores the order.
    ///
    /// The hole goes to the bottom first and the entry rises from there: an entry that
    /// fills a hole mostly comes from the bottom, so this saves its comparison at every
    /// level (Wegener's bottom-up heapsort).
    fn settle(&mut self, position: usize, entry: Entry<K>) {
        let bottom = self.sink_hole(position);
        self.rise(bottom, entry);
    }

    /// Moves the smallest child up at each level; returns where the hole ends.
    fn sink_hole(&mut self, mut hole: usize) -> usize {
        let len = self.entries.len();
        loop {
            let first_child = hole * CHILDREN + 1;
            if first_child >= len {
                return hole;
            }
            let end = (first_child + CHILDREN).min(len);
            let mut smallest = first_child;
            for child in first_child + 1..end {
                if self.entries[child].key < self.entries[smallest].key {
                    smallest = child;
                }
            }
            self.place(hole, self.entries[smallest]);
            hole = smallest;
        }
    }

    /// Moves an entry up from the hole until its parent's key is not larger.
    fn rise(&mut self, mut hole: usize, entry: Entry<K>) {
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if self.entries[parent].key <= entry.key {
                break;
            }
            self.place(hole, self.entries[parent]);
            hole = parent;
        }
        self.place(hole, entry);
    }

    fn place(&mut self, position: usize, entry: Entry<K>) {
        self.entries[position] = entry;
        self.positions[entry.item as usize] = position as u32;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u32, u64),
        Remove(u32),
        TakeFirst,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..200u32, 0..50u64).prop_map(|(item, rank)| Step::Insert(item, rank)),
            2 => (0..200u32).prop_map(Step::Remove),
            2 => Just(Step::TakeFirst),
        ]
    }

    fn check_order<K: Copy + Ord>(heap: &IndexedHeap<K>) {
        for (position, entry) in heap.entries.iter().enumerate() {
            assert_eq!(heap.position(entry.item), Some(position));
            if position > 0 {
                assert!(heap.entries[(position - 1) / CHILDREN].key <= entry.key);
            }
        }
    }

    proptest! {
        /// The heap against a map that is searched from end to end.
        #[test]
        fn behaves_as_a_searched_map(steps in prop::collection::vec(step(), 0..400)) {
            let mut heap = IndexedHeap::new();
            let mut model = BTreeMap::new();
            for (count, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(item, rank) => {
                        heap.insert(item, (rank, count));
                        model.insert(item, (rank, count));
                    }
                    Step::Remove(item) => {
                        prop_assert_eq!(heap.remove(item), model.remove(&item).is_some());
                    }
                    Step::TakeFirst => {
                        if let Some((_, item)) = heap.first() {
                            heap.remove(item);
                            model.remove(&item);
                        }
                    }
                }
                let smallest = model.iter().map(|(&item, &key)| (key, item)).min();
                prop_assert_eq!(heap.first(), smallest);
                prop_assert_eq!(heap.len(), model.len());
                check_order(&heap);
            }
            for item in 0..200 {
                prop_assert_eq!(heap.contains(item), model.contains_key(&item));
            }
        }
    }

    #[test]
    fn an_unknown_item_is_not_in() {
        let mut heap: IndexedHeap<u64> = IndexedHeap::new();
        assert!(!heap.contains(7));
        assert!(!heap.remove(7));
    }
}
