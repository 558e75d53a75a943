//! What a connection still owes its client: which of the client's messages the backend has not
//! answered, and whether a transaction is open.
//!
//! Every Query, FunctionCall and Sync is answered by one ReadyForQuery (PostgreSQL's documentation,
//! 55.2), with one exception that all pipelining clients meet: while it waits for the data of a
//! COPY FROM STDIN, the backend ignores Sync. So what was sent is kept in order until it is known
//! what the backend made of it.

use std::collections::VecDeque;

/// What ReadyForQuery says.
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
    /// Reads the byte of a ReadyForQuery. A byte nobody knows is taken for an open transaction, in
    /// which nothing is decided.
    pub fn parse(byte: u8) -> Self {
        match byte {
            b'I' => Self::Idle,
            b'E' => Self::Failed,
            _ => Self::Open,
        }
    }

    /// The byte of a ReadyForQuery.
    pub fn byte(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::Open => b'T',
            Self::Failed => b'E',
        }
    }
}

/// More messages inside a COPY than any client has a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {0} Sync and CopyDone messages inside one COPY")]
pub struct CopyError(usize);

/// Room for so many marks, of a byte each, is kept.
const KEPT_MARKS: usize = 8;

/// What was sent, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Query or FunctionCall: a ReadyForQuery for sure.
    Query,
    /// Sync: a ReadyForQuery, unless a COPY swallows it.
    Sync,
    /// CopyData, one mark for all in a row.
    CopyData,
    /// CopyDone or CopyFail.
    CopyEnd,
}

/// See the module's text.
#[derive(Debug)]
pub struct Conversation {
    status: Status,
    marks: VecDeque<Mark>,
    marks_max: usize,
    /// Messages of the extended protocol have gone without a Sync.
    is_unsynced: bool,
    /// The backend has asked for COPY's data and has neither completed it nor failed.
    is_copying: bool,
}

impl Conversation {
    /// At a first ReadyForQuery. Not more than `pipelined_max` answers can be owed.
    pub fn new(pipelined_max: usize) -> Self {
        Self {
            status: Status::Idle,
            marks: VecDeque::new(),
            marks_max: pipelined_max,
            is_unsynced: false,
            is_copying: false,
        }
    }

    /// What the last ReadyForQuery said.
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

    /// Whether everything that was asked has been answered, if not what is still without a Sync.
    pub fn is_answered(&self) -> bool {
        self.marks.is_empty() && !self.is_copying
    }

    /// Whether the client is owed nothing and no transaction is open.
    pub fn is_over(&self) -> bool {
        self.is_quiet() && self.status == Status::Idle
    }

    /// Whether no more may be sent before everything is answered. Never inside a COPY or before a
    /// Sync, since then the end comes by what the client sends.
    pub fn is_full(&self) -> bool {
        self.marks.len() >= self.marks_max && !self.is_copying && !self.is_unsynced
    }

    /// The backend was sent a message of this type.
    ///
    /// # Errors
    /// [`CopyError`]
    pub fn sent(&mut self, tag: u8) -> Result<(), CopyError> {
        let mark = match tag {
            b'P' | b'B' | b'E' | b'D' | b'C' => {
                self.is_unsynced = true;
                return Ok(());
            }
            b'Q' | b'F' => Mark::Query,
            b'S' => Mark::Sync,
            // The backend drops these where nothing is under way.
            b'd' | b'c' | b'f' if self.is_quiet() => return Ok(()),
            b'd' if self.marks.back() == Some(&Mark::CopyData) => return Ok(()),
            b'd' => Mark::CopyData,
            b'c' | b'f' => Mark::CopyEnd,
            _ => return Ok(()),
        };
        self.is_unsynced &= !matches!(mark, Mark::Query | Mark::Sync);
        self.marks.push_back(mark);
        if self.marks.len() > 4 * self.marks_max {
            return Err(CopyError(4 * self.marks_max));
        }
        Ok(())
    }

    /// The backend sent a message of this type that is no ReadyForQuery.
    pub fn received(&mut self, tag: u8) {
        match tag {
            b'G' => self.is_copying = true,
            b'C' if self.is_copying => self.end_copy(true),
            b'E' if self.is_copying => self.end_copy(false),
            _ => {}
        }
    }

    /// The backend is ready for the next query.
    pub fn received_ready(&mut self, status: Status) {
        self.status = status;
        self.is_copying = false;
        while let Some(mark) = self.marks.pop_front() {
            if matches!(mark, Mark::Query | Mark::Sync) {
                break;
            }
        }
        // What is left of a COPY's data that nobody wants, the backend drops.
        let is_answer = |mark: &Mark| matches!(mark, Mark::Query | Mark::Sync);
        if !self.is_unsynced && !self.marks.iter().any(is_answer) {
            self.marks.clear();
            // An idle session keeps next to no memory, and a busy one does not ask for it anew.
            self.marks.shrink_to(KEPT_MARKS);
        }
    }

    /// Drops the Syncs that the backend ignored while it took a COPY's data: completed, all up to
    /// the CopyDone; failed, those before the data, since it may have failed at any of the data.
    fn end_copy(&mut self, is_complete: bool) {
        self.is_copying = false;
        let is_simple = self.marks.front() == Some(&Mark::Query);
        self.drop_ignored(usize::from(is_simple), is_complete);
        // In the extended protocol it takes a Sync behind the data to end it.
        self.is_unsynced |= !is_simple && !self.marks.contains(&Mark::Sync);
    }

    fn drop_ignored(&mut self, first: usize, is_complete: bool) {
        while let Some(mark) = self.marks.get(first).copied() {
            match mark {
                Mark::Query => return,
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

    /// Plays a conversation: `>` the client's messages, `<` the backend's; `I`, `T` and `X` behind
    /// a `Z` are its status.
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
            // A pipeline of three, the second of which fails.
            (">PBESPBESPBES <12CZI12EZI", false, false),
            (">PBESPBESPBES <12CZI12EZI12CZI", true, true),
            // Flush asks for answers, but not for the end of the transaction.
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
            // libpq: Sync with the COPY, and again behind its data.
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
            // Bad data: the backend stops listening, the client goes on for a while.
            ">Q <G >dd <E >dc <ZI",
            ">Q <G >dd <EZI >dc",
            ">PBES <12G >dd <E >dcS <ZI",
            ">PBES <12G >ddcS <EZI",
            // One before it in the pipeline, and one behind.
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
            // However it went: a Sync that is answered with none before it ends it.
            while !conversation.is_quiet() {
                conversation.sent(b'S').ok();
                conversation.received_ready(Status::Idle);
                conversation.received_ready(Status::Idle);
            }
        }
    }
}
