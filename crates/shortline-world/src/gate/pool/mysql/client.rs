//! A client of MySQL's pool. It feeds all that it sends to a session of its own ([`super::sql`]), and what the pool
//! answers must be what that one answers. What the gate may do besides is in [`super::super::excuse`].
//!
//! Where it cannot know whether a statement that failed had begun, it keeps a session for each possibility.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use shortline_gate::mysql::scramble::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::arena::Arena;
use super::super::client::{Leaving, Over};
use super::PASSWORD;
use super::command::Command;
use super::failure::{Failure, INTERRUPTED, KILLED, SHUTDOWN};
use super::killer::Killer;
use super::packets::{CONNECT_WITH_DB, EOF, ERR, OK, Payload, framed, read, text};
use super::plan::{ClientPlan, Step, Use, Wanted};
use super::sql::{CHANGED, Session};
use crate::network::End;
use crate::verdict::Fault;

/// One client's life.
pub async fn live(arena: Arc<Arena>, index: usize, plan: ClientPlan) {
    arena.world.sleep(plan.begins_ns).await;
    let end = arena.connect(index, plan.path).await;
    let (user, database) = (plan.user, plan.database);
    let own = Session::begin(user, plan.capabilities, plan.collation, database);
    let mut client = Client {
        own: vec![own],
        arena: &arena,
        index,
        plan: &plan,
        end,
        told: BTreeMap::new(),
        sent: VecDeque::new(),
    };
    let lived = async {
        client.enter().await?;
        for step in &plan.steps {
            client.does(step).await?;
        }
        Ok(())
    };
    if let Err(Over::Ended(how)) = lived.await {
        arena.cut_off(index, &how);
    }
    arena.world.note(format_args!("client {index} is gone"));
}

struct Client<'a> {
    arena: &'a Arc<Arena>,
    index: usize,
    plan: &'a ClientPlan,
    end: End,
    /// What its own connection may be.
    own: Vec<Session>,
    /// The numbers that it was told of prepared statements, by those that its own connection has.
    told: BTreeMap<u32, u32>,
    /// What is not answered, and how many requests to end its statements were over when it was sent.
    sent: VecDeque<(Command, usize)>,
}

/// What may be answered, and the session behind it.
struct Possible {
    session: Session,
    says: Vec<Payload>,
}

/// Whether a client is let in, and with which number.
pub type Entered = Result<u32, Failure>;

/// Logs in.
pub async fn enter(end: &mut End, plan: &ClientPlan) -> Result<Entered, Over> {
    let (_, greeting) = read(end).await?;
    if let Some(told) = Failure::of(&greeting) {
        return Ok(Err(told));
    }
    let malformed = || Over::Ended("a greeting that cannot be read".to_owned());
    let version = greeting.iter().position(|byte| *byte == 0);
    let rest = version.map(|at| &greeting[at + 1..]);
    let (number, nonce) = rest
        .and_then(|rest| {
            let nonce = [rest.get(4..12)?, rest.get(31..43)?].concat();
            Some((u32::from_le_bytes(*rest.first_chunk()?), nonce))
        })
        .ok_or_else(malformed)?;
    let proof = |nonce: &[u8]| {
        let nonce = nonce.first_chunk().ok_or_else(malformed)?;
        Ok::<_, Over>(Method::Native.proof(PASSWORD.as_bytes(), nonce))
    };
    let mut answer = Vec::new();
    let with_database = plan.database.map_or(0, |_| CONNECT_WITH_DB);
    answer.extend((plan.capabilities | with_database).to_le_bytes());
    answer.extend((1_u32 << 24).to_le_bytes());
    answer.push(plan.collation);
    answer.extend([0; 23]);
    answer.extend(format!("{}\0", plan.user).into_bytes());
    answer.extend(text(&proof(&nonce)?));
    answer.extend(
        plan.database
            .map(|name| format!("{name}\0"))
            .unwrap_or_default()
            .into_bytes(),
    );
    answer.extend(b"mysql_native_password\0");
    end.write_all(&framed(1, &[answer])).await?;
    let (_, verdict) = read(end).await?;
    match Failure::of(&verdict) {
        Some(told) => Ok(Err(told)),
        None if verdict.first() == Some(&OK) => Ok(Ok(number)),
        None => Err(malformed()),
    }
}

impl Client<'_> {
    async fn enter(&mut self) -> Result<(), Over> {
        match enter(&mut self.end, self.plan).await? {
            Ok(number) => {
                self.arena
                    .roster
                    .is_let_in(self.index, self.plan.user, number);
                self.arena.entered();
                self.note("is let in");
                Ok(())
            }
            Err(told) => {
                if !self.arena.scenario.may_keep_out(&told) {
                    self.broken(&format!("not let in: {told}"));
                }
                self.note(&format!("is not let in: {told}"));
                Err(Over::Left)
            }
        }
    }

    async fn does(&mut self, step: &Step) -> Result<(), Over> {
        match step {
            Step::Send(wanted) => self.send(wanted).await,
            Step::Settle => self.settle().await,
            Step::Kill {
                which,
                is_session,
                after_ns,
                times,
            } => {
                let killer = Killer {
                    arena: Arc::clone(self.arena),
                    index: self.index,
                    plan: self.plan,
                };
                let killing = killer.kill(*which, *is_session, *after_ns, *times);
                let (settled, ()) = tokio::join!(biased; self.settle(), killing);
                settled
            }
            Step::Pause(pause_ns) => {
                self.arena.world.sleep(*pause_ns).await;
                Ok(())
            }
            Step::InPieces(wanted, pause_ns) => {
                let bytes = self.ask(wanted).await?;
                let (first, rest) = bytes.split_at(bytes.len() / 2);
                self.end.write_all(first).await?;
                self.arena.world.sleep(*pause_ns).await;
                self.end.write_all(rest).await?;
                Ok(())
            }
            Step::End if !self.own.iter().any(Session::is_in_transaction) => Ok(()),
            Step::End => {
                let rollback = super::plan::query("rollback".to_owned());
                self.send(&[rollback]).await?;
                self.settle().await
            }
            Step::Leave(after_ns, leaving) => self.leave(*after_ns, *leaving).await,
            Step::Babble => {
                self.note("babbles");
                self.end.write_all(&[0xff; 8]).await?;
                // They may be the beginning of a long message.
                self.end.finish();
                while self.end.read(&mut [0; 1024]).await? > 0 {}
                Err(Over::Left)
            }
        }
    }

    /// The bytes of a command that is sent now.
    async fn ask(&mut self, wanted: &Wanted) -> Result<Vec<u8>, Over> {
        let command = match wanted {
            Wanted::Now(command) => command.clone(),
            Wanted::Prepared(usage, which, arguments) => {
                // Their numbers are known only once they are prepared.
                self.settle().await?;
                let prepared = self.own.first().map(Session::prepared).unwrap_or_default();
                let (statement, has_one) = prepared.get(*which).copied().unwrap_or((999, true));
                match usage {
                    Use::Execute => Command::Execute(statement, has_one.then(|| arguments.clone())),
                    Use::Close => Command::Close(statement),
                    Use::Reset => Command::ResetStatement(statement),
                }
            }
        };
        let payload = command.encoded(|own| self.number_of(own));
        self.note(&format!("sends {command:?}"));
        if command == Command::Reset {
            self.told.clear();
        }
        let over = self.arena.roster.over(self.index);
        self.arena.roster.waits(self.index, true);
        self.sent.push_back((command, over));
        Ok(framed(0, &[payload]))
    }

    /// The number by which it names a prepared statement. One that it does not have may be another's.
    fn number_of(&self, own: u32) -> u32 {
        let is_taken = |number: &u32| self.told.values().any(|told| told == number);
        let free = || (1..).find(|number| !is_taken(number)).unwrap_or(own);
        self.told.get(&own).copied().unwrap_or_else(free)
    }

    async fn send(&mut self, wanted: &[Wanted]) -> Result<(), Over> {
        let mut bytes = Vec::new();
        for wanted in wanted {
            bytes.extend(self.ask(wanted).await?);
        }
        self.end.write_all(&bytes).await?;
        Ok(())
    }

    /// Waits until all is answered, each command as by its own connection.
    async fn settle(&mut self) -> Result<(), Over> {
        while let Some((command, over)) = self.sent.pop_front() {
            let numbers = match self.own.first() {
                Some(session) => session.work(&command).1,
                None => Vec::new(),
            };
            for _ in &numbers {
                self.arena.asks();
            }
            self.own = self.hear_all(&command, over).await?;
            for number in numbers {
                self.arena.is_answered(Some(number));
            }
        }
        self.arena.roster.waits(self.index, false);
        Ok(())
    }

    /// Hears the answer to a command. Returns what its own connection may be then.
    async fn hear_all(&mut self, command: &Command, over: usize) -> Result<Vec<Session>, Over> {
        let before = std::mem::take(&mut self.own);
        let mut possible = self.possible(&before, command);
        let mut at = 0;
        loop {
            let (done, mut open): (Vec<_>, Vec<_>) =
                possible.into_iter().partition(|one| one.says.len() == at);
            if !done.is_empty() {
                return Ok(distinct(done));
            }
            let heard = self.hear(at).await?;
            let shown = open.first().map(|one| one.says[at].clone());
            open.retain(|one| is_same(command, &one.says[at], &heard));
            at += 1;
            let told = Failure::of(&heard);
            let is_ended = told.as_ref().is_some_and(Failure::is_of_kill);
            let may_be_ended = self.arena.roster.was_to_end(self.index, over);
            if let Some(told) = &told
                && at == 1
                && (is_ended && may_be_ended || self.arena.scenario.may_refuse(told))
            {
                open.extend(refused(&before, &heard));
            }
            if open.is_empty() || is_ended && !may_be_ended {
                let told = told.filter(|told| {
                    is_ended && may_be_ended || self.arena.scenario.may_end(told, true)
                });
                return Err(self.surprised(command, shown, &heard, told).await);
            }
            if let (Command::Prepare(_), Some(&OK), 1) = (command, heard.first(), at) {
                self.is_prepared(&open, &heard);
            }
            possible = open;
        }
    }

    /// What may be answered to a command.
    fn possible(&self, before: &[Session], command: &Command) -> Vec<Possible> {
        let mut fates = vec![None];
        if self.arena.scenario.has_killers {
            fates.extend([Some(INTERRUPTED), Some(KILLED)]);
        }
        if self.arena.scenario.faults.kills > 0.0 {
            fates.push(Some(SHUTDOWN));
        }
        let mut possible = Vec::new();
        for session in before {
            for fate in &fates {
                let mut session = session.clone();
                let failed = fate.map(|code| (code, "70100", String::new()));
                let says = session.handle(command, failed.as_ref());
                if *command == Command::Reset {
                    // The pool gives it a connection without a role, and with the options of its login.
                    session.is_anew(self.plan.capabilities);
                }
                possible.push(Possible { session, says });
            }
        }
        possible
    }

    /// Something else was answered. It is a fault, unless it was told an error by which the session may end, and does.
    async fn surprised(
        &mut self,
        command: &Command,
        awaited: Option<Payload>,
        heard: &[u8],
        told: Option<Failure>,
    ) -> Over {
        if let Some(told) = told {
            self.note(&format!("is told {told}"));
            if self.end.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {
                self.broken(&format!("not over, and told {told}"));
            }
            return Over::Left;
        }
        let awaited = awaited.as_deref().map(shown);
        self.arena.world.report(Fault::Wrong {
            whose: format!("client {}, {command:?}", self.index),
            what: format!("{} for {}", shown(heard), awaited.unwrap_or_default()),
        });
        Over::Left
    }

    /// A statement was prepared.
    fn is_prepared(&mut self, possible: &[Possible], heard: &[u8]) {
        let number = |says: &[u8]| Some(u32::from_le_bytes(*says.get(1..5)?.first_chunk()?));
        let own = possible.first().and_then(|one| number(&one.says[0]));
        if let (Some(own), Some(told)) = (own, number(heard)) {
            self.told.insert(own, told);
        }
    }

    /// The packet of this number for it.
    async fn hear(&mut self, at: usize) -> Result<Payload, Over> {
        let (sequence, payload) = match read(&mut self.end).await {
            Ok(read) => read,
            Err(error) if self.arena.roster.may_be_closed(self.index) => {
                self.note(&format!("is ended: {error}"));
                return Err(Over::Left);
            }
            Err(error) => return Err(error.into()),
        };
        let awaited = (at + 1) as u8;
        let told = Failure::of(&payload).filter(|_| sequence == 0);
        if told.is_some_and(|told| self.arena.scenario.may_end(&told, false)) {
            self.note("is told the server's last word, which answers nothing");
            return Err(Over::Left);
        }
        if sequence != awaited {
            let text = format!("packet {sequence} for {awaited}: {}", shown(&payload));
            self.broken(&text);
            return Err(Over::Left);
        }
        Ok(payload)
    }

    async fn leave(&mut self, after_ns: u64, leaving: Leaving) -> Result<(), Over> {
        self.arena.world.sleep(after_ns).await;
        self.note(&format!("leaves: {leaving:?}"));
        match leaving {
            Leaving::Terminate => {
                let quit = Command::Quit.encoded(|own| own);
                self.end.write_all(&framed(0, &[quit])).await?;
            }
            Leaving::Close => {}
            Leaving::Reset => self.end.reset(),
            Leaving::InMessage => {
                let begun = Command::Query("select work(1, 2, 3)".to_owned()).encoded(|own| own);
                self.end.write_all(&framed(0, &[begun])[..9]).await?;
            }
        }
        Err(Over::Left)
    }

    fn broken(&self, how: &str) {
        self.arena.world.report(Fault::Broken {
            whose: format!("client {}", self.index),
            how: how.to_owned(),
        });
    }

    fn note(&self, what: &str) {
        let index = self.index;
        self.arena.world.note(format_args!("client {index} {what}"));
    }
}

/// What its own connection may be where the gate has refused a unit.
fn refused(before: &[Session], heard: &[u8]) -> Vec<Possible> {
    let free = before.iter().filter(|session| !session.is_in_transaction());
    free.map(|session| Possible {
        session: session.clone(),
        says: vec![heard.to_vec()],
    })
    .collect()
}

/// The sessions of these, each once.
fn distinct(possible: Vec<Possible>) -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    for Possible { session, .. } in possible {
        if !sessions.iter().any(|known| known.is_like(&session)) {
            sessions.push(session);
        }
    }
    sessions
}

/// Whether a packet is the awaited one. Of an error its number counts: the names in its text may be the pool's. Of a
/// statement that was prepared its number does not count, nor of the end of rows whether something has changed.
fn is_same(command: &Command, awaited: &[u8], heard: &[u8]) -> bool {
    let is = |first: u8| awaited.first() == Some(&first) && heard.first() == Some(&first);
    if is(ERR) {
        return awaited.get(1..3) == heard.get(1..3);
    }
    if is(OK) && matches!(command, Command::Prepare(_)) {
        return awaited.get(5..) == heard.get(5..);
    }
    if is(EOF) && awaited.len() == 5 && heard.len() == 5 {
        let high = (CHANGED >> 8) as u8;
        return awaited[..4] == heard[..4] && awaited[4] | high == heard[4] | high;
    }
    awaited == heard
}

/// A packet in a few words.
fn shown(payload: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(payload).chars().take(700).collect();
    format!("{text:?}")
}
