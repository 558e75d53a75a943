//! Tracks the answers that the backend still has to send. So the pool can drop the answers to its own messages. It
//! can also insert answers to client messages that the backend never received.
//!
//! In the extended protocol, one message ends the answer to each request. For Parse, Bind and Close it is
//! ParseComplete, BindComplete and CloseComplete. For Describe it is RowDescription or NoData. For Execute it is
//! CommandComplete, PortalSuspended or EmptyQueryResponse. After an error the backend ignores everything up to the
//! next Sync (PostgreSQL's documentation, 55.2.3).

use std::collections::VecDeque;
use std::sync::Arc;

use super::prepared::Statement;

/// A message that was sent, or an answer to insert.
#[derive(Debug)]
enum Expected {
    /// This many consecutive messages of the client, with one answer each.
    Answers(u32),
    /// A Parse.
    Parse(Prepares),
    /// A Close of the pool's own, of this statement.
    HiddenClose(Arc<Statement>),
    /// An answer to insert, and its effect. Nothing was sent for it.
    Put(Vec<u8>, Effect),
    /// A Query, FunctionCall or Sync of the client. Its answer ends with ReadyForQuery.
    Ready(Ends),
    /// A Query of the pool's own. Its whole answer is dropped.
    HiddenQuery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Query,
    Sync,
}

/// The statement that a Parse prepares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepares {
    /// The statement's number.
    pub id: u64,
    /// It is unnamed on the backend's connection.
    pub is_unnamed: bool,
    /// The client's name for it, if the client sent the Parse. Otherwise the answer is dropped.
    pub client_name: Option<Box<[u8]>>,
}

/// What the gate has done for an inserted answer.
#[derive(Debug)]
pub enum Effect {
    /// It has prepared the statement of this name.
    Prepared(Box<[u8]>),
    /// It has closed the statement of this name, if it had one.
    Closed(Box<[u8]>, Option<Arc<Statement>>),
}

/// What an error has kept from being done.
#[derive(Debug)]
pub enum Lost {
    /// A Parse.
    Parse(Prepares),
    /// A Close of the pool's own.
    Close(Arc<Statement>),
    /// The effect of an inserted answer, which the client does not get.
    Effect(Effect),
}

/// What to do with a message of the backend.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    /// Send it to the client.
    Passed,
    /// Drop it.
    Hidden,
    /// The statement is prepared. Send the message to the client if the client sent the Parse.
    Prepared(Prepares),
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Pipeline {
    expected: VecDeque<Expected>,
    /// An error has come, and no Sync was sent after the failed message. Nothing is answered up to the next Sync.
    is_skipping: bool,
}

/// With this many entries, nothing more is sent. The backend buffers at most 8 KiB of answers, which are 1,638 of
/// the shortest. So it has sent some answers for this many entries, and will send more.
const ENTRIES_MAX: usize = 8192;

impl Pipeline {
    /// Whether no answer is outstanding.
    pub fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }

    /// Whether nothing more may be sent for now.
    pub fn is_full(&self) -> bool {
        self.expected.len() >= ENTRIES_MAX
    }

    /// Whether the backend ignores messages up to the next Sync.
    pub fn is_skipping(&self) -> bool {
        self.is_skipping
    }

    /// Notes a message with one answer that goes to the backend.
    pub fn send(&mut self) {
        match self.expected.back_mut() {
            Some(Expected::Answers(answers)) => *answers += 1,
            _ => self.push(Expected::Answers(1)),
        }
    }

    /// Notes a Parse that goes to the backend.
    pub fn send_parse(&mut self, prepares: Prepares) {
        self.push(Expected::Parse(prepares));
    }

    /// Notes a Close of the pool's own.
    pub fn send_hidden_close(&mut self, statement: Arc<Statement>) {
        self.push(Expected::HiddenClose(statement));
    }

    /// Inserts an answer after the answers to earlier messages.
    pub fn put(&mut self, answer: Vec<u8>, effect: Effect) {
        self.push(Expected::Put(answer, effect));
    }

    /// Notes a Query or FunctionCall that goes to the backend.
    pub fn send_query(&mut self) {
        self.push(Expected::Ready(Ends::Query));
    }

    /// Notes a Sync that goes to the backend.
    pub fn send_sync(&mut self) {
        self.is_skipping = false;
        self.push(Expected::Ready(Ends::Sync));
    }

    /// Notes a Query of the pool's own.
    pub fn send_hidden_query(&mut self) {
        self.push(Expected::HiddenQuery);
    }

    /// Whether an inserted answer is due now.
    pub fn has_put(&self) -> bool {
        matches!(self.expected.front(), Some(Expected::Put(..)))
    }

    /// The inserted answer that is due now, if any.
    pub fn take_put(&mut self) -> Option<Vec<u8>> {
        if !self.has_put() {
            return None;
        }
        match self.expected.pop_front() {
            Some(Expected::Put(answer, _)) => Some(answer),
            _ => None,
        }
    }

    /// Whether the next answer is to a Query of the pool's own.
    pub fn is_hidden(&self) -> bool {
        matches!(self.expected.front(), Some(Expected::HiddenQuery))
    }

    /// Whether nothing but Syncs was sent behind the message that is answered now.
    pub fn is_last(&self) -> bool {
        let is_sync = |expected: &Expected| matches!(expected, Expected::Ready(Ends::Sync));
        let has_more = matches!(self.expected.front(), Some(Expected::Answers(2..)));
        !has_more && self.expected.iter().skip(1).all(is_sync)
    }

    /// Handles a message of this type from the backend, other than ErrorResponse and ReadyForQuery.
    pub fn receive(&mut self, tag: u8) -> Fate {
        let ends_one = matches!(tag, b'1' | b'2' | b'3' | b'C' | b's' | b'I' | b'n' | b'T');
        match self.expected.front_mut() {
            Some(Expected::HiddenQuery) => Fate::Hidden,
            Some(Expected::HiddenClose(_)) if tag == b'3' => {
                self.expected.pop_front();
                Fate::Hidden
            }
            Some(Expected::Parse(_)) if tag == b'1' => match self.expected.pop_front() {
                Some(Expected::Parse(prepares)) => Fate::Prepared(prepares),
                _ => Fate::Passed,
            },
            Some(Expected::Answers(answers)) if ends_one => {
                *answers -= 1;
                if *answers == 0 {
                    self.expected.pop_front();
                }
                Fate::Passed
            }
            _ => Fate::Passed,
        }
    }

    /// Whether an error of the backend now is one of the extended protocol.
    pub fn is_extended(&self) -> bool {
        let next = self.expected.front();
        !matches!(
            next,
            Some(Expected::Ready(_) | Expected::HiddenQuery) | None
        )
    }

    /// Handles an error from the backend. Returns what was not done because of it, in order.
    pub fn fail(&mut self) -> Vec<Lost> {
        let mut lost = Vec::new();
        if !self.is_extended() {
            return lost;
        }
        while let Some(expected) = self.expected.pop_front() {
            match expected {
                Expected::Ready(Ends::Sync) => {
                    self.expected.push_front(expected);
                    return lost;
                }
                Expected::Parse(prepares) => lost.push(Lost::Parse(prepares)),
                Expected::HiddenClose(statement) => lost.push(Lost::Close(statement)),
                Expected::Put(_, effect) => lost.push(Lost::Effect(effect)),
                Expected::Answers(_) | Expected::Ready(Ends::Query) | Expected::HiddenQuery => {}
            }
        }
        self.is_skipping = true;
        lost
    }

    /// Handles a ReadyForQuery from the backend. Returns whether it goes to the client. `is_all` means that the client
    /// is owed nothing more, whatever was sent (a COPY ignores Syncs).
    pub fn ready(&mut self, is_all: bool) -> bool {
        let is_hidden = self.is_hidden();
        while let Some(expected) = self.expected.pop_front() {
            if matches!(expected, Expected::Ready(_) | Expected::HiddenQuery) {
                break;
            }
        }
        if is_all && !is_hidden {
            self.expected = VecDeque::new();
        }
        !is_hidden
    }

    fn push(&mut self, expected: Expected) {
        if !self.is_skipping {
            self.expected.push_back(expected);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::prepared::Table;
    use super::*;
    use proptest::prelude::*;

    fn prepares(id: u64, client_name: Option<&[u8]>) -> Prepares {
        Prepares {
            id,
            is_unnamed: false,
            client_name: client_name.map(Into::into),
        }
    }

    #[test]
    fn answers_of_our_own_stay_and_what_is_put_in_keeps_its_place() {
        let mut pipeline = Pipeline::default();
        pipeline.send_hidden_query();
        pipeline.send_parse(prepares(1, None));
        pipeline.send();
        pipeline.put(vec![7], Effect::Prepared(b"x".as_slice().into()));
        pipeline.send();
        pipeline.send_sync();
        assert_eq!(pipeline.receive(b'C'), Fate::Hidden);
        assert!(!pipeline.ready(false));
        assert_eq!(pipeline.receive(b'1'), Fate::Prepared(prepares(1, None)));
        assert_eq!(pipeline.take_put(), None);
        assert_eq!(pipeline.receive(b'2'), Fate::Passed);
        assert_eq!(pipeline.take_put(), Some(vec![7]));
        assert_eq!(pipeline.receive(b'D'), Fate::Passed);
        assert_eq!(pipeline.receive(b'C'), Fate::Passed);
        assert!(pipeline.ready(true) && pipeline.is_empty());
    }

    #[test]
    fn an_error_takes_all_with_it_up_to_the_sync() {
        let mut pipeline = Pipeline::default();
        pipeline.send_parse(prepares(1, Some(b"a")));
        pipeline.send();
        pipeline.put(vec![7], Effect::Prepared(b"x".as_slice().into()));
        pipeline.send_hidden_close(Arc::<Table>::default().enter(b"a\0\0\0"));
        pipeline.send_parse(prepares(2, Some(b"b")));
        pipeline.send_sync();
        pipeline.send_parse(prepares(3, Some(b"c")));
        pipeline.send_sync();
        let lost = pipeline.fail();
        let [
            Lost::Parse(a),
            Lost::Effect(Effect::Prepared(x)),
            Lost::Close(_),
            Lost::Parse(b),
        ] = &lost[..]
        else {
            panic!("{lost:?}")
        };
        assert_eq!((a, b), (&prepares(1, Some(b"a")), &prepares(2, Some(b"b"))));
        assert_eq!(**x, *b"x");
        assert!(pipeline.ready(false));
        assert_eq!(
            pipeline.receive(b'1'),
            Fate::Prepared(prepares(3, Some(b"c")))
        );
        assert!(pipeline.ready(true));
    }

    #[test]
    fn without_a_sync_what_is_sent_later_is_ignored_too() {
        let mut pipeline = Pipeline::default();
        pipeline.send();
        assert!(pipeline.fail().is_empty() && pipeline.is_skipping());
        pipeline.send();
        assert!(pipeline.is_empty());
        pipeline.send_sync();
        assert!(!pipeline.is_skipping() && pipeline.ready(true) && pipeline.is_empty());
    }

    #[test]
    fn an_error_of_a_query_ends_nothing_else() {
        let mut pipeline = Pipeline::default();
        pipeline.send_query();
        assert!(pipeline.is_last());
        pipeline.send_query();
        assert!(!pipeline.is_last());
        assert!(pipeline.fail().is_empty());
        assert!(pipeline.ready(false) && !pipeline.is_empty());
        assert!(pipeline.ready(true));
    }

    proptest! {
        #[test]
        fn any_order_of_messages_is_followed(steps in prop::collection::vec(0..12_u8, 0..100)) {
            let statement = Arc::<Table>::default().enter(b"a\0\0\0");
            let mut pipeline = Pipeline::default();
            for step in steps {
                match step {
                    0 => pipeline.send(),
                    1 => pipeline.send_parse(prepares(1, None)),
                    2 => pipeline.send_hidden_close(Arc::clone(&statement)),
                    3 => pipeline.put(vec![1], Effect::Closed(b"x".as_slice().into(), None)),
                    4 => pipeline.send_query(),
                    5 => pipeline.send_sync(),
                    6 => pipeline.send_hidden_query(),
                    7 => { pipeline.take_put(); }
                    8 => { pipeline.receive(b'1'); }
                    9 => { pipeline.receive(b'C'); }
                    10 => { pipeline.fail(); }
                    _ => { pipeline.ready(false); }
                }
            }
            pipeline.send_sync();
            while !pipeline.is_empty() {
                pipeline.ready(false);
            }
        }
    }
}
