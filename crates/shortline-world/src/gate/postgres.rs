//! PostgreSQL's protocol, version 3, from both ends, as far as a session needs it.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::answer::Answer;
use super::database::{Control, Database, Done};
use crate::content;
use crate::network::End;

/// The version in a StartupMessage.
pub const PROTOCOL: u32 = 3 << 16;
/// What a cancel request has instead of a version.
pub const CANCEL: u32 = 80_877_102;
/// The secret in every backend's key.
pub const SECRET: u32 = 77;
/// The most bytes of a row's single field.
const ROW_BYTES_MAX: usize = 8_000;

/// A message: its type, its length, its body.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 4) as u32;
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

/// The next message: its type and its body.
pub async fn read_message(end: &mut End) -> io::Result<(u8, Vec<u8>)> {
    let tag = end.read_u8().await?;
    let length = end.read_u32().await? as usize;
    let length = length.checked_sub(4).ok_or(io::ErrorKind::InvalidData)?;
    let mut body = vec![0; length];
    end.read_exact(&mut body).await?;
    Ok((tag, body))
}

/// The first message of a connection, as the server reads it.
pub enum Beginning {
    /// A CancelRequest for the backend of this number.
    Cancel(u32),
    /// A StartupMessage: what is behind its version.
    Startup(Vec<u8>),
}

impl Beginning {
    /// Reads it.
    pub async fn read(end: &mut End) -> io::Result<Self> {
        let length = end.read_u32().await? as usize;
        let length = length.checked_sub(4).ok_or(io::ErrorKind::InvalidData)?;
        let mut body = vec![0; length];
        end.read_exact(&mut body).await?;
        let word = |at: usize| {
            let bytes = body.get(at..at + 4).and_then(|word| word.try_into().ok());
            bytes.map_or(0, u32::from_be_bytes)
        };
        Ok(match word(0) {
            CANCEL => Self::Cancel(word(4)),
            _ => Self::Startup(body.split_off(length.min(4))),
        })
    }
}

/// Serves the database's end of one connection until it is over.
pub async fn serve(database: Arc<Database>, end: End) {
    let number = database.enter();
    // A client that has gone gets no more answers.
    let _ = Server::serve(&database, end, number).await;
    database.leave(number);
}

struct Server<'a> {
    database: &'a Database,
    end: End,
    number: u32,
    /// `I`, `T`, or `E`, as in ReadyForQuery.
    state: u8,
    /// The unnamed statement.
    prepared: String,
    /// An error was answered. The rest up to the Sync is skipped.
    skips: bool,
}

impl<'a> Server<'a> {
    async fn serve(database: &'a Database, mut end: End, number: u32) -> io::Result<()> {
        if let Beginning::Cancel(of) = Beginning::read(&mut end).await? {
            database.cancel(of);
            return Ok(());
        }
        let key = [number.to_be_bytes(), SECRET.to_be_bytes()].concat();
        let hello = [
            message(b'R', &[0; 4]),
            message(b'S', b"server_version\x0015\0"),
            message(b'K', &key),
            message(b'Z', b"I"),
        ];
        end.write_all(&hello.concat()).await?;
        let mut server = Self {
            database,
            end,
            number,
            state: b'I',
            prepared: String::new(),
            skips: false,
        };
        while server.turn().await? {}
        Ok(())
    }

    /// Answers one message. Returns whether another may follow.
    async fn turn(&mut self) -> io::Result<bool> {
        let (tag, body) = read_message(&mut self.end).await?;
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        match tag {
            b'X' => return Ok(false),
            b'Q' => {
                let goes_on = self.execute(&text(&body)).await?;
                self.skips = false;
                self.ready().await?;
                return Ok(goes_on);
            }
            b'S' => {
                self.skips = false;
                self.ready().await?;
            }
            _ if self.skips => {}
            b'P' => {
                self.prepared = text(&body[1..]);
                self.end.write_all(&message(b'1', b"")).await?;
            }
            b'B' => self.end.write_all(&message(b'2', b"")).await?,
            b'E' => return self.execute(&self.prepared.clone()).await,
            _ => self.error("08P01", "no such message").await?,
        }
        Ok(true)
    }

    async fn ready(&mut self) -> io::Result<()> {
        self.end.write_all(&message(b'Z', &[self.state])).await
    }

    async fn error(&mut self, code: &str, text: &str) -> io::Result<()> {
        if self.state == b'T' {
            self.state = b'E';
        }
        self.skips = true;
        let body = format!("SERROR\0C{code}\0M{text}\0\0");
        self.end.write_all(&message(b'E', body.as_bytes())).await
    }

    /// Executes a statement. Returns whether the connection goes on.
    async fn execute(&mut self, text: &str) -> io::Result<bool> {
        if self.state == b'E' && !matches!(text, "commit" | "rollback") {
            self.error("25P02", "the transaction is aborted").await?;
            return Ok(true);
        }
        match self.database.execute(self.number, text).await {
            Done::Killed => return Err(io::ErrorKind::ConnectionAborted.into()),
            Done::Cancelled => self.error("57014", "canceling statement").await?,
            Done::Failed => self.error("22012", "division by zero").await?,
            Done::Control(control) => {
                self.state = match control {
                    Control::Begin => b'T',
                    Control::End => b'I',
                };
                self.end.write_all(&message(b'C', b"BEGIN\0")).await?;
            }
            Done::Rows(key, bytes) => {
                let rows = content::piece(key, 0, bytes as usize);
                for row in rows.chunks(ROW_BYTES_MAX) {
                    let length = (row.len() as u32).to_be_bytes();
                    let body = [&[0, 1][..], &length, row].concat();
                    self.end.write_all(&message(b'D', &body)).await?;
                }
                self.end.write_all(&message(b'C', b"SELECT 1\0")).await?;
            }
        }
        Ok(true)
    }
}

/// A client's end.
pub struct Client {
    end: End,
    key: Vec<u8>,
}

impl Client {
    /// Begins a session. If it is refused, returns the error.
    pub async fn open(mut end: End) -> io::Result<Result<Self, Answer>> {
        let body = [&PROTOCOL.to_be_bytes()[..], b"user\0u\0database\0d\0\0"].concat();
        end.write_u32(body.len() as u32 + 4).await?;
        end.write_all(&body).await?;
        let mut key = Vec::new();
        loop {
            match read_message(&mut end).await? {
                (b'K', body) => key = body,
                (b'E', body) => return Ok(Err(error_of(&body))),
                (b'Z', _) => return Ok(Ok(Self { end, key })),
                _ => {}
            }
        }
    }

    /// What another connection needs to cancel the statement of this one.
    pub fn key(&self) -> Vec<u8> {
        self.key.clone()
    }

    /// Asks over its own connection to cancel what `key` names. Returns when that is over.
    pub async fn cancel(mut end: End, key: &[u8]) -> io::Result<()> {
        end.write_u32(key.len() as u32 + 8).await?;
        end.write_u32(CANCEL).await?;
        end.write_all(key).await?;
        let mut nothing = [0];
        end.read(&mut nothing).await.map(|_| ())
    }

    /// Sends a statement.
    pub async fn send(&mut self, text: &str, extended: bool) -> io::Result<()> {
        let text = format!("{text}\0");
        let bytes = match extended {
            false => message(b'Q', text.as_bytes()),
            true => [
                message(b'P', &[b"\0", text.as_bytes(), &[0, 0]].concat()),
                message(b'B', &[0; 8]),
                message(b'E', &[0; 5]),
                message(b'S', b""),
            ]
            .concat(),
        };
        self.end.write_all(&bytes).await
    }

    /// Sends bytes as they are.
    pub async fn babble(&mut self) -> io::Result<()> {
        self.end
            .write_all(b"\xff\xff\xff\xff\xff\xff\xff\xff")
            .await
    }

    /// The answer to one statement, and whether a transaction is open then.
    pub async fn answer(&mut self) -> io::Result<(Answer, bool)> {
        let mut answer = Answer::Done(Vec::new());
        loop {
            let (tag, body) = read_message(&mut self.end).await?;
            match (tag, &mut answer) {
                (b'D', Answer::Done(rows)) => {
                    rows.extend_from_slice(body.get(6..).ok_or(io::ErrorKind::InvalidData)?);
                }
                (b'E', _) => answer = error_of(&body),
                (b'Z', _) => return Ok((answer, body != b"I")),
                _ => {}
            }
        }
    }
}

fn error_of(body: &[u8]) -> Answer {
    let fields = body.split(|byte| *byte == 0);
    let text: Vec<_> = fields.map(String::from_utf8_lossy).collect();
    let field = |tag: char| {
        let found = text.iter().find(|field| field.starts_with(tag));
        found.map_or_else(String::new, |field| field[1..].to_owned())
    };
    Answer::Error {
        code: field('C'),
        text: field('M'),
    }
}
