//! Looks up users in the database that are not in the file, like PgBouncer's `auth_query`. A user of the file
//! queries the secret of another user.

use std::sync::Arc;

use super::Pool;
use super::ask::{AskError, ask};
use super::backend::AcquireError;
use super::login::Kind;
use super::secrets::Stored;
use super::settings::{columns, push_text};
use crate::pool::users::Stored as _;
use crate::postgres::reply::message;

/// The settings of the lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The user of the file that runs the query.
    pub user: String,
    /// The query, with `$1` for the name. Its row has the name and the secret.
    pub query: String,
}

/// Why a lookup failed.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The gate cannot log in as the user that runs the query.
    #[error("{0}, who looks users up, has no line in --pool-users with a password or an MD5 hash")]
    NoLogin(String),
    /// There is no connection for the query.
    #[error("looking a user up: {0}")]
    Acquire(#[from] AcquireError),
    /// The query failed.
    #[error("looking a user up: {0}")]
    Ask(#[from] AskError),
    /// The row or its secret cannot be read.
    #[error("looking a user up: expected a row of name and secret")]
    Row,
}

impl Lookup {
    /// The secret of a user in `database`. None if the user does not exist.
    ///
    /// # Errors
    /// [`LookupError`]
    pub(super) async fn find(
        &self,
        pool: &Arc<Pool>,
        database: &str,
        name: &str,
    ) -> Result<Option<Stored>, LookupError> {
        let users = pool.common.users();
        let own = users.get(&self.user).and_then(Stored::login);
        let login = own.ok_or_else(|| LookupError::NoLogin(self.user.clone()))?;
        let kind = Arc::new(Kind {
            user: self.user.clone(),
            database: database.to_owned(),
            startup: Default::default(),
        });
        let nodes = Arc::clone(&pool.common.nodes);
        let (mut held, mut stream) = nodes.acquire_any(kind, login).await?;
        let query = message(b'Q', &[&self.for_name(name), b"\0"]);
        let answer = ask(&mut stream, &query).await;
        held.known.prepared.unnamed = None;
        if !matches!(answer, Err(AskError::Left | AskError::Frame(_))) {
            held.give_back(stream);
        }
        let rows = answer?.rows;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let (_, secret) = columns(row).ok_or(LookupError::Row)?;
        let secret = String::from_utf8_lossy(secret).into_owned();
        Stored::of(secret).map(Some).map_err(|_| LookupError::Row)
    }

    fn for_name(&self, name: &str) -> Vec<u8> {
        let mut text = Vec::new();
        push_text(&mut text, name.as_bytes());
        let parts: Vec<&[u8]> = self.query.split("$1").map(str::as_bytes).collect();
        parts.join(&text[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_text_and_nothing_else() {
        let lookup = Lookup {
            user: "a".to_owned(),
            query: "select b, c from d where b = $1".to_owned(),
        };
        assert_eq!(
            lookup.for_name(r"x' or ''='\"),
            br"select b, c from d where b = E'x'' or ''''=''\\'"
        );
    }
}
