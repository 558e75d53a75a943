//! Where conflicting interactions are kept apart (002, 4.2).
//!
//! - In the database: strict two-phase locking. Each interaction takes read and write locks on all
//!   tables of its statements before the first statement, and holds them to its end. A table that
//!   is both read and written is locked for writing.
//! - In the application: no locking statements. Interactions that change the same rows go through
//!   mutexes of the application, one per table, held from the first change to the commit. Only
//!   stocks and related items can conflict (carts, customers and orders belong to one session), and
//!   both are in one table. About its servlets 002 says only that Java's synchronization serializes
//!   conflicting requests. Readers need no mutex here, as both databases give them a snapshot.

use std::fmt::Write;
use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::interaction::{Access, Interaction, Used};
use crate::store::Kind;

/// Who keeps conflicting interactions apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Locking {
    /// Mutexes of the application.
    #[default]
    Application,
    /// Locks on the tables, in the database.
    Database,
}

/// The application's own mutexes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mutexes {
    items: Arc<Mutex<()>>,
}

impl Mutexes {
    /// Waits until no other interaction changes items.
    pub async fn items(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.items).lock_owned().await
    }
}

/// The statements, as one text, that lock what `interaction` uses. `None` if it uses nothing.
pub(crate) fn lock_statement(kind: Kind, interaction: Interaction) -> Option<String> {
    let used = interaction.tables();
    if used.is_empty() {
        return None;
    }
    Some(match kind {
        Kind::Postgres => postgres_locks(used),
        Kind::MariaDb => mariadb_locks(used),
    })
}

/// One statement per table, in order. `EXCLUSIVE` conflicts with `SHARE`, which makes readers wait.
/// Plain reads of a table in `SHARE` need no more.
fn postgres_locks(used: &[Used]) -> String {
    let mut text = String::new();
    let mut last = "";
    for each in used {
        if each.table == last {
            continue;
        }
        last = each.table;
        let written = used
            .iter()
            .any(|other| other.table == last && other.access == Access::Write);
        let mode = if written { "EXCLUSIVE" } else { "SHARE" };
        write!(text, "LOCK TABLE {last} IN {mode} MODE;").expect("a string takes any text");
    }
    text
}

/// One statement for all; the server orders them itself.
fn mariadb_locks(used: &[Used]) -> String {
    let list: Vec<String> = used
        .iter()
        .map(
            |Used {
                 table,
                 alias,
                 access,
             }| {
                let mode = match access {
                    Access::Read => "READ",
                    Access::Write => "WRITE",
                };
                if alias == table {
                    format!("{table} {mode}")
                } else {
                    format!("{table} AS {alias} {mode}")
                }
            },
        )
        .collect();
    format!("LOCK TABLES {}", list.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_table_that_is_written_is_locked_once_and_for_writing() {
        let text = lock_statement(Kind::Postgres, Interaction::AdminConfirm).unwrap();
        assert_eq!(
            text,
            "LOCK TABLE author IN SHARE MODE;LOCK TABLE item IN EXCLUSIVE MODE;\
             LOCK TABLE order_line IN SHARE MODE;LOCK TABLE orders IN SHARE MODE;"
        );
    }

    #[test]
    fn mariadb_wants_a_lock_for_each_alias() {
        let text = lock_statement(Kind::MariaDb, Interaction::SearchRequest).unwrap();
        assert_eq!(text, "LOCK TABLES item READ, item AS promoted READ");
    }

    #[test]
    fn what_asks_nothing_locks_nothing() {
        for kind in [Kind::Postgres, Kind::MariaDb] {
            assert_eq!(
                lock_statement(kind, Interaction::CustomerRegistration),
                None
            );
        }
    }
}
