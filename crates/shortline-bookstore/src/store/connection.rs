//! One connection to either database, with its prepared statements, if it has any.

use std::collections::HashMap;

use mysql_async::prelude::Queryable;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{NoTls, Statement};

use super::{Database, Kind, Row, Statements, StoreError, Value};

/// The most prepared statements. The application has fewer, even with one more for every route that
/// uses each.
const PREPARED_MAX: usize = 256;

/// A connection.
pub(crate) enum Connection {
    Postgres {
        client: tokio_postgres::Client,
        /// By their text. `None` if none is prepared.
        prepared: Option<HashMap<String, Statement>>,
    },
    MariaDb(Box<mysql_async::Conn>),
}

impl Connection {
    /// Connects.
    pub async fn open(database: &Database, statements: Statements) -> Result<Self, StoreError> {
        match database.kind {
            Kind::Postgres => open_postgres(database, statements).await,
            Kind::MariaDb => open_mariadb(database).await,
        }
    }

    /// The kind of its database.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Postgres { .. } => Kind::Postgres,
            Self::MariaDb(_) => Kind::MariaDb,
        }
    }

    /// Whether the other side is known to be gone.
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Postgres { client, .. } => client.is_closed(),
            // The driver learns it only from the next statement.
            Self::MariaDb(_) => false,
        }
    }

    /// Runs statements without values and results, separated by `;`.
    pub async fn run(&mut self, statements: &str) -> Result<(), StoreError> {
        match self {
            Self::Postgres { client, .. } => client.batch_execute(statements).await?,
            Self::MariaDb(conn) => conn.query_drop(statements).await?,
        }
        Ok(())
    }

    /// All rows of a prepared statement's result.
    pub async fn rows(&mut self, text: &str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        match self {
            Self::Postgres { client, prepared } => {
                let rows = match prepared {
                    Some(prepared) => {
                        let statement = prepare(client, prepared, text).await?;
                        client.query(&statement, &references(values)).await?
                    }
                    None => client.query_typed(text, &typed(values)).await?,
                };
                rows.iter().map(postgres_row).collect()
            }
            Self::MariaDb(conn) => {
                let rows: Vec<mysql_async::Row> = conn.exec(text, owned(values)).await?;
                rows.into_iter().map(Row::try_from).collect()
            }
        }
    }

    /// Runs a prepared statement that changes rows. Returns how many.
    pub async fn change(&mut self, text: &str, values: &[Value]) -> Result<u64, StoreError> {
        match self {
            Self::Postgres { client, prepared } => {
                let Some(prepared) = prepared else {
                    return Ok(client.execute_typed(text, &typed(values)).await?);
                };
                let statement = prepare(client, prepared, text).await?;
                Ok(client.execute(&statement, &references(values)).await?)
            }
            Self::MariaDb(conn) => {
                conn.exec_drop(text, owned(values)).await?;
                Ok(conn.affected_rows())
            }
        }
    }

    /// The number that the last insert made, if the driver has it.
    pub fn inserted(&self) -> Option<i64> {
        match self {
            Self::Postgres { .. } => None,
            Self::MariaDb(conn) => conn.last_insert_id().and_then(|id| id.try_into().ok()),
        }
    }
}

async fn open_postgres(
    database: &Database,
    statements: Statements,
) -> Result<Connection, StoreError> {
    let mut config = tokio_postgres::Config::new();
    config
        .host(database.address.ip().to_string())
        .port(database.address.port())
        .user(&database.user)
        .dbname(&database.name)
        .application_name("bookstore");
    if let Some(password) = &database.password {
        config.password(password);
    }
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(async move {
        // The client sees every error too, and its user reports it.
        connection.await.ok();
    });
    Ok(Connection::Postgres {
        client,
        prepared: (statements == Statements::Prepared).then(HashMap::new),
    })
}

async fn open_mariadb(database: &Database) -> Result<Connection, StoreError> {
    let options = mysql_async::OptsBuilder::default()
        .ip_or_hostname(database.address.ip().to_string())
        .tcp_port(database.address.port())
        .user(Some(&database.user))
        .pass(database.password.as_ref())
        .db_name(Some(&database.name))
        // Otherwise the driver would switch from the given address to the server's own socket.
        .prefer_socket(false)
        .tcp_nodelay(true)
        // A row that is set to the values it already has counts as changed, as on PostgreSQL.
        .client_found_rows(true)
        .stmt_cache_size(PREPARED_MAX);
    let conn = mysql_async::Conn::new(options).await?;
    Ok(Connection::MariaDb(Box::new(conn)))
}

async fn prepare(
    client: &tokio_postgres::Client,
    prepared: &mut HashMap<String, Statement>,
    text: &str,
) -> Result<Statement, StoreError> {
    if let Some(statement) = prepared.get(text) {
        return Ok(statement.clone());
    }
    if prepared.len() >= PREPARED_MAX {
        prepared.clear();
    }
    let statement = client.prepare(text).await?;
    prepared.insert(text.to_owned(), statement.clone());
    Ok(statement)
}

fn references(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as _).collect()
}

/// Values with the types that a statement declares which is not prepared before.
fn typed(values: &[Value]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    let typed = values
        .iter()
        .map(|value| (value as _, value.postgres_type()));
    typed.collect()
}

fn owned(values: &[Value]) -> mysql_async::Params {
    if values.is_empty() {
        return mysql_async::Params::Empty;
    }
    let values = values.iter().cloned().map(mysql_async::Value::from);
    mysql_async::Params::Positional(values.collect())
}

fn postgres_row(row: &tokio_postgres::Row) -> Result<Row, StoreError> {
    let values = (0..row.len()).map(|column| row.try_get(column));
    Ok(Row(values.collect::<Result<_, _>>()?))
}
