//! The PostgreSQL behind the pool: a session for each connection, and all that can go wrong with one.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use rand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::server::{Server, Working};
use super::fields::first_text;
use super::sql::{Message, Session};
use crate::gate::postgres::{Beginning, SECRET, message, read_message};
use crate::network::End;

const MS: u64 = 1_000_000;

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
    /// Answers that are sent with the next ReadyForQuery, error or Flush.
    says: Vec<u8>,
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
        let Some(startup) = read_startup(server, &mut end).await? else {
            return Ok(());
        };
        let mut parameters = startup;
        let user = parameters.remove("user").unwrap_or_default();
        parameters.remove("database");
        server
            .world
            .note(format_args!("server {number} is of {user} {parameters:?}"));
        let mut connection = Self {
            server,
            end,
            number,
            working,
            session: Session::begin(&user, &parameters),
            says: Vec::new(),
            has_ended: false,
            ends: false,
        };
        if connection.greet().await? {
            while connection.turn().await? {}
        }
        Ok(())
    }

    /// Lets the pool in. Returns whether it is.
    async fn greet(&mut self) -> io::Result<bool> {
        let (world, faults) = (&self.server.world, self.server.faults);
        let takes_ns = world.draw(|random| random.random_range(MS / 4..4 * MS));
        world.sleep(takes_ns).await;
        if world.chance(faults.hangs) {
            world.note(format_args!("server {} hangs", self.number));
            let mut rest = Vec::new();
            self.end.read_to_end(&mut rest).await?;
            return Ok(false);
        }
        self.say(b'R', &[0; 4]);
        for (name, value) in self.session.reported() {
            self.say(b'S', format!("{name}\0{value}\0").as_bytes());
        }
        if world.chance(faults.breaks) {
            world.note(format_args!("server {} breaks off", self.number));
            self.flush().await?;
            return Ok(false);
        }
        let key = [self.number.to_be_bytes(), SECRET.to_be_bytes()].concat();
        self.say(b'K', &key);
        self.say(b'Z', b"I");
        if world.chance(faults.notices) {
            self.say(b'N', b"SNOTICE\0C00000\0Mhello\0\0");
        }
        if world.chance(faults.garbles) {
            let (length, later_ns) = world.draw(|random| {
                let later = [0, MS, 30 * MS][random.random_range(0..3)];
                (random.random_range(1..40), later)
            });
            world.note(format_args!(
                "server {} garbles {length} bytes",
                self.number
            ));
            if later_ns > 0 {
                self.flush().await?;
                world.sleep(later_ns).await;
            }
            // None of them is the type of a message.
            self.says.extend(vec![0xf7; length]);
        }
        self.flush().await?;
        Ok(true)
    }

    /// Answers one message. Returns whether another may follow.
    async fn turn(&mut self) -> io::Result<bool> {
        let received = match self.idle().await? {
            Some(received) => received,
            None => return Ok(true),
        };
        let (tag, _) = &received;
        if *tag == b'X' {
            return Ok(false);
        }
        let what = format!("{} {:?}", char::from(received.0), first_text(&received.1));
        self.server
            .check_not_over(self.number, &self.end, self.ends, &what);
        // What follows may have been sent together with it.
        self.ends = false;
        let (us, counted) = self.session.work(&received);
        let counted: Vec<u64> = counted.into_iter().collect();
        let work = self.server.work(self.number, self.working, us, &counted);
        let is_cancelled = us > 0 && work.await;
        let faults = self.server.faults;
        if us > 0 && self.server.world.chance(faults.kills) {
            self.server
                .world
                .note(format_args!("server {} is killed", self.number));
            if self.server.world.chance(0.5) {
                self.say(b'E', b"SFATAL\0C57P01\0Mterminating connection\0\0");
                self.flush().await?;
            }
            return Ok(false);
        }
        if is_cancelled {
            self.server
                .world
                .note(format_args!("server {} has cancelled", self.number));
        }
        let answer = self.session.handle(&received, is_cancelled);
        let is_told = answer.iter().any(|(tag, _)| matches!(tag, b'Z' | b'E'));
        if is_told && self.server.world.chance(faults.notices) {
            self.say(b'N', b"SNOTICE\0C00000\0Mby the way\0\0");
            self.say(b'S', b"in_hot_standby\0off\0");
        }
        for (tag, body) in answer {
            self.say(tag, &body);
        }
        if is_told || received.0 == b'H' {
            self.flush().await?;
        }
        Ok(true)
    }

    /// The next message. Meanwhile the server may end its direction. Then there is none.
    async fn idle(&mut self) -> io::Result<Option<Message>> {
        let world = &self.server.world;
        let rests = self.session.status() == b'I' && self.says.is_empty() && !self.has_ended;
        if !rests || !world.chance(self.server.faults.ends) {
            return read_message(&mut self.end).await.map(Some);
        }
        let after_ns = world.draw(|random| random.random_range(1..200 * MS));
        tokio::select! {
            biased;
            tag = self.end.read_u8() => {
                let tag = tag?;
                let length = self.end.read_u32().await? as usize;
                let length = length.checked_sub(4).ok_or(io::ErrorKind::InvalidData)?;
                let mut body = vec![0; length];
                self.end.read_exact(&mut body).await?;
                return Ok(Some((tag, body)));
            }
            () = world.sleep(after_ns) => {}
        }
        world.note(format_args!("server {} ends its direction", self.number));
        if world.chance(0.5) {
            self.say(b'E', b"SFATAL\0C57P01\0Mterminating connection\0\0");
            self.flush().await?;
        }
        self.end.finish();
        (self.has_ended, self.ends) = (true, true);
        Ok(None)
    }

    fn say(&mut self, tag: u8, body: &[u8]) {
        self.says.extend(message(tag, body));
    }

    async fn flush(&mut self) -> io::Result<()> {
        let says = std::mem::take(&mut self.says);
        self.end.write_all(&says).await
    }
}

/// The parameters of a StartupMessage. `None` after a cancel request.
async fn read_startup(
    server: &Server,
    end: &mut End,
) -> io::Result<Option<BTreeMap<String, String>>> {
    let startup = match Beginning::read(end).await? {
        Beginning::Startup(startup) => startup,
        Beginning::Cancel(of) => {
            let takes_ns = server.world.draw(|random| random.random_range(0..2 * MS));
            server.world.sleep(takes_ns).await;
            server.cancel(of);
            return Ok(None);
        }
    };
    let texts = startup.split(|byte| *byte == 0);
    let texts: Vec<_> = texts.map(String::from_utf8_lossy).collect();
    let pairs = texts.chunks_exact(2).filter(|pair| !pair[0].is_empty());
    Ok(Some(
        pairs
            .map(|pair| (pair[0].to_string(), pair[1].to_string()))
            .collect(),
    ))
}
