//! Nobody meets what another session has left: random sessions through a pool of few connections, each statement's
//! answer compared with that of a connection of one's own (in another database, where the same locks and
//! channels are others).

use rand::Rng;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use shortline_gate::pool::PoolMode;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::cluster::Cluster;
use super::pool::USERS;
use super::relay::{Relay, runtime, soon};

const SESSIONS: usize = 6;
/// More than sessions, so that none waits for another that this test has not let go on.
const CONNECTIONS: usize = 8;
const STEPS: usize = 80;
const SEEDS: u64 = 12;

/// What a session may say. `{n}` is a small number.
const STATEMENTS: &[&str] = &[
    "select {n}",
    "select 1/0",
    "begin",
    "begin",
    "begin isolation level serializable",
    "start transaction",
    "commit",
    "commit",
    "rollback",
    "end",
    "savepoint a",
    "rollback to a",
    "release a",
    "set timezone = 'Etc/GMT{n}'",
    "set local timezone = 'Etc/GMT-{n}'",
    "reset timezone",
    "set datestyle = 'German'",
    "set session characteristics as transaction isolation level repeatable read",
    "set search_path = pg_catalog, \"it's{n}\"",
    "set statement_timeout = '{n}min'",
    "set my.own = 'a\\b''{n}'",
    "select set_config('my.own', 'c{n}', false)",
    "select set_config('my.own', 'd{n}', true)",
    "set \"my\".\"own\" = 'e{n}'",
    "set my . own = 'f{n}'",
    "set my\n.\"own\" = 'g{n}'",
    "set my/**/.own = 'h{n}'",
    "set u&\"\\006dy\".own = 'i{n}'",
    "/* ; */ set my.own = 'j{n}'",
    "-- ;\nset my.own = 'k{n}'",
    "set local my.own = 'l{n}'",
    "set local.own = 'm{n}'",
    "select \"set_config\"('my.own', 'n{n}', false)",
    "select set_config /* why */ ('my.own', 'o{n}', false)",
    "select \"pg_catalog\".\"set_config\"('my.' || 'own', 'p{n}', false)",
    "select set_config(e'my\\x2eown', 'q{n}', false)",
    "with a as (select set_config('my.own', 'r{n}', false)) select count(*) from a where true",
    "select query_to_xml('select set_config(''my.own'', ''s{n}'', false)', true, true, '')",
    "do $$ begin execute 'set my' || '.own = \"t{n}\"'; end $$",
    "prepare sets as select set_config('my.own', 'u{n}', false)",
    "execute sets",
    "deallocate sets",
    "update pg_settings set setting = '{n}min' where name = 'statement_timeout'",
    "set search_path = pg_temp",
    "create table own{session} (a int)",
    "PREPARED select set_config('my.own', 'v{n}', false)",
    "PREPARED set \"my\".own = 'w{n}'",
    "begin; set my.own = 'in one{n}'; commit",
    "set my.own = 'x{n}'; select 1/0",
    "reset statement_timeout",
    "reset my.own",
    "discard all",
    "set application_name = 'app{n}'",
    "set client_encoding = 'LATIN1'",
    "set standard_conforming_strings = off",
    "prepare own{n} as select {n} + 100",
    "execute own{n}",
    "deallocate own{n}",
    "deallocate all",
    "create temp table own (a int)",
    "create temp table own (a int) on commit drop",
    "insert into own values ({n})",
    "select sum(a) from own",
    "drop table own",
    "listen channel{n}",
    "unlisten *",
    "declare own cursor with hold for select * from generate_series(1, 9)",
    "declare own cursor for select 1",
    "fetch {n} from own",
    "close own",
    "select pg_try_advisory_lock({session}, {n})",
    "select pg_try_advisory_xact_lock({session}, {n})",
    "select pg_advisory_unlock({session}, {n})",
    "set role scram",
    "reset role",
    "do $$ begin perform set_config('my.own', 'from do', false); end $$",
    "explain (costs off) select 1",
];

/// What shows what a session has.
const QUESTIONS: &[&str] = &[
    "show timezone",
    "show datestyle",
    "show search_path",
    "show statement_timeout",
    "show application_name",
    "show client_encoding",
    "show standard_conforming_strings",
    "show default_transaction_isolation",
    "show transaction_isolation",
    // Of one's own connection that never had it, it is none, and of another's that once had it, empty.
    "select coalesce(current_setting('my.own', true), '')",
    "select coalesce(current_setting('local.own', true), '')",
    "select current_user, session_user",
    "select * from pg_listening_channels()",
    "select name from pg_prepared_statements where from_sql order by name",
    "select name from pg_cursors where is_holdable order by name",
    "select relname from pg_class where relnamespace = pg_my_temp_schema() and relkind = 'r'",
    "select objid from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() order by objid",
];

/// All that a client is told.
async fn answer(client: &Client, statement: &str) -> Vec<String> {
    if let Some(statement) = statement.strip_prefix("PREPARED ") {
        return match soon(client.execute(statement, &[])).await {
            Ok(rows) => vec![format!("{rows} rows")],
            Err(error) => vec![told_of(statement, &error)],
        };
    }
    let answers = match soon(client.simple_query(statement)).await {
        Ok(answers) => answers,
        Err(error) => return vec![told_of(statement, &error)],
    };
    let told = |answer: &SimpleQueryMessage| match answer {
        SimpleQueryMessage::Row(row) => {
            let columns = (0..row.len()).map(|column| row.get(column).map(str::to_owned));
            format!("{:?}", columns.collect::<Vec<_>>())
        }
        SimpleQueryMessage::CommandComplete(rows) => format!("{rows} rows"),
        _ => String::new(),
    };
    answers.iter().map(told).collect()
}

fn told_of(statement: &str, error: &tokio_postgres::Error) -> String {
    let error = error
        .as_db_error()
        .unwrap_or_else(|| panic!("{statement}: {error}"));
    format!("{}: {}", error.code().code(), error.message())
}

#[test]
fn nobody_meets_what_another_session_left() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    for name in ["pooled", "own"] {
        let made = cluster.psql(
            cluster.port,
            &[],
            &["-c", &format!("create database {name}")],
        );
        assert!(made.status.success(), "{made:?}");
    }
    let relay = Relay::pooled(cluster.port, PoolMode::Transaction, CONNECTIONS, USERS);
    for seed in 0..SEEDS {
        runtime().block_on(play(cluster, &relay, seed));
    }
}

async fn play(cluster: &Cluster, relay: &Relay, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut sessions = Vec::new();
    for number in 0..SESSIONS {
        let name = format!("user=postgres password=any application_name=session{number}");
        let pooled = to(relay.port, &name, "pooled").await;
        let own = to(cluster.port, &name, "own").await;
        sessions.push((pooled, own));
    }
    for step in 0..STEPS {
        let session = random.random_range(0..SESSIONS);
        let (pooled, own) = &sessions[session];
        let list = if random.random_bool(0.4) {
            QUESTIONS
        } else {
            STATEMENTS
        };
        let statement = list.choose(&mut random).unwrap();
        let statement = statement
            .replace("{n}", &random.random_range(1..4).to_string())
            .replace("{session}", &(seed * 10 + session as u64).to_string());
        let (pooled, own) = (
            answer(pooled, &statement).await,
            answer(own, &statement).await,
        );
        assert_eq!(
            pooled, own,
            "seed {seed}, step {step}, session {session}: {statement}"
        );
    }
}

async fn to(port: u16, parameters: &str, database: &str) -> Client {
    // The last of two values counts.
    super::relay::connect(port, &format!("{parameters} dbname={database}"))
        .await
        .unwrap()
}
