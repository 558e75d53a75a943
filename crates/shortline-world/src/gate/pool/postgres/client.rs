//! A client of the pool. It feeds all that it sends to a session of its own ([`super::sql`]), and what the pool
//! answers must be what that one answers. What the gate may do besides is in [`super::super::excuse`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use shortline_gate::postgres::pool::md5_of;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::arena::Arena;
use super::super::client::{Leaving, Over};
use super::failure::Failure;
use super::plan::{ClientPlan, Step, query};
use super::sql::{Message, Session};
use crate::gate::postgres::{CANCEL, PROTOCOL, message, read_message};
use crate::network::End;
use crate::verdict::Fault;

/// The authentication request for an MD5 hash.
const MD5: u32 = 5;
/// The password of every user.
pub const PASSWORD: &str = "secret";

/// One client's life.
pub async fn live(arena: Arc<Arena>, index: usize, plan: ClientPlan) {
    arena.world.sleep(plan.begins_ns).await;
    let end = arena.connect(index, plan.path).await;
    let mut client = Client {
        own: Session::begin(plan.user, &plan.startup),
        arena: &arena,
        index,
        plan: &plan,
        end,
        key: Vec::new(),
        told: BTreeMap::new(),
        sent: VecDeque::new(),
        is_cancelled: false,
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
    key: Vec<u8>,
    /// What its own connection would answer.
    own: Session,
    /// The parameters that it was told.
    told: BTreeMap<String, String>,
    /// What is not answered.
    sent: VecDeque<Message>,
    /// It has asked to cancel what runs.
    is_cancelled: bool,
}

impl Client<'_> {
    /// Logs in.
    async fn enter(&mut self) -> Result<(), Over> {
        let mut startup = PROTOCOL.to_be_bytes().to_vec();
        let own = self.plan.startup.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in [("user", self.plan.user), ("database", "d")]
            .into_iter()
            .chain(own)
        {
            startup.extend(format!("{name}\0{value}\0").into_bytes());
        }
        startup.push(0);
        self.end.write_u32(startup.len() as u32 + 4).await?;
        self.end.write_all(&startup).await?;
        loop {
            match read_message(&mut self.end).await? {
                (b'R', body) if body[..4] == MD5.to_be_bytes() => {
                    let stored = md5_of(&[PASSWORD.as_bytes(), self.plan.user.as_bytes()]);
                    let shown = md5_of(&[stored.as_bytes(), &body[4..]]);
                    let answer = message(b'p', format!("md5{shown}\0").as_bytes());
                    self.end.write_all(&answer).await?;
                }
                (b'K', body) => self.key = body,
                (b'S', body) => self.is_told(&body),
                (b'Z', _) => break,
                (b'E', body) => {
                    let told = Failure::of(&body);
                    if !self.arena.scenario.may_keep_out(&told) {
                        self.broken(&format!("not let in: {told}"));
                    }
                    self.note(&format!("is not let in: {told}"));
                    return Err(Over::Left);
                }
                _ => {}
            }
        }
        self.arena.entered();
        self.note("is let in");
        self.compare();
        Ok(())
    }

    async fn does(&mut self, step: &Step) -> Result<(), Over> {
        match step {
            Step::Send(messages) => self.send(messages).await,
            Step::Settle => self.settle().await,
            Step::Cancel(after_ns) => self.cancel(*after_ns).await,
            Step::Compare => {
                self.compare();
                Ok(())
            }
            Step::Pause(pause_ns) => {
                self.arena.world.sleep(*pause_ns).await;
                Ok(())
            }
            Step::InPieces((tag, body), pause_ns) => {
                let bytes = message(*tag, body);
                self.ask(&(*tag, body.clone()));
                let (first, rest) = bytes.split_at(bytes.len() / 2);
                self.end.write_all(first).await?;
                self.arena.world.sleep(*pause_ns).await;
                self.end.write_all(rest).await?;
                Ok(())
            }
            Step::End if self.own.status() == b'I' => Ok(()),
            Step::End => {
                self.send(&[query("rollback")]).await?;
                self.settle().await
            }
            Step::Leave(after_ns, leaving) => self.leave(*after_ns, *leaving).await,
            Step::Babble => {
                self.note("babbles");
                self.end.write_all(&[0xff; 8]).await?;
                while self.end.read(&mut [0; 1024]).await? > 0 {}
                Err(Over::Left)
            }
        }
    }

    fn ask(&mut self, sent: &Message) {
        let text = String::from_utf8_lossy(&sent.1).replace('\0', " ");
        self.note(&format!("sends {} {}", char::from(sent.0), text.trim_end()));
        self.sent.push_back(sent.clone());
    }

    async fn send(&mut self, messages: &[Message]) -> Result<(), Over> {
        let mut bytes = Vec::new();
        for sent in messages {
            self.ask(sent);
            bytes.extend(message(sent.0, &sent.1));
        }
        self.end.write_all(&bytes).await?;
        Ok(())
    }

    /// Waits until all is answered, each message as by its own connection.
    async fn settle(&mut self) -> Result<(), Over> {
        while let Some(asked) = self.sent.pop_front() {
            let before = self.own.clone();
            let mut expected = self.own.handle(&asked, false);
            expected.retain(|(tag, _)| *tag != b'S');
            let (_, counted) = before.work(&asked);
            if counted.is_some() {
                self.arena.asks();
            }
            let mut is_first = true;
            let mut expected = VecDeque::from(expected);
            while let Some(awaited) = expected.pop_front() {
                let heard = self.hear().await?;
                if is_same(&awaited, &heard) {
                    is_first = false;
                    continue;
                }
                let instead = (is_first && heard.0 == b'E')
                    .then(|| self.instead(&before, &asked, &heard))
                    .flatten();
                let Some(instead) = instead else {
                    self.wrong(&asked, &awaited, &heard);
                    return Err(Over::Left);
                };
                expected = instead.into();
                expected.retain(|(tag, _)| *tag != b'S');
                is_first = false;
            }
            if counted.is_some() {
                self.arena.is_answered(counted);
            }
        }
        Ok(())
    }

    /// What follows an error that its own connection would not have answered with. `None` if nothing excuses it.
    fn instead(
        &mut self,
        before: &Session,
        asked: &Message,
        (_, body): &Message,
    ) -> Option<Vec<Message>> {
        let told = Failure::of(body);
        self.note(&format!("is told {told}"));
        let mut own = before.clone();
        if self.is_cancelled && told.code == "57014" && before.work(asked).0 > 0 {
            let mut says = own.handle(asked, true);
            let at = says.iter().position(|(tag, _)| *tag == b'E')?;
            says.drain(..=at);
            self.own = own;
            self.is_cancelled = false;
            return Some(says);
        }
        let waited = self.is_cancelled && told.code == "57014" && before.work(asked).0 == 0;
        if before.status() == b'I' && (waited || self.arena.scenario.may_refuse(&told)) {
            let says = own.refuse(asked);
            self.own = own;
            return Some(says);
        }
        None
    }

    /// The next message for it. Parameters and notices may come at any time.
    async fn hear(&mut self) -> Result<Message, Over> {
        loop {
            let (tag, body) = read_message(&mut self.end).await?;
            match tag {
                b'S' => self.is_told(&body),
                b'N' => {}
                b'E' if Failure::of(&body).is_fatal => {
                    let told = Failure::of(&body);
                    self.note(&format!("is told {told}"));
                    let is_open = self.own.status() != b'I' || !self.sent.is_empty();
                    if !self.arena.scenario.may_end(&told, is_open) {
                        self.broken(&format!("ended: {told}"));
                    }
                    return Err(Over::Left);
                }
                _ => return Ok((tag, body)),
            }
        }
    }

    fn is_told(&mut self, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        let mut parts = text.split('\0').map(str::to_owned);
        let (name, value) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        self.told.insert(name, value);
    }

    /// Whether it was told of each reported parameter what it has.
    fn compare(&self) {
        for (name, value) in self.own.reported() {
            let told = self.told.get(&name);
            if told != Some(&value) {
                self.arena.world.report(Fault::Wrong {
                    whose: format!("client {}", self.index),
                    what: format!("it was told {told:?} for {name}, which is {value:?}"),
                });
            }
        }
    }

    /// Asks to cancel its statement, and goes on only when that is over.
    async fn cancel(&mut self, after_ns: u64) -> Result<(), Over> {
        let (arena, index, path) = (Arc::clone(self.arena), self.index, self.plan.path);
        let length = self.key.len() as u32 + 8;
        let request = [&length.to_be_bytes()[..], &CANCEL.to_be_bytes(), &self.key].concat();
        self.is_cancelled = true;
        let cancelling = async {
            arena.world.sleep(after_ns).await;
            let mut end = arena.connect(index, path).await;
            arena.world.note(format_args!("client {index} cancels"));
            // Whatever the result, it is over.
            if end.write_all(&request).await.is_ok() {
                let _ = end.read(&mut [0]).await;
            }
        };
        let (settled, ()) = tokio::join!(biased; self.settle(), cancelling);
        self.is_cancelled = false;
        settled
    }

    async fn leave(&mut self, after_ns: u64, leaving: Leaving) -> Result<(), Over> {
        self.arena.world.sleep(after_ns).await;
        self.note(&format!("leaves: {leaving:?}"));
        match leaving {
            Leaving::Terminate => self.end.write_all(&message(b'X', b"")).await?,
            Leaving::Close => {}
            Leaving::Reset => self.end.reset(),
            Leaving::InMessage => {
                let begun = message(b'Q', b"select work(1, 2, 3)\0");
                self.end.write_all(&begun[..9]).await?;
            }
        }
        Err(Over::Left)
    }

    fn wrong(&self, (tag, body): &Message, awaited: &Message, heard: &Message) {
        let asked = super::fields::first_text(body);
        self.arena.world.report(Fault::Wrong {
            whose: format!("client {}, {} {asked:?}", self.index, char::from(*tag)),
            what: format!("{} for {}", shown(heard), shown(awaited)),
        });
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

/// Whether a message is the awaited one. Of an error its SQLSTATE counts: the names in its text may be the pool's.
fn is_same(awaited: &Message, heard: &Message) -> bool {
    match (awaited.0, heard.0) {
        (b'E', b'E') => Failure::of(&awaited.1).code == Failure::of(&heard.1).code,
        _ => awaited == heard,
    }
}

/// A message in a few words.
fn shown((tag, body): &Message) -> String {
    let text: String = String::from_utf8_lossy(body).chars().take(160).collect();
    format!("{} {text:?}", char::from(*tag))
}
