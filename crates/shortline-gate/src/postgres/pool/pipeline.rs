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

/// A message that was sent, or an answer to insert. Large parts are in boxes: an idle session keeps room for some.
#[derive(Debug)]
enum Expected {
    /// This many consecutive messages of the client, with one answer each.
    Answers(u32),
    /// A Parse.
    Parse(Box<Parsing>),
    /// A Close of the pool's own, of this statement.
    HiddenClose(Arc<Statement>),
    /// An answer to insert. Nothing was sent for it.
    Put(Box<Put>),
    /// A Query, FunctionCall or Sync of the client. Its answer ends with ReadyForQuery.
    Ready(Ends),
    /// A Query of the pool's own. Its whole answer is dropped.
    HiddenQuery,
}

/// A Parse.
#[derive(Debug)]
struct Parsing {
    prepares: Prepares,
    /// What the client's unnamed statement is then, if it is a client's of the unnamed statement.
    unnamed: Option<Arc<Statement>>,
}

/// An answer to insert, and its effect.
#[derive(Debug)]
struct Put {
    answer: Vec<u8>,
    effect: Effect,
}

/// An idle session keeps room for this many entries of 16 bytes.
const KEPT_ENTRIES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Query,
    Sync,
}

/// The unnamed statements: there is one on each connection.
#[derive(Clone, Debug, Default)]
pub struct Unnamed {
    /// The client's.
    pub client: Option<Arc<Statement>>,
    /// The number of the one on the backend's connection.
    pub there: Option<u64>,
}

/// Something that is not answered.
#[derive(Clone, Copy, Debug)]
pub enum Pending<'a> {
    /// A Parse.
    Parse(&'a Prepares),
    /// A Close of the pool's own, of the statement of this number.
    Close(u64),
    /// An inserted answer, of the client's statement of this name.
    Put(&'a [u8]),
}

impl Expected {
    /// Whether it changes an unnamed statement, apart from a Query.
    fn sets_unnamed(&self) -> bool {
        match self {
            Self::Parse(parsing) => parsing.prepares.is_unnamed,
            Self::Put(put) => put.closes_unnamed(),
            _ => false,
        }
    }

    /// What the unnamed statements are once it is done.
    fn apply_to(&self, unnamed: &mut Unnamed) {
        match self {
            Self::Parse(parsing) if parsing.prepares.is_unnamed => {
                unnamed.there = Some(parsing.prepares.id);
                if parsing.unnamed.is_some() {
                    unnamed.client.clone_from(&parsing.unnamed);
                }
            }
            Self::Put(put) if put.closes_unnamed() => unnamed.client = None,
            Self::Ready(Ends::Query) => *unnamed = Unnamed::default(),
            Self::HiddenQuery => unnamed.there = None,
            _ => {}
        }
    }
}

impl Put {
    fn closes_unnamed(&self) -> bool {
        matches!(&self.effect, Effect::Closed(name, _) if name.is_empty())
    }
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
    /// The unnamed statements after all that is answered.
    unnamed: Unnamed,
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

    /// Notes a Parse that goes to the backend, and the client's unnamed statement that it makes.
    pub fn send_parse(&mut self, prepares: Prepares, unnamed: Option<Arc<Statement>>) {
        let parsing = Parsing { prepares, unnamed };
        self.push(Expected::Parse(Box::new(parsing)));
    }

    /// Notes a Close of the pool's own.
    pub fn send_hidden_close(&mut self, statement: Arc<Statement>) {
        self.push(Expected::HiddenClose(statement));
    }

    /// Inserts an answer after the answers to earlier messages.
    pub fn put(&mut self, answer: Vec<u8>, effect: Effect) {
        self.push(Expected::Put(Box::new(Put { answer, effect })));
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
        matches!(self.expected.front(), Some(Expected::Put(_)))
    }

    /// The inserted answer that is due now, if any.
    pub fn take_put(&mut self) -> Option<Vec<u8>> {
        if !self.has_put() {
            return None;
        }
        let put = self.expected.pop_front()?;
        put.apply_to(&mut self.unnamed);
        match put {
            Expected::Put(put) => Some(put.answer),
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
            Some(parse @ Expected::Parse(_)) if tag == b'1' => {
                parse.apply_to(&mut self.unnamed);
                match self.expected.pop_front() {
                    Some(Expected::Parse(parsing)) => Fate::Prepared(parsing.prepares),
                    _ => Fate::Passed,
                }
            }
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
        // A Parse that fails has removed the unnamed statement. One that is skipped has not.
        if let Some(Expected::Parse(parsing)) = self.expected.front()
            && parsing.prepares.is_unnamed
        {
            self.unnamed.there = None;
            if parsing.unnamed.is_some() {
                self.unnamed.client = None;
            }
        }
        while let Some(expected) = self.expected.pop_front() {
            match expected {
                Expected::Ready(Ends::Sync) => {
                    self.expected.push_front(expected);
                    return lost;
                }
                Expected::Parse(parsing) => lost.push(Lost::Parse(parsing.prepares)),
                Expected::HiddenClose(statement) => lost.push(Lost::Close(statement)),
                Expected::Put(put) => lost.push(Lost::Effect(put.effect)),
                Expected::Answers(_) | Expected::Ready(Ends::Query) | Expected::HiddenQuery => {}
            }
        }
        self.is_skipping = true;
        lost
    }

    /// Whether there is something like this before the last Query or Sync that is not answered. It may fail, or be skipped
    /// because of an error before it, and what is sent now depends on that. Its answer comes, whatever the client does.
    pub fn awaits(&self, is_it: impl Fn(Pending<'_>) -> bool) -> bool {
        let mut before = self.expected.iter().take(self.last_ready().unwrap_or(0));
        before.any(|expected| match expected {
            Expected::Parse(parsing) => is_it(Pending::Parse(&parsing.prepares)),
            Expected::HiddenClose(statement) => is_it(Pending::Close(statement.id)),
            Expected::Put(put) => match &put.effect {
                Effect::Prepared(name) | Effect::Closed(name, _) => is_it(Pending::Put(name)),
            },
            _ => false,
        })
    }

    /// Whether what the unnamed statement is depends on what was sent before the last Query or Sync and is not answered.
    pub fn awaits_unnamed(&self) -> bool {
        for (at, expected) in self.expected.iter().enumerate().rev() {
            match expected {
                Expected::Ready(Ends::Query) | Expected::HiddenQuery => return false,
                expected if expected.sets_unnamed() => {
                    return self.last_ready().is_some_and(|last| at < last);
                }
                _ => {}
            }
        }
        false
    }

    /// A unit begins on a connection, with these unnamed statements.
    pub fn begin(&mut self, unnamed: Unnamed) {
        self.unnamed = unnamed;
    }

    /// The unnamed statements, if nothing fails of what is not answered.
    pub fn unnamed(&self) -> Unnamed {
        let mut unnamed = self.unnamed.clone();
        for expected in &self.expected {
            expected.apply_to(&mut unnamed);
        }
        unnamed
    }

    /// Whether a Query or Sync is not answered.
    pub fn has_unanswered_segment(&self) -> bool {
        self.last_ready().is_some()
    }

    fn last_ready(&self) -> Option<usize> {
        let is_ready = |expected: &Expected| matches!(expected, Expected::Ready(_));
        self.expected.iter().rposition(is_ready)
    }

    /// Handles a ReadyForQuery from the backend. Returns whether it goes to the client. `is_all` means that no Query or
    /// Sync is owed another one, whatever was sent (a COPY ignores Syncs). Messages behind the last Sync may have gone.
    pub fn ready(&mut self, is_all: bool) -> bool {
        let is_hidden = self.is_hidden();
        while let Some(expected) = self.expected.pop_front() {
            if matches!(expected, Expected::Ready(_) | Expected::HiddenQuery) {
                expected.apply_to(&mut self.unnamed);
                break;
            }
        }
        if is_all
            && !is_hidden
            && let Some(ignored) = self.last_ready()
        {
            self.expected.drain(..=ignored);
        }
        if self.expected.is_empty() {
            // An idle session keeps little memory. A busy one does not have to allocate again.
            self.expected.shrink_to(KEPT_ENTRIES);
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
mod tests;
