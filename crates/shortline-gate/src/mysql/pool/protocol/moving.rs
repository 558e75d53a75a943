//! A session that goes to another process at rest, or comes from one ([`crate::handover`]).
//!
//! What is not moved is known anew there: the types of prepared statements are made of their texts, and what the
//! server's connections have is theirs. The client keeps its number for KILL.

use std::sync::Arc;

use super::binary::STATEMENTS_MAX;
use super::{Member, Pooled};
use crate::classify::ClientNames;
use crate::handover::{ArrivalError, Blob, MysqlState, PreparedState};
use crate::mysql::Shared;
use crate::mysql::pool::backend::{Kind, Login};
use crate::mysql::pool::prepared::{Meaning, Mine, Notes};
use crate::mysql::pool::settings::{Schema, Settings};
use crate::mysql::pool::{Pool, Target};
use crate::mysql::statements::Prepared;

impl Pooled {
    /// What another process needs to go on with the session, which rests.
    pub(super) fn pack(&self) -> MysqlState {
        let Member {
            kind,
            login,
            thread_id,
            ..
        } = &self.member;
        let prepared = self.prepared.all().map(|(number, mine)| {
            let meaning = mine.statement.body();
            PreparedState {
                number,
                text: Blob::from(&meaning.text[..]),
                database: meaning.schema.as_deref().map(Blob::from),
                settings: meaning.settings.pack(),
                parameters: mine.parameters,
                types: mine.types.as_deref().map(Blob::from),
                failed: mine.failed.as_deref().map(Blob::from),
            }
        });
        MysqlState {
            user: kind.user.clone(),
            capabilities: kind.capabilities,
            collation: kind.collation,
            secret: login.secret.clone(),
            thread_id: *thread_id,
            database: self.schema.as_deref().map(Blob::from),
            settings: self.settings.pack(),
            flags: self.flags,
            prepared: prepared.collect(),
            last_prepared: self.prepared.last(),
        }
    }

    /// The session that another process had.
    ///
    /// # Errors
    /// [`ArrivalError`]
    pub fn unpack(
        shared: &Arc<Shared>,
        pool: &Arc<Pool>,
        names: ClientNames,
        state: MysqlState,
    ) -> Result<Self, ArrivalError> {
        if state.prepared.len() > STATEMENTS_MAX {
            return Err(ArrivalError::Statements(STATEMENTS_MAX));
        }
        let settings = Settings::unpack(state.settings).ok_or(ArrivalError::Settings)?;
        let schema = unpacked(state.database);
        let target = Arc::new(Target {
            user: state.user.clone(),
            secret: state.secret.clone(),
            current: Default::default(),
        });
        {
            let mut targets = pool.targets.lock();
            if targets.contains_key(&state.thread_id) {
                return Err(ArrivalError::Key);
            }
            targets.insert(state.thread_id, Arc::clone(&target));
        }
        let terms = (shared.config.terms_of)(&names.client());
        let member = Member {
            is_of_transactions: pool.common.lends_for_transactions(&terms),
            pool: Arc::clone(pool),
            kind: Arc::new(Kind {
                user: state.user,
                capabilities: state.capabilities,
                collation: state.collation,
                has_database: schema.is_some(),
            }),
            login: Login {
                secret: state.secret,
                database: None,
            },
            target,
            thread_id: state.thread_id,
        };
        // From here on its end takes the target away.
        let mut session = Self::new(shared, names, member);
        session.settings = settings;
        session.schema = schema;
        session.flags = state.flags;
        for prepared in state.prepared {
            session.know(prepared)?;
        }
        session.prepared.set_last(state.last_prepared);
        Ok(session)
    }

    fn know(&mut self, state: PreparedState) -> Result<(), ArrivalError> {
        let meaning = Meaning {
            text: state.text.0.into(),
            schema: unpacked(state.database),
            settings: Settings::unpack(state.settings).ok_or(ArrivalError::Settings)?,
        };
        let class = self.shared.class_of(&meaning.text, &self.names.client());
        let statement = self.member.pool.statements.enter(meaning, Notes::of);
        let mut mine = Mine::new(statement, state.parameters, None);
        mine.types = state.types.map(|types| types.0.into());
        mine.failed = state.failed.map(|failed| failed.0);
        self.statements
            .prepared(state.number, Prepared::Work(class));
        self.prepared.add(state.number, mine);
        Ok(())
    }
}

fn unpacked(schema: Option<Blob>) -> Schema {
    schema.map(|name| name.0.into())
}
