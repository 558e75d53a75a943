//! The MariaDB behind the pool: a session for each connection, and all that can go wrong with one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rand::Rng;
use shortline_gate::mysql::scramble::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::server::{Server, Working};
use super::PASSWORD;
use super::command::Command;
use super::failure::{INTERRUPTED, KILLED, SHUTDOWN};
use super::packets::{CONNECT_WITH_DB, Failed, OF_SERVER, Payload, err, framed, read};
use super::sql::Session;
use crate::network::End;

const MS: u64 = 1_000_000;
/// What a proof of the password is made for.
const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";

/// Serves a connection until it is over.
pub async fn serve(server: Arc<Server>, end: End) {
    let (number, working) = server.enter();
    // A client that has gone gets no more answers.
    let _ = Connection::serve(&server, end, number, &working).await;
    server.leave(number);
}

struct Connection<'a> {
    server: &'a Server,
    end: End,
    number: u32,
    working: &'a Working,
    session: Session,
    /// It has ended its direction.
    has_ended: bool,
    /// It has, and has received nothing since.
    ends: bool,
}

impl<'a> Connection<'a> {
    async fn serve(
        server: &'a Server,
        mut end: End,
        number: u32,
        working: &'a Working,
    ) -> io::Result<()> {
        let (world, faults) = (&server.world, server.faults);
        let takes_ns = world.draw(|random| random.random_range(MS / 4..4 * MS));
        world.sleep(takes_ns).await;
        if world.chance(faults.hangs) {
            world.note(format_args!("server {number} hangs"));
            end.read_to_end(&mut Vec::new()).await?;
            return Ok(());
        }
        end.write_all(&framed(0, &[greeting(number)])).await?;
        let (_, answer) = read(&mut end).await?;
        if world.chance(faults.breaks) {
            world.note(format_args!("server {number} breaks off"));
            return Ok(());
        }
        let mut session = match Login::read(&answer).and_then(Login::session) {
            Ok(session) => session,
            Err(failed) => return end.write_all(&framed(2, &[err(&failed)])).await,
        };
        let ok = session.ok();
        let mut connection = Self {
            server,
            end,
            number,
            working,
            session,
            has_ended: false,
            ends: false,
        };
        connection.end.write_all(&framed(2, &[ok])).await?;
        connection.garble().await?;
        while connection.turn().await? {}
        Ok(())
    }

    /// Sometimes something follows the login that is no packet.
    async fn garble(&mut self) -> io::Result<()> {
        let world = &self.server.world;
        if !world.chance(self.server.faults.garbles) {
            return Ok(());
        }
        let (length, later_ns) = world.draw(|random| {
            let later = [0, MS, 30 * MS][random.random_range(0..3)];
            (random.random_range(1..40), later)
        });
        world.note(format_args!(
            "server {} garbles {length} bytes",
            self.number
        ));
        if later_ns > 0 {
            world.sleep(later_ns).await;
        }
        self.end.write_all(&vec![0xf7; length]).await
    }

    /// Answers one command. Returns whether another may follow.
    async fn turn(&mut self) -> io::Result<bool> {
        let Some(payload) = self.idle().await? else {
            return Ok(!self.is_killed());
        };
        let command = Command::decoded(&payload);
        self.server
            .check_not_over(self.number, &self.end, self.ends, &format!("{command:?}"));
        // What follows may have been sent together with it.
        self.ends = false;
        if command == Command::Quit {
            return Ok(false);
        }
        if let Command::Query(text) = &command
            && let Some(answer) = self.kill(text)
        {
            self.end.write_all(&framed(1, &[answer])).await?;
            return Ok(true);
        }
        let (us, numbers) = self.session.work(&command);
        let work = self.server.work(self.number, self.working, us, &numbers);
        let is_cancelled = us > 0 && work.await;
        let world = &self.server.world;
        let mut fate = is_cancelled.then_some(INTERRUPTED);
        let is_over = us > 0 && world.chance(self.server.faults.kills);
        let way = world.draw(|random| random.random_range(0..3));
        if is_over && way == 0 {
            fate = Some(SHUTDOWN);
        }
        if self.is_killed() {
            fate = Some(KILLED);
        }
        let fate: Option<Failed> = fate.map(|code| (code, "70100", "It is ended".to_owned()));
        let answer = framed(1, &self.session.handle(&command, fate.as_ref()));
        let mut said = &answer[..];
        if is_over && way > 0 {
            let length = world.draw(|random| random.random_range(0..=answer.len()));
            said = &answer[..if way == 1 { 0 } else { length }];
        }
        if let Some((code, ..)) = &fate {
            world.note(format_args!("server {} fails with {code}", self.number));
        }
        self.end.write_all(said).await?;
        if is_over {
            world.note(format_args!("server {} is killed", self.number));
        }
        Ok(!is_over && !self.is_killed())
    }

    fn is_killed(&self) -> bool {
        self.working.is_killed.load(Ordering::Relaxed)
    }

    /// The answer to KILL.
    fn kill(&self, text: &str) -> Option<Payload> {
        let text = text.to_ascii_lowercase();
        let (is_statement, number) = match text.strip_prefix("kill query ") {
            Some(number) => (true, number),
            None => (false, text.strip_prefix("kill ")?),
        };
        let number = number.parse().ok()?;
        let is_there = match is_statement {
            true => self.server.cancel(number),
            false => self.server.kill(number),
        };
        Some(match is_there {
            true => self.session.clone().ok(),
            false => err(&(1094, "HY000", format!("Unknown thread id: {number}"))),
        })
    }

    /// The next command. Meanwhile the server may end its direction, or the connection. Then there is none.
    async fn idle(&mut self) -> io::Result<Option<Payload>> {
        let world = &self.server.world;
        let rests = !self.session.is_in_transaction() && !self.has_ended;
        let ends = rests && world.chance(self.server.faults.ends);
        let after_ns = match ends {
            true => world.draw(|random| random.random_range(1..200 * MS)),
            false => u64::MAX / 4,
        };
        let mut header = [0; 4];
        tokio::select! {
            biased;
            first = self.end.read_u8() => header[0] = first?,
            () = self.working.killed.notified() => return Ok(None),
            () = world.sleep(after_ns), if ends => {
                world.note(format_args!("server {} ends its direction", self.number));
                if world.chance(0.5) {
                    let failed = (SHUTDOWN, "08S01", "Server shutdown in progress".to_owned());
                    self.end.write_all(&framed(0, &[err(&failed)])).await?;
                }
                self.end.finish();
                (self.has_ended, self.ends) = (true, true);
                return Ok(None);
            }
        }
        self.end.read_exact(&mut header[1..]).await?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let mut payload = vec![0; length as usize];
        self.end.read_exact(&mut payload).await?;
        Ok(Some(payload))
    }
}

fn greeting(number: u32) -> Payload {
    let capabilities = OF_SERVER.to_le_bytes();
    [
        b"\x0a5.5.5-10.11.6-MariaDB\0",
        &number.to_le_bytes()[..],
        &NONCE[..8],
        &[0],
        &capabilities[..2],
        &[45, 2, 0],
        &capabilities[2..],
        &[21],
        &[0; 10],
        &NONCE[8..],
        b"\0mysql_native_password\0",
    ]
    .concat()
}

/// A client's answer to the greeting.
struct Login {
    capabilities: u32,
    collation: u8,
    user: String,
    proof: Vec<u8>,
    database: Option<String>,
}

impl Login {
    fn read(answer: &[u8]) -> Result<Self, Failed> {
        let read = || {
            let capabilities = u32::from_le_bytes(*answer.first_chunk()?);
            let collation = *answer.get(8)?;
            let rest = answer.get(32..)?;
            let end = rest.iter().position(|byte| *byte == 0)?;
            let user = String::from_utf8_lossy(&rest[..end]).into_owned();
            let rest = &rest[end + 1..];
            let (&length, rest) = rest.split_first()?;
            let (proof, rest) = rest.split_at_checked(length.into())?;
            let database = rest.split(|byte| *byte == 0).next()?;
            let database = String::from_utf8_lossy(database).into_owned();
            Some(Self {
                capabilities,
                collation,
                user,
                proof: proof.to_vec(),
                database: (capabilities & CONNECT_WITH_DB != 0).then_some(database),
            })
        };
        read().ok_or_else(|| (1043, "08S01", "Bad handshake".to_owned()))
    }

    fn session(self) -> Result<Session, Failed> {
        if self.proof != Method::Native.proof(PASSWORD.as_bytes(), NONCE) {
            return Err((1045, "28000", "Access denied".to_owned()));
        }
        let (user, database) = (&self.user, self.database.as_deref());
        Ok(Session::begin(
            user,
            self.capabilities,
            self.collation,
            database,
        ))
    }
}
