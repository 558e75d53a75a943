//! Follows the server's response to a command: where it ends, and its last status flags.
//! Sources: MySQL's source documentation, "Command Phase"; MariaDB's knowledge base, "Server
//! Response Packets".
//!
//! | shape | what comes |
//! |---|---|
//! | `Single` | one message |
//! | `Results` | OK, ERR, a request for a local file, or a result set; with `MORE_RESULTS_EXISTS` another |
//! | `Prepare` | ERR, or OK with the numbers of parameters and columns, whose definitions follow |
//! | `UntilEnd` | messages up to EOF or ERR: rows fetched, fields listed |
//! | `Authentication` | any exchange up to OK or ERR |
//!
//! A result set is its number of columns, that many definitions, EOF unless deprecated, rows, and
//! then EOF or, where deprecated, OK with EOF's header. The EOF after the definitions is the end if
//! a cursor was opened. An ERR is always the end, except for MariaDB's progress reports.

use super::capability::{Capabilities, DEPRECATE_EOF, MARIADB_CACHE_METADATA, MARIADB_PROGRESS};
use super::packet::{Found, PAYLOAD_BYTES_MAX, Scanner};
use super::value;

#[cfg(test)]
mod tests;

const OK: u8 = 0x00;
const LOCAL_INFILE: u8 = 0xfb;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// The code of a progress report.
const PROGRESS_CODE: u16 = 0xffff;
/// A payload of this length or more that begins like an EOF packet is a row.
const EOF_BYTES_MAX: u32 = 9;

/// The status flags that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status(pub u16);

impl Status {
    const IN_TRANSACTION: u16 = 0x0001;
    const AUTOCOMMIT: u16 = 0x0002;
    const MORE_RESULTS: u16 = 0x0008;
    const CURSOR_EXISTS: u16 = 0x0040;
    const LAST_ROW_SENT: u16 = 0x0080;
    const IN_TRANSACTION_READ_ONLY: u16 = 0x2000;
    const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
    /// MariaDB only.
    const ANSI_QUOTES: u16 = 0x8000;

    /// A transaction is open.
    pub fn is_in_transaction(self) -> bool {
        self.0 & Self::IN_TRANSACTION != 0
    }

    /// Those that last: autocommit, and those of the SQL mode, by which clients escape texts.
    pub fn of_session(self) -> u16 {
        self.0 & (Self::AUTOCOMMIT | Self::NO_BACKSLASH_ESCAPES | Self::ANSI_QUOTES)
    }

    /// Those of an open transaction.
    pub fn of_transaction(self) -> u16 {
        self.0 & (Self::IN_TRANSACTION | Self::IN_TRANSACTION_READ_ONLY)
    }

    /// Each statement begins a transaction if none is open.
    pub fn is_autocommit_off(self) -> bool {
        self.0 & Self::AUTOCOMMIT == 0
    }

    fn has_more_results(self) -> bool {
        self.0 & Self::MORE_RESULTS != 0
    }

    /// A cursor was opened, or has more rows.
    pub fn has_cursor(self) -> bool {
        self.0 & Self::CURSOR_EXISTS != 0
    }

    /// A cursor has no more rows, and is closed.
    pub fn has_sent_last_row(self) -> bool {
        self.0 & Self::LAST_ROW_SENT != 0
    }
}

/// The shape of the response to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One message.
    Single,
    /// Results of statements.
    Results,
    /// A prepared statement.
    Prepare,
    /// Messages up to an end.
    UntilEnd,
    /// An exchange up to OK or ERR.
    Authentication,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing that was asked for.
    Nothing,
    /// The only message.
    Only,
    /// A result's first message.
    Result,
    /// This many definitions of columns, then EOF or rows.
    Columns(u64),
    /// EOF after the definitions.
    ColumnsEnd,
    /// Rows, or their end.
    Rows,
    /// The first message about a prepared statement.
    Prepared,
    /// This many definitions of parameters or columns. The EOFs count as definitions.
    Definitions(u32),
    /// Messages, or their end.
    UntilEnd,
    /// OK, ERR, or a question to the client.
    Authentication,
}

/// Follows responses, one after another.
#[derive(Debug)]
pub struct Follower {
    scanner: Scanner,
    capabilities: Capabilities,
    next: Next,
    /// What to expect after the current message.
    after: Next,
    status: Status,
    /// Part of the response has come.
    has_begun: bool,
    has_failed: bool,
    wants_file: bool,
    prepared: Option<u32>,
}

impl Follower {
    /// Starts at the first command of a connection with these capabilities.
    pub fn new(capabilities: Capabilities, status: Status) -> Self {
        Self {
            scanner: Scanner::default(),
            capabilities,
            next: Next::Nothing,
            after: Next::Nothing,
            status,
            has_begun: false,
            has_failed: false,
            wants_file: false,
            prepared: None,
        }
    }

    /// Notes that a command whose response has this shape goes to the server.
    pub fn expect(&mut self, shape: Shape) {
        self.has_begun = false;
        self.has_failed = false;
        self.wants_file = false;
        self.prepared = None;
        self.next = match shape {
            Shape::Single => Next::Only,
            Shape::Results => Next::Result,
            Shape::Prepare => Next::Prepared,
            Shape::UntilEnd => Next::UntilEnd,
            Shape::Authentication => Next::Authentication,
        };
    }

    /// Whether the response is complete.
    pub fn is_done(&self) -> bool {
        self.next == Next::Nothing && self.scanner.is_between_messages()
    }

    /// Whether part of the response has come.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether a client would accept an error next.
    pub fn takes_error(&self) -> bool {
        let is_there = matches!(
            self.next,
            Next::Only | Next::Result | Next::Prepared | Next::Rows | Next::UntilEnd
        );
        is_there && self.scanner.is_between_messages()
    }

    /// Whether the client authenticates again and the server has not decided.
    pub fn is_authentication(&self) -> bool {
        self.next == Next::Authentication
    }

    /// The last status flags.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Autocommit may have been turned off by what has failed. The next status tells.
    pub fn doubt_autocommit(&mut self) {
        self.status.0 &= !Status::AUTOCOMMIT;
    }

    /// Whether the response held an error.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether a next message with this length and first byte would be an OK packet, also one in EOF's place.
    pub fn is_ok(&self, payload_bytes: u32, first: Option<u8>) -> bool {
        match self.next {
            Next::Only => match first {
                Some(EOF) => self.has(DEPRECATE_EOF) && payload_bytes > 5,
                _ => first == Some(OK),
            },
            Next::Result => first == Some(OK),
            Next::Rows | Next::UntilEnd => {
                self.has(DEPRECATE_EOF) && payload_bytes > 5 && self.is_end(payload_bytes, first)
            }
            _ => false,
        }
    }

    /// Whether a next message with this first byte would say that a statement was prepared.
    pub fn is_prepared(&self, first: Option<u8>) -> bool {
        self.next == Next::Prepared && first == Some(OK)
    }

    /// The number of the statement that was prepared.
    pub fn prepared(&self) -> Option<u32> {
        self.prepared
    }

    /// Whether the server has asked for a file of the client since the last call.
    pub fn take_file_wanted(&mut self) -> bool {
        std::mem::take(&mut self.wants_file)
    }

    /// The sequence number of the server's last packet.
    pub fn sequence(&self) -> u8 {
        self.scanner.sequence()
    }

    /// Follows the next bytes from the server.
    pub fn follow(&mut self, bytes: &[u8]) {
        let mut at = 0;
        let mut scanner = std::mem::take(&mut self.scanner);
        while let Some(found) = scanner.next(bytes, &mut at) {
            match found {
                Found::Start {
                    payload_bytes,
                    start,
                } => self.after = self.read(payload_bytes, start),
                Found::End => self.next = self.after,
            }
        }
        self.scanner = scanner;
    }

    /// Reads the start of a message and returns what comes after it.
    fn read(&mut self, payload_bytes: u32, start: &[u8]) -> Next {
        self.has_begun = true;
        let first = start.first().copied();
        if first == Some(ERR) && self.next != Next::Nothing {
            if self.is_progress(start) {
                return self.next;
            }
            self.has_failed = true;
            return Next::Nothing;
        }
        match self.next {
            Next::Nothing => Next::Nothing,
            Next::Only => {
                match first {
                    Some(OK) => self.read_ok(start),
                    Some(EOF) => self.read_end(payload_bytes, start),
                    _ => {}
                }
                Next::Nothing
            }
            Next::Result => self.read_result(start),
            Next::Columns(left @ 2..) => Next::Columns(left - 1),
            Next::Columns(_) => self.behind_columns(),
            Next::ColumnsEnd => {
                self.read_end(payload_bytes, start);
                if self.status.has_cursor() {
                    return self.behind_result();
                }
                Next::Rows
            }
            Next::Rows if self.is_end(payload_bytes, first) => {
                self.read_end(payload_bytes, start);
                self.behind_result()
            }
            Next::UntilEnd if self.is_end(payload_bytes, first) => {
                self.read_end(payload_bytes, start);
                Next::Nothing
            }
            Next::Prepared => self.read_prepared(start),
            Next::Definitions(2..) | Next::Rows | Next::UntilEnd => {
                self.one_less(payload_bytes, start)
            }
            Next::Definitions(_) => {
                self.one_less(payload_bytes, start);
                Next::Nothing
            }
            Next::Authentication if first == Some(OK) => {
                self.read_ok(start);
                Next::Nothing
            }
            Next::Authentication => Next::Authentication,
        }
    }

    fn is_progress(&self, start: &[u8]) -> bool {
        let code = value::integer(&mut &start[1..], 2);
        self.has(MARIADB_PROGRESS) && code == Some(PROGRESS_CODE.into())
    }

    fn read_result(&mut self, start: &[u8]) -> Next {
        match start.first() {
            Some(&OK) | None => {
                self.read_ok(start);
                self.behind_result()
            }
            Some(&LOCAL_INFILE) => {
                self.wants_file = true;
                Next::Result
            }
            Some(_) => {
                let rest = &mut &start[..];
                let columns = value::length_encoded(rest).unwrap_or(0);
                let has_definitions =
                    !self.has(MARIADB_CACHE_METADATA) || value::byte(rest) != Some(0);
                match columns {
                    1.. if has_definitions => Next::Columns(columns),
                    _ => self.behind_columns(),
                }
            }
        }
    }

    fn behind_columns(&self) -> Next {
        if self.has(DEPRECATE_EOF) {
            Next::Rows
        } else {
            Next::ColumnsEnd
        }
    }

    fn behind_result(&self) -> Next {
        if self.status.has_more_results() {
            Next::Result
        } else {
            Next::Nothing
        }
    }

    /// Reads a `COM_STMT_PREPARE_OK`.
    fn read_prepared(&mut self, start: &[u8]) -> Next {
        let rest = &mut &start[..];
        let mut read = || {
            value::byte(rest)?;
            let statement = value::integer(rest, 4)? as u32;
            let columns = value::integer(rest, 2)? as u32;
            let parameters = value::integer(rest, 2)? as u32;
            Some((statement, columns, parameters))
        };
        let Some((statement, columns, parameters)) = read() else {
            return Next::Nothing;
        };
        self.prepared = Some(statement);
        let eofs = match self.has(DEPRECATE_EOF) {
            true => 0,
            false => u32::from(columns > 0) + u32::from(parameters > 0),
        };
        match columns + parameters + eofs {
            0 => Next::Nothing,
            definitions => Next::Definitions(definitions),
        }
    }

    /// Counts down a definition, or one of the EOFs among them, or a row.
    fn one_less(&mut self, payload_bytes: u32, start: &[u8]) -> Next {
        let Next::Definitions(left) = self.next else {
            return self.next;
        };
        if start.first() == Some(&EOF) {
            self.read_end(payload_bytes, start);
        }
        Next::Definitions(left - 1)
    }

    /// Whether a message with this beginning ends the rows.
    fn is_end(&self, payload_bytes: u32, first: Option<u8>) -> bool {
        let bytes_max = match self.has(DEPRECATE_EOF) {
            true => PAYLOAD_BYTES_MAX,
            false => EOF_BYTES_MAX,
        };
        first == Some(EOF) && payload_bytes < bytes_max
    }

    /// Reads the status of an EOF packet, or of an OK packet with its header.
    fn read_end(&mut self, payload_bytes: u32, start: &[u8]) {
        // MySQL sends OK where EOF is deprecated. It has at least 7 bytes.
        if self.has(DEPRECATE_EOF) && payload_bytes > 5 {
            self.read_ok(start);
        } else if let Some(status) = start.get(3..5) {
            self.status = Status(u16::from_le_bytes([status[0], status[1]]));
        }
    }

    fn read_ok(&mut self, start: &[u8]) {
        let rest = &mut start.get(1..).unwrap_or_default();
        let mut read = || {
            value::length_encoded(rest)?;
            value::length_encoded(rest)?;
            value::integer(rest, 2)
        };
        if let Some(status) = read() {
            self.status = Status(status as u16);
        }
    }

    fn has(&self, capability: Capabilities) -> bool {
        self.capabilities & capability != 0
    }
}

/// The status flags of the OK packet that ends authentication.
pub fn status_of_ok(payload: &[u8]) -> Status {
    let mut follower = Follower::new(0, Status::default());
    follower.read_ok(payload);
    follower.status
}
