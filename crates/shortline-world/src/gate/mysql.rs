//! MySQL's protocol from both ends, as far as a session needs it.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::answer::Answer;
use super::database::{Control, Database, Done};
use crate::content;
use crate::network::End;

/// PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH, LONG_PASSWORD.
const CAPABILITIES: u32 = 0x0200 | 0x2000 | 0x8000 | 0x0008_0000 | 1;
const IN_TRANSACTION: u16 = 1;
const AUTOCOMMIT: u16 = 2;
const COM_QUIT: u8 = 1;
const COM_QUERY: u8 = 3;
const OK: u8 = 0;
const ERR: u8 = 0xff;
const EOF: u8 = 0xfe;
/// The most bytes of a row's single field.
const ROW_BYTES_MAX: usize = 8_000;

/// Numbered packets over a connection.
struct Packets {
    end: End,
    sequence: u8,
}

impl Packets {
    async fn write(&mut self, payload: &[u8]) -> io::Result<()> {
        let length = (payload.len() as u32).to_le_bytes();
        let header = [length[0], length[1], length[2], self.sequence];
        self.sequence = self.sequence.wrapping_add(1);
        self.end.write_all(&[&header[..], payload].concat()).await
    }

    async fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut header = [0; 4];
        self.end.read_exact(&mut header).await?;
        if header[3] != self.sequence {
            let text = format!("packet {} for {}", header[3], self.sequence);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.sequence = self.sequence.wrapping_add(1);
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let mut payload = vec![0; length as usize];
        self.end.read_exact(&mut payload).await?;
        Ok(payload)
    }
}

/// Serves the database's end of one connection until it is over.
pub async fn serve(database: Arc<Database>, end: End) {
    let number = database.enter();
    let mut server = Server {
        database: &database,
        packets: Packets { end, sequence: 0 },
        number,
        status: AUTOCOMMIT,
    };
    // A client that has gone gets no more answers.
    let _ = server.serve().await;
    database.leave(number);
}

struct Server<'a> {
    database: &'a Database,
    packets: Packets,
    number: u32,
    status: u16,
}

impl Server<'_> {
    async fn serve(&mut self) -> io::Result<()> {
        let low = (CAPABILITIES as u16).to_le_bytes();
        let high = ((CAPABILITIES >> 16) as u16).to_le_bytes();
        let greeting = [
            b"\x0a8.0.36\0",
            &self.number.to_le_bytes()[..],
            b"12345678\0",
            &low,
            &[33],
            &AUTOCOMMIT.to_le_bytes(),
            &high,
            &[21],
            &[0; 10],
            b"abcdefghijkl\0",
            b"mysql_native_password\0",
        ];
        self.packets.write(&greeting.concat()).await?;
        self.packets.read().await?;
        self.ok().await?;
        loop {
            self.packets.sequence = 0;
            let command = self.packets.read().await?;
            match command.split_first() {
                Some((&COM_QUERY, text)) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    self.query(&text).await?;
                }
                Some((&COM_QUIT, _)) => return Ok(()),
                _ => self.error(1047, "08S01", "no such command").await?,
            }
        }
    }

    async fn query(&mut self, text: &str) -> io::Result<()> {
        if let Some(number) = text.strip_prefix("KILL QUERY ") {
            self.database.cancel(number.parse().unwrap_or(0));
            return self.ok().await;
        }
        match self.database.execute(self.number, text).await {
            Done::Killed => Err(io::ErrorKind::ConnectionAborted.into()),
            Done::Cancelled => self.error(1317, "70100", "interrupted").await,
            Done::Failed => self.error(1365, "22012", "Division by 0").await,
            Done::Control(control) => {
                self.status = match control {
                    Control::Begin => AUTOCOMMIT | IN_TRANSACTION,
                    Control::End => AUTOCOMMIT,
                };
                self.ok().await
            }
            Done::Rows(key, bytes) => self.rows(&content::piece(key, 0, bytes as usize)).await,
        }
    }

    async fn rows(&mut self, rows: &[u8]) -> io::Result<()> {
        self.packets.write(&[1]).await?;
        let column = b"\x03def\0\0\0\x01x\0\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0";
        self.packets.write(column).await?;
        self.eof().await?;
        for row in rows.chunks(ROW_BYTES_MAX) {
            let length = (row.len() as u16).to_le_bytes();
            let payload = [&[0xfc][..], &length, row].concat();
            self.packets.write(&payload).await?;
        }
        self.eof().await
    }

    async fn ok(&mut self) -> io::Result<()> {
        let status = self.status.to_le_bytes();
        let payload = [OK, 0, 0, status[0], status[1], 0, 0];
        self.packets.write(&payload).await
    }

    async fn eof(&mut self) -> io::Result<()> {
        let status = self.status.to_le_bytes();
        self.packets.write(&[EOF, 0, 0, status[0], status[1]]).await
    }

    async fn error(&mut self, number: u16, state: &str, text: &str) -> io::Result<()> {
        let number = number.to_le_bytes();
        let head = [ERR, number[0], number[1], b'#'];
        let payload = [&head[..], state.as_bytes(), text.as_bytes()].concat();
        self.packets.write(&payload).await
    }
}

/// A client's end.
pub struct Client {
    packets: Packets,
    /// The connection's number at the server.
    number: u32,
}

impl Client {
    /// Begins a session. If it is refused, returns the error.
    pub async fn open(end: End) -> io::Result<Result<Self, Answer>> {
        let mut packets = Packets { end, sequence: 0 };
        let greeting = packets.read().await?;
        if greeting.first() == Some(&ERR) {
            return Ok(Err(error_of(&greeting)));
        }
        let after_version = greeting.iter().position(|byte| *byte == 0);
        let at = after_version.map_or(0, |at| at + 1);
        let number = greeting
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok());
        let number = number.map_or(0, u32::from_le_bytes);
        let answer = [
            &CAPABILITIES.to_le_bytes()[..],
            &(1_u32 << 24).to_le_bytes(),
            &[33],
            &[0; 23],
            b"u\0",
            &[0],
            b"mysql_native_password\0",
        ];
        packets.write(&answer.concat()).await?;
        let verdict = packets.read().await?;
        Ok(match verdict.first() {
            Some(&OK) => Ok(Self { packets, number }),
            _ => Err(error_of(&verdict)),
        })
    }

    /// What another connection needs to cancel the statement of this one.
    pub fn key(&self) -> Vec<u8> {
        self.number.to_be_bytes().to_vec()
    }

    /// Asks over its own connection to cancel what `key` names. Returns when that is over.
    pub async fn cancel(end: End, key: &[u8]) -> io::Result<()> {
        let Ok(mut client) = Self::open(end).await? else {
            return Ok(());
        };
        let number = key.try_into().map_or(0, u32::from_be_bytes);
        client.send(&format!("KILL QUERY {number}")).await?;
        client.answer().await.map(|_| ())
    }

    /// Sends a statement.
    pub async fn send(&mut self, text: &str) -> io::Result<()> {
        self.packets.sequence = 0;
        let payload = [&[COM_QUERY][..], text.as_bytes()].concat();
        self.packets.write(&payload).await
    }

    /// Sends bytes as they are.
    pub async fn babble(&mut self) -> io::Result<()> {
        self.packets.end.write_all(&[1, 0, 0, 7, 99, 9, 9, 9]).await
    }

    /// The answer to one statement, and whether a transaction is open then.
    pub async fn answer(&mut self) -> io::Result<(Answer, bool)> {
        let first = self.packets.read().await?;
        match first.first() {
            Some(&OK) => return Ok((Answer::Done(Vec::new()), is_open(&first, 3))),
            Some(&ERR) => return Ok((error_of(&first), false)),
            _ => {}
        }
        self.packets.read().await?;
        self.packets.read().await?;
        let mut rows = Vec::new();
        loop {
            let packet = self.packets.read().await?;
            match packet.first() {
                Some(&EOF) if packet.len() < 9 => {
                    return Ok((Answer::Done(rows), is_open(&packet, 3)));
                }
                Some(&ERR) => return Ok((error_of(&packet), false)),
                _ => rows.extend_from_slice(packet.get(3..).ok_or(io::ErrorKind::InvalidData)?),
            }
        }
    }
}

/// Whether the status at `at` says that a transaction is open.
fn is_open(packet: &[u8], at: usize) -> bool {
    packet
        .get(at)
        .is_some_and(|low| u16::from(*low) & IN_TRANSACTION != 0)
}

fn error_of(packet: &[u8]) -> Answer {
    let state = packet.get(4..9).unwrap_or_default();
    let text = packet.get(9..).unwrap_or_default();
    Answer::Error {
        code: String::from_utf8_lossy(state).into_owned(),
        text: String::from_utf8_lossy(text).into_owned(),
    }
}
