//! A client of the gate: what it does, and what it must see.

use std::io;
use std::sync::Arc;

use super::answer::Answer;
use super::arena::Arena;
use super::scenario::{ClientPlan, Statement, Unit};
use super::{mysql, postgres};
use crate::content::Checked;
use crate::network::End;
use crate::verdict::Fault;

/// Why a client's life ends.
enum Over {
    /// The connection is over.
    Ended(io::Error),
    /// It leaves by itself.
    Left,
}

impl From<io::Error> for Over {
    fn from(error: io::Error) -> Self {
        Self::Ended(error)
    }
}

/// A session, in either protocol.
enum Session {
    Postgres(postgres::Client),
    Mysql(mysql::Client),
}

/// One client's life.
pub async fn live(arena: Arc<Arena>, index: usize, plan: ClientPlan) {
    arena.world.sleep(plan.begins_ns).await;
    let end = arena.connect(index, plan.path).await;
    let session = match Session::open(&arena, end).await {
        Ok(Ok(session)) => session,
        Ok(Err(answer)) => return arena.refused(index, &format!("{answer:?}")),
        Err(error) => return arena.refused(index, &error.to_string()),
    };
    let mut client = Client {
        arena: &arena,
        index,
        plan: &plan,
        session,
        is_open: false,
        has_failed: false,
    };
    for unit in &plan.units {
        match client.does(unit).await {
            Ok(()) => {}
            Err(Over::Ended(error)) => {
                return arena.cut_off(index, unit, &error.to_string());
            }
            Err(Over::Left) => return,
        }
    }
}

struct Client<'a> {
    arena: &'a Arena,
    index: usize,
    plan: &'a ClientPlan,
    session: Session,
    /// A transaction is open.
    is_open: bool,
    /// The transaction has failed. PostgreSQL requires its end.
    has_failed: bool,
}

/// What else may answer a statement besides its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
struct May {
    /// Its cancellation was asked for.
    be_cancelled: bool,
    /// It is the first of its transaction, and waits at the gate.
    wait: bool,
}

impl Client<'_> {
    async fn does(&mut self, unit: &Unit) -> Result<(), Over> {
        let may = May {
            be_cancelled: false,
            wait: true,
        };
        match unit {
            Unit::Pause(pause_ns) => self.arena.world.sleep(*pause_ns).await,
            Unit::Statement(statement) => {
                self.send(statement).await?;
                self.hear(statement, may).await?;
            }
            Unit::Transaction(statements, is_undone) => {
                self.control("begin", true).await?;
                for (at, (pause_ns, statement)) in statements.iter().enumerate() {
                    self.arena.world.sleep(*pause_ns).await;
                    self.send(statement).await?;
                    let may = May {
                        // A BEGIN alone asks for no admission.
                        wait: at == 0 || self.has_failed,
                        ..may
                    };
                    self.hear(statement, may).await?;
                }
                let end = if *is_undone { "rollback" } else { "commit" };
                self.control(end, false).await?;
            }
            Unit::Pipeline(statements) => self.pipeline(statements, may).await?,
            Unit::Cancelled(statement, after_ns) => self.cancel(statement, *after_ns).await?,
            Unit::Leaves(statement, after_ns) => {
                self.send(statement).await?;
                self.arena.world.sleep(*after_ns).await;
                self.arena.leaves(self.index);
                return Err(Over::Left);
            }
            Unit::Babble => {
                self.arena.leaves(self.index);
                self.session.babble().await?;
                // Until it is refused, or the connection ends.
                while self.session.answer().await.is_ok() {}
                return Err(Over::Left);
            }
        }
        Ok(())
    }

    async fn send(&mut self, statement: &Statement) -> io::Result<()> {
        self.arena.asks(self.index, statement);
        self.session
            .send(&statement.text(), statement.extended)
            .await
    }

    async fn pipeline(&mut self, statements: &[Statement], may: May) -> Result<(), Over> {
        if matches!(self.session, Session::Postgres(_)) {
            for statement in statements {
                self.send(statement).await?;
            }
            for statement in statements {
                self.hear(statement, may).await?;
            }
            return Ok(());
        }
        for statement in statements {
            self.send(statement).await?;
            self.hear(statement, may).await?;
        }
        Ok(())
    }

    /// Asks to cancel its statement, and goes on only when that is over.
    async fn cancel(&mut self, statement: &Statement, after_ns: u64) -> Result<(), Over> {
        self.send(statement).await?;
        let key = self.session.key();
        let (arena, index, path) = (self.arena, self.index, self.plan.path);
        let is_mysql = matches!(self.session, Session::Mysql(_));
        let cancelling = async {
            arena.world.sleep(after_ns).await;
            let end = arena.connect(index, path).await;
            arena.world.note(format_args!("client {index} cancels"));
            // Whatever the result, it is over.
            let _ = match is_mysql {
                true => mysql::Client::cancel(end, &key).await,
                false => postgres::Client::cancel(end, &key).await,
            };
        };
        let may = May {
            be_cancelled: true,
            wait: true,
        };
        let (heard, ()) = tokio::join!(biased; self.hear(statement, may), cancelling);
        heard
    }

    /// Begins or ends a transaction. Nothing may prevent that.
    async fn control(&mut self, text: &str, begins: bool) -> Result<(), Over> {
        self.session.send(text, false).await?;
        let (answer, is_open) = self.session.answer().await?;
        self.is_open = begins;
        self.has_failed = false;
        if matches!(&answer, Answer::Error { code, .. } if self.arena.is_last_word(code)) {
            return Ok(());
        }
        if answer != Answer::Done(Vec::new()) || is_open != begins {
            self.wrong(text, format!("{answer:?}, open: {is_open}"));
        }
        Ok(())
    }

    async fn hear(&mut self, statement: &Statement, may: May) -> Result<(), Over> {
        let (answer, is_open) = self.session.answer().await?;
        self.arena.heard(self.index, statement, &answer);
        let is_postgres = matches!(self.session, Session::Postgres(_));
        match answer {
            Answer::Done(rows) => {
                let mut checked = Checked::new(statement.number, 0, statement.bytes);
                let found = checked.take(&rows);
                let missing = checked.missing();
                if statement.fails || self.has_failed && is_postgres {
                    self.wrong(&statement.text(), "rows for an error".to_owned());
                } else if let Err(what) = found {
                    self.wrong(&statement.text(), what);
                } else if missing > 0 {
                    self.wrong(&statement.text(), format!("{missing} bytes less"));
                }
                if is_open != self.is_open {
                    self.wrong(&statement.text(), format!("open: {is_open}"));
                }
            }
            Answer::Error { code, text } => {
                let by_database = statement.fails && code == "22012";
                let follows = self.has_failed && code == "25P02";
                let cancelled = may.be_cancelled && matches!(&*code, "57014" | "70100");
                let by_gate = may.wait && self.arena.gate_may_refuse(&code, &text)
                    || self.arena.is_last_word(&code);
                if !(by_database || follows || cancelled || by_gate) {
                    self.wrong(&statement.text(), format!("{code}: {text}"));
                }
                self.has_failed |= self.is_open;
            }
        }
        Ok(())
    }

    fn wrong(&self, text: &str, what: String) {
        self.arena.world.report(Fault::Wrong {
            whose: format!("client {}, {text}", self.index),
            what,
        });
    }
}

impl Session {
    async fn open(arena: &Arena, end: End) -> io::Result<Result<Self, Answer>> {
        Ok(match arena.is_mysql() {
            true => mysql::Client::open(end).await?.map(Self::Mysql),
            false => postgres::Client::open(end).await?.map(Self::Postgres),
        })
    }

    fn key(&self) -> Vec<u8> {
        match self {
            Self::Postgres(client) => client.key(),
            Self::Mysql(client) => client.key(),
        }
    }

    async fn send(&mut self, text: &str, extended: bool) -> io::Result<()> {
        match self {
            Self::Postgres(client) => client.send(text, extended).await,
            Self::Mysql(client) => client.send(text).await,
        }
    }

    async fn babble(&mut self) -> io::Result<()> {
        match self {
            Self::Postgres(client) => client.babble().await,
            Self::Mysql(client) => client.babble().await,
        }
    }

    async fn answer(&mut self) -> io::Result<(Answer, bool)> {
        match self {
            Self::Postgres(client) => client.answer().await,
            Self::Mysql(client) => client.answer().await,
        }
    }
}
