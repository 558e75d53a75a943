//! Tracks the answers that a client is still owed: which of its messages the backend has not
//! answered, and whether a transaction is open.
//!
//! One ReadyForQuery answers each Query, FunctionCall and Sync (PostgreSQL's documentation, 55.2).
//! There is one exception, which pipelining clients meet. While the backend waits for the data of a
//! COPY FROM STDIN, it ignores Sync. So the messages sent are kept in order until their effect is
//! known.

use std::collections::VecDeque;

/// The transaction status in a ReadyForQuery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// No transaction: `I`.
    #[default]
    Idle,
    /// A transaction is open: `T`.
    Open,
    /// A transaction has failed and waits for its rollback: `E`.
    Failed,
}

impl Status {
    /// Reads the status byte of a ReadyForQuery. An unknown byte counts as an open transaction, which
    /// ends no unit.
    pub fn parse(byte: u8) -> Self {
        match byte {
            b'I' => Self::Idle,
            b'E' => Self::Failed,
            _ => Self::Open,
        }
    }

    /// The status byte of a ReadyForQuery.
    pub fn byte(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::Open => b'T',
            Self::Failed => b'E',
        }
    }
}

/// Too many messages inside a COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {0} Sync and CopyDone messages inside one COPY")]
pub struct CopyError(usize);

/// An idle session keeps room for this many marks of four bytes.
const KEPT_MARKS: usize = 8;

/// A message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Query or FunctionCall, behind this many messages of the extended protocol without a Sync. A ReadyForQuery
    /// answers it, unless one of these fails.
    Query(u16),
    /// Sync. A ReadyForQuery answers it, unless a COPY ignores it.
    Sync,
    /// CopyData. Consecutive ones share a mark.
    CopyData,
    /// CopyDone or CopyFail.
    CopyEnd,
}

impl Mark {
    /// Whether a ReadyForQuery answers it.
    fn is_answered(&self) -> bool {
        matches!(self, Self::Query(_) | Self::Sync)
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct Conversation {
    status: Status,
    marks: VecDeque<Mark>,
    marks_max: usize,
    /// Messages of the extended protocol were sent, and no Sync after them.
    is_unsynced: bool,
    /// The number of these messages since the last Query or Sync.
    unsynced: u16,
    /// The answers to such messages since the last ReadyForQuery. Those to Queries may be among them.
    answered: u16,
    /// A message of the extended protocol has failed. The backend ignores everything up to the next Sync.
    is_skipping: bool,
    /// The backend has asked for the data of a COPY, which has neither completed nor failed.
    is_copying: bool,
}

impl Conversation {
    /// Starts at the first ReadyForQuery. At most `pipelined_max` answers may be owed.
    pub fn new(pipelined_max: usize) -> Self {
        Self {
            status: Status::Idle,
            marks: VecDeque::new(),
            marks_max: pipelined_max,
            is_unsynced: false,
            unsynced: 0,
            answered: 0,
            is_skipping: false,
            is_copying: false,
        }
    }

    /// The status of the last ReadyForQuery.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Whether the backend waits for the client's data.
    pub fn is_copying(&self) -> bool {
        self.is_copying
    }

    /// Whether the client is owed nothing.
    pub fn is_quiet(&self) -> bool {
        self.marks.is_empty() && !self.is_unsynced && !self.is_copying
    }

    /// Whether all requests are answered, apart from those without a Sync.
    pub fn is_answered(&self) -> bool {
        self.marks.is_empty() && !self.is_copying
    }

    /// Whether the client is owed nothing and no transaction is open.
    pub fn is_over(&self) -> bool {
        self.is_quiet() && self.status == Status::Idle
    }

    /// Whether nothing more may be sent until everything is answered. False inside a COPY and before a
    /// Sync, because there only the client's next messages can bring the answers.
    pub fn is_full(&self) -> bool {
        self.marks.len() >= self.marks_max && !self.is_copying && !self.is_unsynced
    }

    /// Notes a message of this type that goes to the backend.
    ///
    /// # Errors
    /// [`CopyError`]
    pub fn sent(&mut self, tag: u8) -> Result<(), CopyError> {
        if self.is_skipping && tag != b'S' {
            return Ok(());
        }
        let mark = match tag {
            b'P' | b'B' | b'E' | b'D' | b'C' => {
                self.is_unsynced = true;
                self.unsynced = self.unsynced.saturating_add(1);
                return Ok(());
            }
            b'Q' | b'F' => Mark::Query(self.unsynced),
            b'S' => Mark::Sync,
            // The backend drops these if nothing is under way.
            b'd' | b'c' | b'f' if self.is_quiet() => return Ok(()),
            b'd' if self.marks.back() == Some(&Mark::CopyData) => return Ok(()),
            b'd' => Mark::CopyData,
            b'c' | b'f' => Mark::CopyEnd,
            _ => return Ok(()),
        };
        if mark.is_answered() {
            (self.is_unsynced, self.unsynced, self.is_skipping) = (false, 0, false);
        }
        self.marks.push_back(mark);
        if self.marks.len() > 4 * self.marks_max {
            return Err(CopyError(4 * self.marks_max));
        }
        Ok(())
    }

    /// Notes a message of this type from the backend, other than ReadyForQuery.
    pub fn received(&mut self, tag: u8) {
        match tag {
            b'G' => self.is_copying = true,
            b'C' if self.is_copying => self.end_copy(true),
            b'E' => {
                let next = self.marks.iter().find(|mark| mark.is_answered());
                let is_of_extended = match next {
                    Some(Mark::Query(behind)) => self.answered < *behind,
                    _ => true,
                };
                self.failed(is_of_extended);
            }
            _ => {}
        }
        if matches!(tag, b'1' | b'2' | b'3' | b'C' | b's' | b'I' | b'n' | b'T') {
            self.answered = self.answered.saturating_add(1);
        }
    }

    /// Notes an error from the backend, to a message of the extended protocol or to a Query.
    pub fn failed(&mut self, is_of_extended: bool) {
        if self.is_copying {
            let is_simple = matches!(self.marks.front(), Some(Mark::Query(_)));
            self.end_copy(false);
            self.is_skipping = !is_simple && !self.marks.contains(&Mark::Sync);
            return;
        }
        if !is_of_extended || self.is_quiet() {
            return;
        }
        // The backend ignores the Queries before the Sync, too.
        match self.marks.iter().position(|mark| *mark == Mark::Sync) {
            Some(at) => drop(self.marks.drain(..at)),
            None => {
                self.marks.clear();
                (self.is_unsynced, self.is_skipping) = (true, true);
            }
        }
    }

    /// Notes a ReadyForQuery from the backend.
    pub fn received_ready(&mut self, status: Status) {
        self.status = status;
        self.is_copying = false;
        self.answered = 0;
        while let Some(mark) = self.marks.pop_front() {
            if mark.is_answered() {
                break;
            }
        }
        // The backend drops the rest of a failed COPY's data.
        if !self.is_unsynced && !self.marks.iter().any(Mark::is_answered) {
            self.marks.clear();
            // An idle session keeps little memory. A busy one does not have to allocate again.
            self.marks.shrink_to(KEPT_MARKS);
        }
    }

    /// Drops the Syncs that the backend ignored while it read a COPY's data. If the COPY has completed,
    /// these are all up to the CopyDone. If it has failed, they are those before the data, because any
    /// part of the data may have failed.
    fn end_copy(&mut self, is_complete: bool) {
        self.is_copying = false;
        let is_simple = matches!(self.marks.front(), Some(Mark::Query(_)));
        self.drop_ignored(usize::from(is_simple), is_complete);
        // In the extended protocol, only a Sync after the data ends it.
        self.is_unsynced |= !is_simple && !self.marks.contains(&Mark::Sync);
    }

    fn drop_ignored(&mut self, first: usize, is_complete: bool) {
        while let Some(mark) = self.marks.get(first).copied() {
            match mark {
                Mark::Query(_) => return,
                Mark::CopyData | Mark::CopyEnd if !is_complete => return,
                Mark::Sync | Mark::CopyData => {}
                Mark::CopyEnd => {
                    self.marks.remove(first);
                    return;
                }
            }
            self.marks.remove(first);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Plays a conversation: `>` precedes the client's messages, `<` the backend's. A `Z` is followed
    /// by its status: `I`, `T` or `E`.
    fn play(script: &str) -> Conversation {
        let mut conversation = Conversation::new(100);
        for part in script.split_whitespace() {
            let (side, tags) = part.split_at(1);
            let mut tags = tags.bytes();
            while let Some(tag) = tags.next() {
                match (side, tag) {
                    (">", tag) => conversation.sent(tag).unwrap(),
                    (_, b'Z') => conversation.received_ready(Status::parse(tags.next().unwrap())),
                    (_, tag) => conversation.received(tag),
                }
            }
        }
        conversation
    }

    #[test]
    fn it_is_over_when_all_is_answered_and_no_transaction_is_open() {
        for (script, is_quiet, is_over) in [
            ("", true, true),
            (">Q", false, false),
            (">Q <TDCZI", true, true),
            (">Q <CZT", true, false),
            (">Q <EZE", true, false),
            // A pipeline of three; the second fails.
            (">PBESPBESPBES <12CZI12EZI", false, false),
            (">PBESPBESPBES <12CZI12EZI12CZI", true, true),
            // Flush requests the answers, but does not end the transaction.
            (">PBEH <12C", false, false),
            (">PBEHS <12CZI", true, true),
            // The first is answered while the second has not been synced.
            (">PBESPBE <12CZI", false, false),
        ] {
            let conversation = play(script);
            assert_eq!(conversation.is_quiet(), is_quiet, "{script}");
            assert_eq!(conversation.is_over(), is_over, "{script}");
        }
    }

    #[test]
    fn a_copy_swallows_the_syncs_that_the_backend_ignores() {
        for script in [
            // libpq: Sync with the COPY, and again after its data.
            ">PBES <12G >ddcS <CZI",
            // The client did not wait for the backend to ask.
            ">PBESddcS <12GCZI",
            ">PBEddcS <12GCZI",
            // Simple protocol, one and two COPYs in a string.
            ">Q <G >ddc <CZI",
            ">Q <G >ddc <CG >dc <CZI",
            // The client gives up.
            ">Q <G >df <EZI",
            ">PBES <12G >fS <EZI",
            // Bad data: the backend stops reading, and the client continues for a while.
            ">Q <G >dd <E >dc <ZI",
            ">Q <G >dd <EZI >dc",
            ">PBES <12G >dd <E >dcS <ZI",
            ">PBES <12G >ddcS <EZI",
            // One before it in the pipeline, and one after.
            ">PBESPBES <12CZI12G >dcSPBES <CZI12CZI",
            // To the client: nothing of this.
            ">Q <HddcCZI",
        ] {
            let conversation = play(script);
            assert!(conversation.is_over(), "{script}: {conversation:?}");
        }
        assert!(!play(">PBES <12G >dc <C").is_over());
        assert!(!play(">Q <G").is_quiet());
        assert!(play(">Q <G").is_copying());
    }

    #[test]
    fn a_query_between_an_error_and_the_sync_is_not_answered() {
        for script in [
            // The error has come before the Query.
            ">PH <E >QS <ZI",
            ">PBEH <12E >QQFPBES <ZI",
            // It comes later.
            ">PQS <EZI",
            ">PBEQS <12EZI",
            ">PBEQPQ <E >S <ZI",
            // The Query itself fails, and is answered.
            ">PBEQS <12CEZIZI",
            ">PBEQPBEQS <12CTCZI12CEZIZI",
            // A segment before it, and one after.
            ">PBESPQSPBES <12CZIEZI12CZI",
            ">QPQS <TCZIEZI",
            // A COPY fails.
            ">PBE <12G >dH <E >QS <ZI",
        ] {
            let conversation = play(script);
            assert!(conversation.is_over(), "{script}: {conversation:?}");
        }
        for script in [">PH <E >Q", ">PH <E >QS", ">PQS <E", ">PBEQS <12CEZI"] {
            assert!(!play(script).is_quiet(), "{script}");
        }
    }

    #[test]
    fn a_pipeline_has_an_end_and_so_has_a_copy() {
        let mut conversation = play("");
        for _ in 0..100 {
            assert!(!conversation.is_full());
            conversation.sent(b'S').unwrap();
        }
        assert!(conversation.is_full());
        let mut conversation = play(">Q <G");
        let refused = (0..1000).find_map(|_| conversation.sent(b'c').err());
        assert_eq!(refused, Some(CopyError(400)));
    }

    proptest! {
        #[test]
        fn nothing_that_is_sent_or_comes_makes_it_fall(
            messages in prop::collection::vec((any::<bool>(), prop::sample::select(b"QPBEDCSHFdcfXpGTCEHAZ".to_vec())), 0..300),
        ) {
            let mut conversation = Conversation::new(50);
            for (is_clients, tag) in messages {
                match (is_clients, tag) {
                    (true, tag) => if conversation.sent(tag).is_err() { return Ok(()) },
                    (false, b'Z') => conversation.received_ready(Status::Idle),
                    (false, tag) => conversation.received(tag),
                }
            }
            // In any state, a Sync that is answered ends the conversation if no other is before it.
            while !conversation.is_quiet() {
                conversation.sent(b'S').ok();
                conversation.received_ready(Status::Idle);
                conversation.received_ready(Status::Idle);
            }
        }
    }
}
