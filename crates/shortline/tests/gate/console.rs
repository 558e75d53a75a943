//! What an operator says to a running gate, at the admin database and by HTTP, and what comes of it.

use std::net::SocketAddr;
use std::process::{Child, Output, Stdio};

use serde_json::Value;

use crate::client::{exchange, get, parse};
use crate::gate;
use crate::postgres::Postgres;
use crate::process::{Server, wait_for};
use crate::relayed::status;

/// A gate with a pool in front of a database.
struct Pooled {
    postgres: Postgres,
    server: Server,
    _folder: tempfile::TempDir,
}

impl Pooled {
    fn start(flags: &[&str]) -> Option<Self> {
        let postgres = Postgres::start()?;
        let folder = tempfile::tempdir().unwrap();
        let users = folder.path().join("users");
        std::fs::write(&users, "\"tester\" \"geheim\"\n\"watcher\" \"geheim\"\n").unwrap();
        let users = users.to_str().unwrap();
        let pool = [
            "--pool",
            "transaction",
            "--pool-size",
            "4",
            "--pool-users",
            users,
        ];
        let server = gate::gate("postgres", &postgres.address(), &[&pool, flags].concat());
        Some(Self {
            postgres,
            server,
            _folder: folder,
        })
    }

    fn psql(&self, database: &str, commands: &[&str]) -> std::process::Command {
        let port = self.server.address().port();
        let mut psql = self.postgres.psql_command(port, database, commands);
        psql.env("PGPASSWORD", "geheim");
        psql
    }

    fn say(&self, command: &str) -> Output {
        self.psql("shortline", &[command]).output().unwrap()
    }

    fn begin(&self, statement: &str) -> Child {
        let mut psql = self.psql("postgres", &[statement]);
        psql.stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn admin(&self) -> SocketAddr {
        self.server.admin.unwrap()
    }

    /// The rows of a table, by `POST /command`.
    fn show(&self, what: &str) -> Vec<Value> {
        let shown = post(self.admin(), &format!("SHOW {what}"), "");
        assert_eq!(shown.0, 200, "{}", shown.1);
        serde_json::from_str::<Vec<Value>>(&shown.1).unwrap()
    }

    fn busy(&self) -> Vec<Value> {
        status(self.admin())["busy_clients"]
            .as_array()
            .unwrap()
            .clone()
    }
}

/// Posts a command; the status and what was said.
fn post(admin: SocketAddr, command: &str, fields: &str) -> (u16, String) {
    let length = command.len();
    let request = format!(
        "POST /command HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n{command}"
    );
    let answer = parse(&exchange(admin, request));
    (answer.status, String::from_utf8(answer.body).unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_pause_waits_for_what_runs_and_nobody_fails() {
    let Some(pooled) = Pooled::start(&["--wait-max", "1s"]) else {
        return;
    };
    let running = pooled.begin("select pg_sleep(2)");
    wait_for("it to run", || (pooled.busy().len() == 1).then_some(()));
    assert_eq!(get(pooled.admin(), "/ready").status, 200);
    let mut pause = pooled.psql("shortline", &["PAUSE"]).spawn().unwrap();
    wait_for("the pause", || {
        (get(pooled.admin(), "/ready").status == 503).then_some(())
    });
    assert_eq!(status(pooled.admin())["paused"]["all"], true);
    // One in the queue, one that is not let in yet: it waits for longer than anybody may wait in the queue.
    let waiting = pooled.begin("select 1");
    assert!(pause.wait().unwrap().success());
    assert!(running.wait_with_output().unwrap().status.success());
    assert!(pooled.show("SERVERS").is_empty());
    assert!(!pooled.say("PAUSE").status.success());
    assert_eq!(status(pooled.admin())["admission"]["running"], 0);
    assert!(pooled.say("RESUME").status.success());
    let waited = waiting.wait_with_output().unwrap();
    assert!(waited.status.success(), "{}", text(&waited.stderr));
    assert_eq!(get(pooled.admin(), "/ready").status, 200);
}

#[test]
fn a_database_is_paused_killed_and_disabled_alone() {
    let Some(pooled) = Pooled::start(&[]) else {
        return;
    };
    assert!(pooled.say("PAUSE postgres").status.success());
    let waiting = pooled.begin("select 1");
    let other = pooled.psql("template1", &["select 1"]).output().unwrap();
    assert!(other.status.success(), "{}", text(&other.stderr));
    let paused = |name: &str| {
        let databases = pooled.show("DATABASES");
        let found = databases.iter().find(|each| each["name"] == name).cloned();
        found.map(|each| each["paused"].as_str().unwrap().to_owned())
    };
    assert_eq!(paused("postgres").as_deref(), Some("1"));
    assert_eq!(post(pooled.admin(), "RESUME postgres", "").0, 200);
    assert!(waiting.wait_with_output().unwrap().status.success());
    let long = pooled.begin("select pg_sleep(600)");
    wait_for("it to run", || (pooled.busy().len() == 1).then_some(()));
    assert!(pooled.say("KILL postgres").status.success());
    let killed = long.wait_with_output().unwrap();
    assert!(!killed.status.success());
    assert!(
        text(&killed.stderr).contains("administrator command"),
        "{}",
        text(&killed.stderr)
    );
    assert!(pooled.say("RESUME postgres").status.success());
    assert!(pooled.say("DISABLE postgres").status.success());
    let refused = pooled.psql("postgres", &["select 1"]).output().unwrap();
    assert!(
        text(&refused.stderr).contains("is disabled"),
        "{}",
        text(&refused.stderr)
    );
    assert!(pooled.say("ENABLE postgres").status.success());
    assert!(
        pooled
            .psql("postgres", &["select 1"])
            .output()
            .unwrap()
            .status
            .success()
    );
}

#[test]
fn connections_are_made_anew_and_a_client_is_ended_by_its_id() {
    let Some(pooled) = Pooled::start(&[]) else {
        return;
    };
    let pid = || {
        let asked = pooled
            .psql("postgres", &["select pg_backend_pid()"])
            .output()
            .unwrap();
        text(&asked.stdout)
    };
    let before: Vec<String> = (0..3).map(|_| pid()).collect();
    let long = pooled.begin("select pg_sleep(600)");
    let busy = wait_for("it to run", || pooled.busy().pop());
    assert!(pooled.say("RECONNECT").status.success());
    assert!(!before.contains(&pid()));
    let to_close = |rows: Vec<Value>| rows.iter().filter(|row| row["close_needed"] == "1").count();
    assert_eq!(to_close(pooled.show("SERVERS")), 1);
    let clients = pooled.show("CLIENTS");
    let client = clients.iter().find(|row| row["state"] == "active").unwrap();
    assert_eq!(client["id"], busy["id"].to_string());
    assert_eq!(
        (&client["user"], &client["database"]),
        (&"tester".into(), &"postgres".into())
    );
    assert_eq!(client["application_name"], "psql");
    let id = busy["id"].to_string();
    let ended = post(pooled.admin(), &format!("KILL_CLIENT {id}"), "");
    assert_eq!(ended, (200, "KILL_CLIENT\n".to_owned()));
    assert!(!long.wait_with_output().unwrap().status.success());
    assert!(pooled.say("WAIT_CLOSE").status.success());
    assert_eq!(to_close(pooled.show("SERVERS")), 0);
    assert_eq!(
        post(pooled.admin(), &format!("KILL_CLIENT {id}"), "").0,
        400
    );
}

#[test]
fn tables_have_the_columns_that_pgbouncer_has() {
    let Some(pooled) = Pooled::start(&[]) else {
        return;
    };
    let mut open = pooled.begin("select pg_sleep(600)");
    wait_for("it to run", || (pooled.busy().len() == 1).then_some(()));
    for (table, columns) in [
        (
            "CLIENTS",
            "type user database state addr port connect_time wait wait_us link tls id",
        ),
        (
            "SERVERS",
            "type user database state connect_time close_needed link remote_pid id",
        ),
        (
            "POOLS",
            "database user cl_active cl_waiting sv_active sv_idle maxwait maxwait_us pool_mode",
        ),
        (
            "DATABASES",
            "name host port database pool_size pool_mode current_connections paused disabled",
        ),
        ("LISTS", "list items"),
        (
            "USERS",
            "name current_connections current_client_connections",
        ),
        (
            "STATS",
            "database total_xact_count total_wait_time avg_wait_time total_server_assignment_count",
        ),
        ("CONFIG", "key value default changeable"),
        ("STATE", "key value"),
        ("ACTIVE_SOCKETS", "type user database state ptr link"),
        ("MEM", "resident_kib peak_kib"),
    ] {
        let rows = pooled.show(table);
        assert!(!rows.is_empty(), "{table}");
        for column in columns.split(' ') {
            assert!(
                rows[0].get(column).is_some(),
                "{table} {column}: {}",
                rows[0]
            );
        }
    }
    let lists = pooled.show("LISTS");
    let clients = lists
        .iter()
        .find(|row| row["list"] == "used_clients")
        .unwrap();
    assert_eq!(clients["items"], "1");
    let help = text(&pooled.say("SHOW HELP").stdout);
    assert!(help.contains("KILL_CLIENT id"), "{help}");
    open.kill().unwrap();
    open.wait().unwrap();
}

#[test]
fn only_who_may_is_obeyed() {
    let Some(pooled) = Pooled::start(&["--stats-users", "watcher"]) else {
        return;
    };
    let paused = || status(pooled.admin())["paused"]["all"].clone();
    for browser in [
        "Origin: http://evil.example\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ] {
        assert_eq!(post(pooled.admin(), "PAUSE", browser).0, 403, "{browser}");
    }
    let long = "PAUSE ".to_owned() + &"a".repeat(20_000);
    assert_eq!(post(pooled.admin(), &long, "").0, 400);
    assert_eq!(post(pooled.admin(), "PAUSE a b", "").0, 400);
    assert_eq!(paused(), false);
    let mysql = gate::gate("http", "127.0.0.1:1", &[]);
    assert_eq!(
        post(mysql.admin.unwrap(), "PAUSE", ""),
        (200, "PAUSE\n".to_owned())
    );
    assert_eq!(post(mysql.admin.unwrap(), "KILL a", "").0, 400);
    assert_eq!(post(mysql.admin.unwrap(), "RESUME", "").0, 200);
}

#[test]
fn a_user_of_the_pool_comes_by_its_password() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return;
    }
    let Some(pooled) = Pooled::start(&["--stats-users", "watcher", "--admin-users", "tester"])
    else {
        return;
    };
    use std::os::unix::process::CommandExt;
    // To be known by number alone, one would have to be root.
    let say = |user: &str, password: &str, command: &str| {
        let mut psql = pooled.psql("shortline", &[command]);
        psql.env("PGPASSWORD", password).args(["-U", user]);
        psql.uid(65534).current_dir("/").output().unwrap()
    };
    assert!(say("watcher", "geheim", "SHOW POOLS").status.success());
    let refused = say("watcher", "geheim", "PAUSE");
    assert!(
        text(&refused.stderr).contains("--admin-users"),
        "{}",
        text(&refused.stderr)
    );
    let wrong = say("tester", "falsch", "SHOW POOLS");
    assert!(
        text(&wrong.stderr).contains("password authentication failed"),
        "{}",
        text(&wrong.stderr)
    );
    assert!(say("tester", "geheim", "PAUSE").status.success());
    assert!(say("tester", "geheim", "RESUME").status.success());
}

#[test]
fn a_gate_that_is_to_end_when_all_have_left_does_so() {
    let Some(mut pooled) = Pooled::start(&[]) else {
        return;
    };
    let long = pooled.begin("select pg_sleep(2)");
    wait_for("it to run", || (pooled.busy().len() == 1).then_some(()));
    let port = pooled.server.address().port();
    assert_eq!(post(pooled.admin(), "SHUTDOWN WAIT_FOR_CLIENTS", "").0, 200);
    wait_for("nobody to be accepted", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).err()
    });
    assert_eq!(get(pooled.admin(), "/ready").status, 503);
    let ended = long.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert!(pooled.server.wait().success());
}
