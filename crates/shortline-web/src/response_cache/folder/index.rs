//! What is in the folder, in memory: which file answers which request, and which was used longest ago.
//!
//! Three limits hold together: the bytes on the disk, what is being written among them; the responses; and the bytes of their names here.
//! What was used longest ago goes first.
//!
//! A response that is given up is gone from here at once. Its files are removed by the writer's thread later ([`Index::take_unwanted`]).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use http::header::HeaderName;
use parking_lot::Mutex;

use super::FolderOptions;
use super::entry::Head;

/// Bytes of a name here for each response that is allowed. Names are longer only where clients want them so.
const NAME_BYTES: u64 = 512;
/// What an entry takes here besides its name.
const ENTRY_BYTES: u64 = 192;
/// Files take whole blocks.
const BLOCK_BYTES: u64 = 4096;
/// Within this time another use is not noted: a response that is asked for all the time costs nothing.
const USE_MS: u64 = 1000;

/// The number of a response, which its files are named by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u64);

/// See the module's text.
pub struct Index {
    state: Mutex<State>,
    bytes_max: u64,
    responses_max: usize,
    names_bytes_max: u64,
}

#[derive(Default)]
struct State {
    entries: HashMap<Arc<str>, Entry>,
    names: HashMap<Box<str>, Name>,
    /// By when they were used: milliseconds, and a number that no other has.
    by_use: BTreeMap<(u64, u64), Arc<str>>,
    uses: u64,
    bytes: u64,
    names_bytes: u64,
    writing_bytes: u64,
    /// Responses that are whole but not in the folder yet.
    pending: HashMap<Arc<str>, Id>,
    unwanted: Vec<Id>,
    evicted_total: u64,
}

struct Entry {
    id: Id,
    bytes: u64,
    name_length: usize,
    received_ms: u64,
    used: (u64, u64),
}

/// A name of requests.
struct Name {
    varies: Arc<[HeaderName]>,
    /// How many responses have it.
    responses: usize,
}

/// What a response is known by.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its name with the values that it varies by.
    pub variant: Arc<str>,
    /// The name's length in it.
    pub name_length: usize,
    /// The fields that it varies by.
    pub varies: Arc<[HeaderName]>,
    /// Its number.
    pub id: Id,
    /// Bytes of its files.
    pub bytes: u64,
    /// When it came, in milliseconds.
    pub received_ms: u64,
}

/// The bytes on the disk of a response with a head and a body of these lengths.
pub fn bytes_on_disk(head: u64, body: u64) -> u64 {
    let blocks = |bytes: u64| bytes.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES);
    blocks(head).saturating_add(blocks(body))
}

impl Found {
    /// What the response with this head is known by.
    pub fn of(head: &Head, id: Id, head_bytes: u64) -> Self {
        let since = head
            .received
            .duration_since(std::time::SystemTime::UNIX_EPOCH);
        Self {
            variant: head.variant.as_str().into(),
            name_length: head.name.len(),
            varies: Arc::clone(&head.varies),
            id,
            bytes: bytes_on_disk(head_bytes, head.body.bytes),
            received_ms: since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0)),
        }
    }
}

impl Index {
    /// An empty one.
    pub fn new(options: &FolderOptions) -> Self {
        Self {
            state: Mutex::default(),
            bytes_max: options.bytes_max,
            responses_max: options.responses_max,
            names_bytes_max: NAME_BYTES.saturating_mul(options.responses_max as u64),
        }
    }

    /// The fields that the responses with this name vary by, if there are some.
    pub fn varies(&self, name: &str) -> Option<Arc<[HeaderName]>> {
        let state = self.state.lock();
        state.names.get(name).map(|name| Arc::clone(&name.varies))
    }

    /// The response of a variant, which is used now.
    pub fn used(&self, variant: &str, now_ms: u64) -> Option<Id> {
        self.state.lock().used(variant, now_ms)
    }

    /// The response of a variant.
    pub fn get(&self, variant: &str) -> Option<Id> {
        self.state.lock().entries.get(variant).map(|entry| entry.id)
    }

    /// Does something unless the response of the variant is another by now. No other can come meanwhile.
    pub fn if_still(&self, variant: &str, id: Id, then: impl FnOnce()) -> bool {
        let state = self.state.lock();
        let is_still = state
            .entries
            .get(variant)
            .is_some_and(|entry| entry.id == id);
        if is_still {
            then();
        }
        is_still
    }

    /// A response will come for this variant, in place of what there is, unless it is forgotten before.
    pub fn expect(&self, variant: &str, id: Id) {
        let mut state = self.state.lock();
        state.forget(variant);
        state.pending.insert(variant.into(), id);
    }

    /// A response that was expected is in the folder. `false`: it is not wanted any more.
    pub fn commit(&self, found: Found, now_ms: u64) -> bool {
        let mut state = self.state.lock();
        let (variant, id) = (Arc::clone(&found.variant), found.id);
        if state.pending.get(&variant) != Some(&id) {
            state.unwanted.push(id);
            return false;
        }
        state.pending.remove(&variant);
        state.insert(found, now_ms);
        state.evict(self);
        state.entries.contains_key(&variant)
    }

    /// A response that was expected will not come.
    pub fn fail(&self, variant: &str, id: Id) {
        let mut state = self.state.lock();
        if state.pending.get(variant) == Some(&id) {
            state.pending.remove(variant);
        }
    }

    /// A response that was found in the folder, used at that time. The newer of two of a variant stays.
    pub fn add(&self, found: Found, used_ms: u64) {
        let mut state = self.state.lock();
        let id = found.id;
        let known = state.entries.get(&found.variant);
        if known.is_some_and(|known| known.id == id) {
            return;
        }
        let is_older = known.is_some_and(|known| known.received_ms >= found.received_ms);
        if is_older || state.pending.contains_key(&found.variant) {
            state.unwanted.push(id);
            return;
        }
        state.forget(&found.variant);
        state.insert(found, used_ms);
        state.evict(self);
    }

    /// The head of a response has another length now, and was received later.
    pub fn renew(&self, found: &Found) -> bool {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(&found.variant) else {
            return false;
        };
        if entry.id != found.id {
            return false;
        }
        let before = std::mem::replace(&mut entry.bytes, found.bytes);
        entry.received_ms = found.received_ms;
        state.bytes = state.bytes - before + found.bytes;
        state.evict(self);
        true
    }

    /// Gives a variant's response up, and one that is expected.
    pub fn forget(&self, variant: &str) {
        self.state.lock().forget(variant);
    }

    /// Gives a response up if it is still the variant's.
    pub fn drop_if(&self, variant: &str, id: Id) {
        let mut state = self.state.lock();
        if state
            .entries
            .get(variant)
            .is_some_and(|entry| entry.id == id)
        {
            state.forget(variant);
        }
    }

    /// Gives up all that are meant. Returns their variants.
    pub fn purge(&self, is_meant: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
        let mut state = self.state.lock();
        let all = state.entries.keys().chain(state.pending.keys());
        let mut meant: Vec<Arc<str>> = all.filter(|variant| is_meant(variant)).cloned().collect();
        meant.sort_unstable();
        meant.dedup();
        meant.iter().for_each(|variant| state.forget(variant));
        meant
    }

    /// So many bytes more are being written, or fewer. `false`: there is no room for them, whatever is given up.
    pub fn grow(&self, bytes: u64) -> bool {
        let mut state = self.state.lock();
        state.writing_bytes += bytes;
        state.evict(self);
        state.bytes + state.writing_bytes <= self.bytes_max
    }

    /// So many bytes are not being written any more.
    pub fn shrink(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.writing_bytes = state.writing_bytes.saturating_sub(bytes);
    }

    /// The files to be removed.
    pub fn take_unwanted(&self) -> Vec<Id> {
        std::mem::take(&mut self.state.lock().unwanted)
    }

    /// Files to be removed.
    pub fn add_unwanted(&self, id: Id) {
        self.state.lock().unwanted.push(id);
    }

    /// The responses that are here.
    pub fn ids(&self) -> HashSet<Id> {
        self.state
            .lock()
            .entries
            .values()
            .map(|entry| entry.id)
            .collect()
    }

    /// Responses, their bytes on the disk, and how many had to go for others.
    pub fn size(&self) -> (usize, u64, u64) {
        let state = self.state.lock();
        (state.entries.len(), state.bytes, state.evicted_total)
    }
}

impl State {
    fn next_use(&mut self, at_ms: u64) -> (u64, u64) {
        self.uses += 1;
        (at_ms, self.uses)
    }

    fn used(&mut self, variant: &str, now_ms: u64) -> Option<Id> {
        let known = self.entries.get(variant)?;
        if now_ms.saturating_sub(known.used.0) < USE_MS {
            return Some(known.id);
        }
        let used = self.next_use(now_ms);
        let entry = self.entries.get_mut(variant)?;
        let before = std::mem::replace(&mut entry.used, used);
        if let Some(variant) = self.by_use.remove(&before) {
            self.by_use.insert(used, variant);
        }
        Some(entry.id)
    }

    fn insert(&mut self, found: Found, used_ms: u64) {
        let used = self.next_use(used_ms);
        self.bytes += found.bytes;
        self.names_bytes += name_bytes(&found.variant, found.name_length);
        self.by_use.insert(used, Arc::clone(&found.variant));
        let name: Box<str> = found.variant[..found.name_length].into();
        let name = self.names.entry(name).or_insert_with(|| Name {
            varies: Arc::clone(&found.varies),
            responses: 0,
        });
        name.varies = found.varies;
        name.responses += 1;
        let entry = Entry {
            id: found.id,
            bytes: found.bytes,
            name_length: found.name_length,
            received_ms: found.received_ms,
            used,
        };
        self.entries.insert(found.variant, entry);
    }

    fn forget(&mut self, variant: &str) {
        self.pending.remove(variant);
        let Some(entry) = self.entries.remove(variant) else {
            return;
        };
        self.by_use.remove(&entry.used);
        self.bytes -= entry.bytes;
        self.names_bytes -= name_bytes(variant, entry.name_length);
        self.unwanted.push(entry.id);
        let name = &variant[..entry.name_length];
        if let Some(known) = self.names.get_mut(name) {
            known.responses -= 1;
            if known.responses == 0 {
                self.names.remove(name);
            }
        }
    }

    fn evict(&mut self, limits: &Index) {
        while self.bytes + self.writing_bytes > limits.bytes_max
            || self.entries.len() > limits.responses_max
            || self.names_bytes > limits.names_bytes_max
        {
            let Some((_, variant)) = self.by_use.pop_first() else {
                return;
            };
            self.forget(&variant);
            self.evicted_total += 1;
        }
    }
}

fn name_bytes(variant: &str, name_length: usize) -> u64 {
    (variant.len() + name_length) as u64 + ENTRY_BYTES
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn index(bytes_max: u64, responses_max: usize) -> Index {
        Index::new(&FolderOptions {
            bytes_max,
            responses_max,
            ..FolderOptions::at("/nowhere".into())
        })
    }

    fn found(variant: &str, id: u64, bytes: u64, received_ms: u64) -> Found {
        Found {
            name_length: variant.find('\n').unwrap_or(variant.len()),
            variant: variant.into(),
            varies: [].into(),
            id: Id(id),
            bytes,
            received_ms,
        }
    }

    fn keep(index: &Index, variant: &str, id: u64, bytes: u64, now_ms: u64) -> bool {
        index.expect(variant, Id(id));
        index.commit(found(variant, id, bytes, now_ms), now_ms)
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let index = index(1 << 20, 2);
        assert!(keep(&index, "a", 1, 10, 1000) && keep(&index, "b", 2, 10, 2000));
        assert_eq!(index.used("a", 3000), Some(Id(1)));
        assert!(keep(&index, "c", 3, 10, 4000));
        assert_eq!((index.get("a"), index.get("b")), (Some(Id(1)), None));
        assert_eq!(index.take_unwanted(), [Id(2)]);
    }

    #[test]
    fn what_is_being_written_counts() {
        let index = index(100, 10);
        assert!(keep(&index, "a", 1, 60, 1));
        assert!(index.grow(50));
        assert_eq!(index.get("a"), None);
        assert!(!index.grow(60));
        index.shrink(110);
        assert!(!keep(&index, "b", 2, 101, 2));
    }

    #[test]
    fn what_is_forgotten_before_it_is_there_does_not_come() {
        let index = index(100, 10);
        index.expect("a\nx", Id(1));
        assert_eq!(index.purge(|variant| variant.starts_with("a\n")).len(), 1);
        assert!(!index.commit(found("a\nx", 1, 10, 1), 1));
        index.expect("a", Id(2));
        index.expect("a", Id(3));
        assert!(!index.commit(found("a", 2, 10, 1), 1));
        assert!(index.commit(found("a", 3, 10, 1), 1));
        assert_eq!(index.take_unwanted(), [Id(1), Id(2)]);
    }

    #[test]
    fn the_newer_of_two_that_are_found_stays() {
        let index = index(100, 10);
        index.add(found("a", 1, 10, 5), 1);
        index.add(found("a", 2, 10, 4), 2);
        index.add(found("a", 3, 10, 6), 3);
        assert_eq!((index.get("a"), index.size().0), (Some(Id(3)), 1));
        assert_eq!(index.take_unwanted(), [Id(2), Id(1)]);
    }

    proptest! {
        #[test]
        fn limits_hold_and_sums_are_right(
            steps in prop::collection::vec((0u8..6, 0u8..8, 1u64..60, 0u64..50), 1..80),
        ) {
            let index = index(100, 4);
            for (id, (step, name, bytes, at)) in steps.into_iter().enumerate() {
                let (id, variant) = (id as u64, format!("{}\n{}", name / 2, name % 2));
                match step {
                    0 | 1 => drop(keep(&index, &variant, id, bytes, at)),
                    2 => index.add(found(&variant, id, bytes, at), at),
                    3 => drop(index.used(&variant, at)),
                    4 => index.forget(&variant),
                    _ => drop(index.purge(|known| known.starts_with(&format!("{}", name / 2)))),
                }
                let state = index.state.lock();
                prop_assert!(state.bytes <= 100 && state.entries.len() <= 4);
                prop_assert_eq!(state.bytes, state.entries.values().map(|entry| entry.bytes).sum::<u64>());
                prop_assert_eq!(state.by_use.len(), state.entries.len());
                prop_assert_eq!(state.names.values().map(|name| name.responses).sum::<usize>(), state.entries.len());
            }
        }
    }
}
