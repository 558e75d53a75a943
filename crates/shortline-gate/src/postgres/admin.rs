//! The admin database. A connection to it gets no backend. The gate itself answers its commands, in
//! the way of PgBouncer's console (`psql -p 6432 shortline -c 'SHOW TYPES'`, `PAUSE`).
//!
//! Two kinds of clients have access. Clients on this machine need no password if they run as root, as the
//! gate's own user, or as a user listed by number ([`super::asker`]). Clients from anywhere need the
//! password of a pool user that is listed by name. The protocol is the simple one, as in PgBouncer's
//! console, with one command a message. Every column is text.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::asker::{self, NotHeard};
use super::conversation::Status;
use super::messages::query_text;
use super::reply::{Complaint, command_complete, message, ready_for_query, say_last};
use crate::relay::proxy::Peer;
use crate::relay::{Handle, Order, Stream};

/// The longest command, in bytes.
const COMMAND_BYTES_MAX: u32 = 16 << 10;
/// PostgreSQL's object identifier of the type `text`.
const TEXT: u32 = 25;

/// The settings of the admin database.
#[derive(Clone)]
pub struct AdminDatabase {
    /// The database's name.
    pub name: String,
    /// The users of this machine that have access, apart from root and our own user.
    pub uids: Vec<u32>,
    /// The users of the pool that may run all commands.
    pub users: Vec<String>,
    /// The users of the pool that may run only commands that change nothing.
    pub stats_users: Vec<String>,
    /// Runs a command.
    pub answer: Answers,
}

/// The commands that a client may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Those that change nothing.
    Look,
    /// All commands.
    Act,
}

/// Runs a command. The error is one line of text.
pub type Answers = Arc<dyn Fn(String, Rights) -> Answering + Send + Sync>;

/// The future of an answer, ready when the command is done.
pub type Answering = Pin<Box<dyn Future<Output = Result<Answer, String>> + Send>>;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The command's name.
    pub tag: &'static str,
    /// The rows to show, if any.
    pub table: Option<Table>,
}

/// Rows of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// The rows. Each has as many values as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl fmt::Debug for AdminDatabase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AdminDatabase")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl AdminDatabase {
    /// The rights of a user of the pool that has proved its password.
    pub fn rights_of(&self, user: &str) -> Option<Rights> {
        let is_in = |users: &[String]| users.iter().any(|name| name == user);
        if is_in(&self.users) {
            Some(Rights::Act)
        } else {
            is_in(&self.stats_users).then_some(Rights::Look)
        }
    }
}

/// The client, as far as the kernel and a proxy describe it.
#[derive(Debug)]
pub struct Asker {
    /// Its address.
    pub peer: Peer,
    /// Our address that it connected to.
    pub local: io::Result<SocketAddr>,
    /// The user at the other end of a Unix socket.
    pub uid: Option<u32>,
}

/// The error for a client without access. None if it has access.
pub async fn refusal(asker: Asker, uids: &[u32]) -> Option<Complaint> {
    let uids = uids.to_vec();
    let looked = tokio::task::spawn_blocking(move || {
        if let Some(uid) = asker.uid {
            return asker::check_uid(uid, &uids);
        }
        let unknown = |why: String| NotHeard::Unknown(why);
        // Only the proxy is connected to us, so the address it reports cannot be checked.
        let peer = asker.peer.address.filter(|_| !asker.peer.is_told);
        let peer = peer.ok_or_else(|| unknown("it comes through a proxy".to_owned()))?;
        let local = asker.local.map_err(|error| unknown(error.to_string()))?;
        asker::check(peer, local, &uids)
    });
    let checked = match looked.await {
        Ok(checked) => checked,
        Err(error) => Err(NotHeard::Unknown(error.to_string())),
    };
    let not_heard = checked.err()?;
    Some(Complaint::new("28000", not_heard.to_string()))
}

/// Serves a client that has access, until it leaves or the gate shuts down.
///
/// # Errors
/// Those of its socket.
pub async fn serve(
    mut client: Stream,
    database: &AdminDatabase,
    rights: Rights,
    handle: &Handle,
) -> io::Result<()> {
    client.write_all(&greeting()).await?;
    client.flush().await?;
    let mut is_skipping = false;
    loop {
        let read = tokio::select! {
            read = read(&mut client) => read,
            () = handle.ordered(Order::Drain) => {
                say_last(client, &Complaint::shutting_down()).await;
                return Ok(());
            }
        };
        let (tag, body) = match read {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(()),
            Err(error) => {
                if error.kind() == io::ErrorKind::InvalidData {
                    say_last(client, &Complaint::new("08P01", error.to_string())).await;
                }
                return Err(error);
            }
        };
        let reply = match tag {
            b'X' => return Ok(()),
            b'Q' if !is_skipping => {
                let command = String::from_utf8_lossy(query_text(&body));
                tokio::select! {
                    reply = answered(database, rights, &command) => reply,
                    () = handle.ordered(Order::Drain) => {
                        say_last(client, &Complaint::shutting_down()).await;
                        return Ok(());
                    }
                }
            }
            b'S' => {
                is_skipping = false;
                ready_for_query(Status::Idle).to_vec()
            }
            b'P' | b'B' | b'D' | b'E' | b'C' if !is_skipping => {
                is_skipping = true;
                queries_only().error()
            }
            b'F' if !is_skipping => {
                [&queries_only().error()[..], &ready_for_query(Status::Idle)].concat()
            }
            _ => continue,
        };
        client.write_all(&reply).await?;
        client.flush().await?;
    }
}

fn queries_only() -> Complaint {
    Complaint::new(
        "0A000",
        "the admin database speaks the simple protocol only",
    )
}

/// AuthenticationOk.
pub fn authentication_ok() -> Vec<u8> {
    message(b'R', &[&0_u32.to_be_bytes()])
}

/// The ParameterStatus messages that clients expect, and ReadyForQuery.
fn greeting() -> Vec<u8> {
    let mut greeting = Vec::new();
    for (name, value) in [
        (
            "server_version",
            concat!(env!("CARGO_PKG_VERSION"), "/shortline"),
        ),
        ("server_encoding", "UTF8"),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO"),
        ("integer_datetimes", "on"),
        ("standard_conforming_strings", "on"),
    ] {
        let parts = [name.as_bytes(), b"\0", value.as_bytes(), b"\0"];
        greeting.extend(message(b'S', &parts));
    }
    greeting.extend(ready_for_query(Status::Idle));
    greeting
}

/// Reads the next message: its type and body. None at the end.
async fn read(client: &mut Stream) -> io::Result<Option<(u8, Vec<u8>)>> {
    let tag = match client.read_u8().await {
        Ok(tag) => tag,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = client.read_u32().await?;
    let Some(body) = length
        .checked_sub(4)
        .filter(|length| *length <= COMMAND_BYTES_MAX)
    else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a message of {length} bytes to the admin database"),
        ));
    };
    let mut bytes = vec![0; body as usize];
    client.read_exact(&mut bytes).await?;
    Ok(Some((tag, bytes)))
}

async fn answered(database: &AdminDatabase, rights: Rights, command: &str) -> Vec<u8> {
    let command = command.trim().trim_end_matches(';').trim_end();
    let mut reply = if command.is_empty() {
        message(b'I', &[])
    } else {
        match (database.answer)(command.to_owned(), rights).await {
            Ok(answer) => answer.messages(),
            Err(problem) => Complaint::new("42601", problem).error(),
        }
    };
    reply.extend(ready_for_query(Status::Idle));
    reply
}

impl Answer {
    fn messages(&self) -> Vec<u8> {
        let mut messages = self.table.as_ref().map(Table::messages).unwrap_or_default();
        messages.extend(command_complete(self.tag));
        messages
    }
}

impl Table {
    /// RowDescription, DataRows.
    fn messages(&self) -> Vec<u8> {
        let mut description = Vec::new();
        description.extend(count(self.columns.len()));
        for column in &self.columns {
            description.extend(column.bytes());
            // No table or column number. Then the type, any length, no modifier, text format.
            description.extend([0; 1 + 4 + 2]);
            description.extend(TEXT.to_be_bytes());
            description.extend((-1_i16).to_be_bytes());
            description.extend((-1_i32).to_be_bytes());
            description.extend([0; 2]);
        }
        let mut messages = message(b'T', &[&description]);
        for row in &self.rows {
            let mut values = Vec::new();
            values.extend(count(row.len()));
            for value in row {
                let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
                values.extend(length.to_be_bytes());
                values.extend(value.bytes());
            }
            messages.extend(message(b'D', &[&values]));
        }
        messages
    }
}

fn count(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> AdminDatabase {
        AdminDatabase {
            name: "shortline".to_owned(),
            uids: Vec::new(),
            users: vec!["boss".to_owned()],
            stats_users: vec!["watch".to_owned()],
            answer: Arc::new(|command, rights| {
                Box::pin(async move {
                    match (command.as_str(), rights) {
                        ("SHOW A", _) => Ok(Answer {
                            tag: "SHOW",
                            table: Some(Table {
                                columns: vec!["a"],
                                rows: vec![vec!["x".to_owned()]],
                            }),
                        }),
                        ("PAUSE", Rights::Act) => Ok(Answer {
                            tag: "PAUSE",
                            table: None,
                        }),
                        (other, _) => Err(format!("no {other}")),
                    }
                })
            }),
        }
    }

    #[tokio::test]
    async fn a_table_is_a_description_and_rows() {
        let reply = answered(&database(), Rights::Look, " SHOW A ; ").await;
        let description = b"T\0\0\0\x1a\0\x01a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
        let rest = b"D\0\0\0\x0b\0\x01\0\0\0\x01xC\0\0\0\x09SHOW\0Z\0\0\0\x05I";
        assert_eq!(reply, [description.as_slice(), rest].concat());
    }

    #[tokio::test]
    async fn what_is_no_command_is_told() {
        let database = database();
        let empty = answered(&database, Rights::Act, ";").await;
        assert_eq!(empty, b"I\0\0\0\x04Z\0\0\0\x05I");
        let reply = answered(&database, Rights::Act, "select 1").await;
        assert_eq!(reply[0], b'E');
        assert!(String::from_utf8_lossy(&reply).contains("no select 1"));
    }

    #[tokio::test]
    async fn who_may_look_may_not_act() {
        let database = database();
        let done = answered(&database, Rights::Act, "PAUSE").await;
        assert_eq!(done, b"C\0\0\0\x0aPAUSE\0Z\0\0\0\x05I");
        assert_eq!(answered(&database, Rights::Look, "PAUSE").await[0], b'E');
        assert_eq!(database.rights_of("boss"), Some(Rights::Act));
        assert_eq!(database.rights_of("watch"), Some(Rights::Look));
        assert_eq!(database.rights_of("other"), None);
    }
}
