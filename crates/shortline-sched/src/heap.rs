//! A 4-ary min-heap that keeps the position of each of its items.
//!
//! Jobs leave a queue in the middle as often as at the front: a client disconnects, or a
//! connection stops taking bytes. With the positions, the heap removes any item in
//! O(log n).
//!
//! Why four children: the tree is half as deep as a binary one, and the four keys that are compared
//! at a level lie side by side in two cache lines. Keys are stored in the heap, because looking
//! each one up in the jobs would be a cache miss.
//!
//! Items are small integers below the caller's number of slots. Keys of different items must
//! differ, so that the order does not depend on the heap's history. Several [`Heap`]s with
//! different items can share one table of [`Positions`]; a heap alone then costs no more than its
//! entries.

/// The position of an item that is in no heap.
const ABSENT: u32 = u32::MAX;
const CHILDREN: usize = 4;

/// Where each item stands in its heap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions(Vec<u32>);

impl Positions {
    /// Whether an item is in a heap.
    pub(crate) fn contains(&self, item: u32) -> bool {
        self.get(item).is_some()
    }

    fn get(&self, item: u32) -> Option<usize> {
        match self.0.get(item as usize) {
            None | Some(&ABSENT) => None,
            Some(&position) => Some(position as usize),
        }
    }

    fn make_room(&mut self, item: u32) {
        let slots = item as usize + 1;
        if self.0.len() < slots {
            self.0.resize(slots, ABSENT);
        }
    }
}

/// Items by ascending key, with removal from anywhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexedHeap<K> {
    heap: Heap<K>,
    positions: Positions,
}

impl<K: Copy + Ord> IndexedHeap<K> {
    pub(crate) fn new() -> Self {
        Self {
            heap: Heap::new(),
            positions: Positions::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn contains(&self, item: u32) -> bool {
        self.positions.contains(item)
    }

    /// The smallest key and its item.
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.heap.first()
    }

    /// Some of the items with small keys: those of the first levels, the smallest first and the
    /// others in no order.
    pub(crate) fn some_of_the_first(&self) -> impl Iterator<Item = &K> {
        const LEVELS: usize = 1 + CHILDREN + CHILDREN * CHILDREN;
        self.heap.0.iter().take(LEVELS).map(|entry| &entry.key)
    }

    /// The items by ascending key, at most `most` of them. Each costs comparisons with up to three
    /// times as many items as came before it.
    pub(crate) fn ascending(&self, most: usize) -> impl Iterator<Item = (K, u32)> {
        let entries = &self.heap.0;
        // Items whose parents have been yielded and that have not been yielded themselves.
        let mut next: Vec<usize> = Vec::with_capacity(CHILDREN * most);
        next.extend((!entries.is_empty()).then_some(0));
        let smallest = move || {
            let by_key = |&(_, &position): &(usize, &usize)| entries[position].key;
            let (place, _) = next.iter().enumerate().min_by_key(by_key)?;
            let position = next.swap_remove(place);
            let first_child = position * CHILDREN + 1;
            next.extend(first_child..(first_child + CHILDREN).min(entries.len()));
            Some((entries[position].key, entries[position].item))
        };
        std::iter::from_fn(smallest).take(most)
    }

    /// Adds an item, or moves it to where its new key belongs.
    pub(crate) fn insert(&mut self, item: u32, key: K) {
        self.heap.insert(&mut self.positions, item, key);
    }

    /// Removes an item. Returns false if it was not in.
    pub(crate) fn remove(&mut self, item: u32) -> bool {
        self.heap.remove(&mut self.positions, item)
    }
}

/// The entries of a heap whose positions are kept elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Heap<K>(Vec<Entry<K>>);

#[derive(Clone, Copy, Debug)]
struct Entry<K> {
    key: K,
    item: u32,
}

impl<K> Default for Heap<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Ord> Heap<K> {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The smallest key and its item.
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.0.first().map(|entry| (entry.key, entry.item))
    }

    /// Adds an item, or moves it to where its new key belongs. It must not be in another heap of
    /// these positions.
    pub(crate) fn insert(&mut self, positions: &mut Positions, item: u32, key: K) {
        let entry = Entry { key, item };
        match positions.get(item) {
            Some(position) => self.settle(positions, position, entry),
            None => {
                let position = self.0.len();
                self.0.push(entry);
                positions.make_room(item);
                self.rise(positions, position, entry);
            }
        }
    }

    /// Removes an item. Returns false if it was not in. It must not be in another heap of these
    /// positions.
    pub(crate) fn remove(&mut self, positions: &mut Positions, item: u32) -> bool {
        let Some(position) = positions.get(item) else {
            return false;
        };
        positions.0[item as usize] = ABSENT;
        if let Some(last) = self.0.pop()
            && position < self.0.len()
        {
            self.settle(positions, position, last);
        }
        true
    }

    /// Moves all items of `other` into this heap.
    pub(crate) fn append(&mut self, positions: &mut Positions, other: &mut Self) {
        if self.0.len() < other.0.len() {
            std::mem::swap(self, other);
        }
        for entry in other.0.drain(..) {
            positions.0[entry.item as usize] = ABSENT;
            self.insert(positions, entry.item, entry.key);
        }
    }

    /// Puts an entry in the place of whatever is at `position`, then restores the order.
    ///
    /// The hole goes to the bottom first and the entry rises from there: an entry that
    /// fills a hole mostly comes from the bottom, so this saves its comparison at every
    /// level (Wegener's bottom-up heapsort).
    fn settle(&mut self, positions: &mut Positions, position: usize, entry: Entry<K>) {
        let bottom = self.sink_hole(positions, position);
        self.rise(positions, bottom, entry);
    }

    /// Moves the smallest child up at each level; returns where the hole ends.
    fn sink_hole(&mut self, positions: &mut Positions, mut hole: usize) -> usize {
        let len = self.0.len();
        loop {
            let first_child = hole * CHILDREN + 1;
            if first_child >= len {
                return hole;
            }
            let end = (first_child + CHILDREN).min(len);
            let mut smallest = first_child;
            for child in first_child + 1..end {
                if self.0[child].key < self.0[smallest].key {
                    smallest = child;
                }
            }
            self.place(positions, hole, self.0[smallest]);
            hole = smallest;
        }
    }

    /// Moves an entry up from the hole until its parent's key is not larger.
    fn rise(&mut self, positions: &mut Positions, mut hole: usize, entry: Entry<K>) {
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if self.0[parent].key <= entry.key {
                break;
            }
            self.place(positions, hole, self.0[parent]);
            hole = parent;
        }
        self.place(positions, hole, entry);
    }

    fn place(&mut self, positions: &mut Positions, position: usize, entry: Entry<K>) {
        self.0[position] = entry;
        positions.0[entry.item as usize] = position as u32;
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
        for (position, entry) in heap.heap.0.iter().enumerate() {
            assert_eq!(heap.positions.get(entry.item), Some(position));
            if position > 0 {
                assert!(heap.heap.0[(position - 1) / CHILDREN].key <= entry.key);
            }
        }
    }

    proptest! {
        /// The heap behaves like a map that is searched from end to end.
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
                let mut sorted: Vec<_> = model.iter().map(|(&item, &key)| (key, item)).collect();
                sorted.sort_unstable();
                sorted.truncate(20);
                prop_assert_eq!(heap.ascending(20).collect::<Vec<_>>(), sorted);
            }
            for item in 0..200 {
                prop_assert_eq!(heap.contains(item), model.contains_key(&item));
            }
        }
    }

    #[test]
    fn heaps_of_one_table_are_joined() {
        let mut positions = Positions::default();
        let (mut few, mut many) = (Heap::new(), Heap::new());
        for (heap, items) in [(&mut few, 0..3), (&mut many, 3..9)] {
            for item in items {
                heap.insert(&mut positions, item, 10 - item);
            }
        }
        few.append(&mut positions, &mut many);
        assert_eq!((few.len(), many.len()), (9, 0));
        for item in (0..9).rev() {
            assert_eq!(few.first(), Some((10 - item, item)));
            assert!(few.remove(&mut positions, item));
            assert!(!positions.contains(item));
        }
    }

    #[test]
    fn an_unknown_item_is_not_in() {
        let mut heap: IndexedHeap<u64> = IndexedHeap::new();
        assert!(!heap.contains(7));
        assert!(!heap.remove(7));
    }
}
