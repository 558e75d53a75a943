//! Fills a database: with COPY on PostgreSQL, with INSERTs of many rows on MariaDB. Keys and
//! indexes follow.

use std::fmt::Write;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::SinkExt;
use mysql_async::prelude::Queryable;
use tokio::sync::mpsc;

use super::rows::{Fields, each_row};
use super::{Field, Populated, Population};
use crate::schema::{TABLES, Table};
use crate::store::{Connection, Database, Statements, StoreError, quoted};

/// The size of a text sent at once, in bytes: below MariaDB's default `max_allowed_packet` of 16
/// MiB.
const PIECE_BYTES: usize = 1 << 20;
/// The most pieces made ahead of the database.
const PIECES_AHEAD_MAX: usize = 4;

/// Drops the shop's tables if they exist, creates them and fills them.
///
/// # Errors
/// [`StoreError`] if the database cannot be reached or refuses.
pub async fn populate(
    database: &Database,
    population: Population,
) -> Result<Populated, StoreError> {
    let begin = Instant::now();
    let mut connection = Connection::open(database, Statements::Prepared).await?;
    let mut rows = 0;
    for table in TABLES.iter().rev() {
        connection.run(&table.drop()).await?;
    }
    for table in &TABLES {
        connection.run(&table.create(database.kind)).await?;
        let filled = fill(&mut connection, table, population).await?;
        for statement in table.complete(database.kind, filled) {
            // MariaDB's ANALYZE returns a result.
            connection.run(&statement).await?;
        }
        rows += filled;
    }
    let took: Duration = begin.elapsed();
    Ok(Populated { rows, took })
}

async fn fill(
    connection: &mut Connection,
    table: &'static Table,
    population: Population,
) -> Result<u64, StoreError> {
    match connection {
        Connection::Postgres { client, .. } => {
            let copy = format!("COPY {} ({}) FROM STDIN", table.name, table.column_list());
            let sink = client.copy_in(copy.as_str()).await?;
            futures_util::pin_mut!(sink);
            let (mut pieces, made) = pieces(table, population, copy_row, "");
            while let Some(piece) = pieces.recv().await {
                sink.send(Bytes::from(piece)).await?;
            }
            sink.finish().await?;
            Ok(made.await.unwrap_or(0))
        }
        Connection::MariaDb(conn) => {
            let (mut pieces, made) = pieces(table, population, insert_row, ",");
            let insert = format!(
                "INSERT INTO {} ({}) VALUES ",
                table.name,
                table.column_list()
            );
            conn.query_drop("SET autocommit=0, unique_checks=0, foreign_key_checks=0")
                .await?;
            while let Some(piece) = pieces.recv().await {
                conn.query_drop(format!("{insert}{piece}")).await?;
            }
            conn.query_drop("COMMIT").await?;
            conn.query_drop("SET autocommit=1, unique_checks=1, foreign_key_checks=1")
                .await?;
            Ok(made.await.unwrap_or(0))
        }
    }
}

/// Makes the rows of `table` on another thread, several at a time as one text. Returns at the end
/// how many there were.
fn pieces(
    table: &'static Table,
    population: Population,
    write: fn(&mut String, &Fields),
    separator: &'static str,
) -> (mpsc::Receiver<String>, tokio::task::JoinHandle<u64>) {
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD_MAX);
    let made = tokio::task::spawn_blocking(move || {
        let mut rows = 0;
        let mut piece = String::new();
        let complete = each_row(population, table.name, |row| {
            if !piece.is_empty() {
                piece.push_str(separator);
            }
            write(&mut piece, &row);
            rows += 1;
            if piece.len() < PIECE_BYTES {
                return Ok(());
            }
            // An error means that the loader has given up.
            sender.blocking_send(std::mem::take(&mut piece))
        });
        if complete.is_ok() && !piece.is_empty() {
            sender.blocking_send(piece).ok();
        }
        rows
    });
    (receiver, made)
}

/// A line of COPY's text format.
fn copy_row(text: &mut String, row: &Fields) {
    for (index, field) in row.iter().enumerate() {
        if index > 0 {
            text.push('\t');
        }
        text.push_str(&plain(field));
    }
    text.push('\n');
}

/// A row of an INSERT.
fn insert_row(text: &mut String, row: &Fields) {
    text.push('(');
    for (index, field) in row.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        match field {
            Field::Integer(value) => write!(text, "{value}").expect("a string takes any text"),
            _ => text.push_str(&quoted(&plain(field))),
        }
    }
    text.push(')');
}

fn plain(field: &Field) -> String {
    match field {
        Field::Integer(value) => value.to_string(),
        Field::Text(value) => value.clone(),
        Field::Date(date) => date.to_string(),
        Field::Time(date, seconds) => format!(
            "{date} {:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ),
    }
}
