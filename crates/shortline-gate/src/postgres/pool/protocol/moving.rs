//! A session that goes to another process at rest, or comes from one ([`crate::handover`]).
//!
//! What is not moved is known anew there: the types of prepared statements are made of their texts, and what the
//! backend's connections have is theirs.

use std::sync::Arc;

use super::reads::READ_ONLY;
use super::statements::NAMED_MAX;
use super::{Member, Pooled};
use crate::classify::ClientNames;
use crate::handover::{ArrivalError, Blob, PostgresState};
use crate::postgres::Shared;
use crate::postgres::pool::login::Kind;
use crate::postgres::pool::prepared::Notes;
use crate::postgres::pool::settings::Settings;
use crate::postgres::pool::{Pool, Target};

impl Pooled {
    /// What another process needs to go on with the session, which rests.
    pub(super) fn pack(&self) -> PostgresState {
        let Member {
            kind, login, key, ..
        } = &self.member;
        let of_statement = |body: &[u8]| Blob::from(body);
        let named = self.prepared.all_named();
        let startup = kind.startup.iter();
        PostgresState {
            user: kind.user.clone(),
            database: kind.database.clone(),
            startup: startup
                .map(|(name, value)| (Blob(name.clone()), Blob(value.clone())))
                .collect(),
            login: login.clone(),
            key: Blob(key.to_vec()),
            settings: packed(&self.settings),
            began_with: packed(&self.began_with),
            unnamed: self
                .prepared
                .get(b"")
                .map(|statement| of_statement(statement.body())),
            named: named
                .map(|(name, statement)| (name.into(), of_statement(statement.body())))
                .collect(),
        }
    }

    /// The session that another process had.
    ///
    /// # Errors
    /// [`ArrivalError`]
    pub(in crate::postgres) fn unpack(
        shared: &Arc<Shared>,
        pool: &Arc<Pool>,
        names: Arc<ClientNames>,
        state: PostgresState,
    ) -> Result<Self, ArrivalError> {
        if state.named.len() > NAMED_MAX {
            return Err(ArrivalError::Statements(NAMED_MAX));
        }
        let kind = Kind {
            user: state.user,
            database: state.database,
            startup: state
                .startup
                .into_iter()
                .map(|(name, value)| (name.0, value.0))
                .collect(),
        };
        let key: Box<[u8]> = state.key.0.into();
        let target = Arc::<Target>::default();
        {
            let mut targets = pool.targets.lock();
            if targets.contains_key(&key) {
                return Err(ArrivalError::Key);
            }
            targets.insert(key.clone(), Arc::clone(&target));
        }
        let began_with = unpacked(&state.began_with);
        let terms = (shared.config.relay.terms_of)(&names.client());
        let member = Member {
            is_of_transactions: pool.common.lends_for_transactions(&terms),
            pool: Arc::clone(pool),
            kind: Arc::new(kind),
            login: state.login,
            target,
            key,
            begins_read_only: began_with
                .value(READ_ONLY)
                .is_some_and(|value| value == b"on"),
        };
        let mut session = Self::new(shared, names, member, began_with);
        session.settings = unpacked(&state.settings);
        let unnamed = state.unnamed.map(|body| (Blob::default(), body));
        for (name, body) in unnamed.into_iter().chain(state.named) {
            let statement = session.member.pool.statements.enter(&body.0[..], Notes::of);
            session.know(&name.0, statement);
        }
        Ok(session)
    }
}

fn packed(settings: &Settings) -> Vec<(Blob, Blob)> {
    let all = settings.iter();
    all.map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn unpacked(settings: &[(Blob, Blob)]) -> Settings {
    let mut known = Settings::default();
    for (name, value) in settings {
        known.report(&name.0, &value.0);
    }
    known
}
