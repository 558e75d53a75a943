//! A restart without dropping a client (`--handover`): a new gate takes the clients of a running one over, in front
//! of a real PostgreSQL, while they work.

mod mysql;

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::client::get;
use crate::postgres::Postgres;
use crate::process::{PROGRAM, Server, wait_for};
use crate::relayed::status;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(120);
const POOL_SIZE: usize = 8;

/// Where the gates of a test meet.
struct Place {
    folder: tempfile::TempDir,
    postgres: Postgres,
}

impl Place {
    fn new() -> Option<Self> {
        let postgres = Postgres::start()?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("users"), "\"tester\" \"any\"\n").unwrap();
        Some(Self { folder, postgres })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A gate that listens at `port`, or whose predecessor does.
    fn gate(&self, port: u16) -> Server {
        Server::spawn(&mut self.command(port, POOL_SIZE))
    }

    fn command(&self, port: u16, pool_size: usize) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(["gate", "postgres", "--upstream", &self.postgres.address()])
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(["--admin", "127.0.0.1:0"])
            .args([
                "--handover",
                &format!("unix:{}", self.path("handover").display()),
            ])
            .args([
                "--pool",
                "transaction",
                "--pool-size",
                &pool_size.to_string(),
            ])
            .args(["--drain", "120s", "--pool-users"])
            .arg(self.path("users"))
            .arg("--estimates")
            .arg(self.path("estimates"))
            .stdin(Stdio::null());
        command
    }

    /// Says a command to the gate itself.
    fn console(&self, port: u16, command: &str) {
        let mut psql = self.postgres.psql_command(port, "shortline", &[command]);
        let said = psql.output().unwrap();
        assert!(said.status.success(), "{said:?}");
    }

    fn sql(&self, statement: &str) -> String {
        let answer = self.postgres.psql(self.postgres.port, &[statement]);
        assert!(answer.status.success(), "{answer:?}");
        String::from_utf8(answer.stdout).unwrap().trim().to_owned()
    }
}

async fn connect(port: u16) -> Client {
    let parameters = format!("host=127.0.0.1 port={port} dbname=postgres user=tester password=any");
    let (client, connection) = tokio_postgres::connect(&parameters, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.expect("it takes for ever")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// Clients that write into a ledger, each over one connection from beginning to end.
struct Writers {
    tasks: Vec<JoinHandle<usize>>,
    written: Arc<Vec<AtomicUsize>>,
    is_over: Arc<AtomicBool>,
}

impl Writers {
    async fn start<C, F: Future<Output = usize> + Send + 'static>(
        count: usize,
        connect: impl AsyncFn() -> C,
        write: impl Fn(C, usize, Arc<Vec<AtomicUsize>>, Arc<AtomicBool>) -> F,
    ) -> Self {
        let written: Arc<Vec<_>> = Arc::new((0..count).map(|_| AtomicUsize::new(0)).collect());
        let is_over = Arc::<AtomicBool>::default();
        let mut tasks = Vec::new();
        for number in 0..count {
            let (written, is_over) = (Arc::clone(&written), Arc::clone(&is_over));
            let writing = write(connect().await, number, written, is_over);
            tasks.push(tokio::spawn(writing));
        }
        Self {
            tasks,
            written,
            is_over,
        }
    }

    /// Waits until each has written so often.
    async fn have_written(&self, more: usize) {
        let before: Vec<_> = self.counts();
        let all = || {
            let now = self.counts();
            now.iter()
                .zip(&before)
                .all(|(now, before)| *now >= before + more)
        };
        soon(async {
            while !all() {
                let failed = self.tasks.iter().any(JoinHandle::is_finished);
                assert!(!failed, "a writer has failed");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    fn counts(&self) -> Vec<usize> {
        let counts = self.written.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).collect()
    }

    async fn end(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        let mut written = 0;
        for task in self.tasks {
            written += soon(task).await.unwrap();
        }
        written
    }
}

/// Writes transactions with prepared statements and parameters of its own, of which each must be whole.
async fn write(
    mut client: Client,
    number: usize,
    written: Arc<Vec<AtomicUsize>>,
    is_over: Arc<AtomicBool>,
) -> usize {
    let own = number as i32;
    let zone = format!("Etc/GMT+{}", number % 12 + 1);
    client
        .batch_execute(&format!("set timezone = '{zone}'; set my.own = '{own}'"))
        .await
        .unwrap();
    let insert = "insert into ledger values ($1, $2)";
    let insert = client.prepare(insert).await.unwrap();
    let look = "select current_setting('my.own'), current_setting('timezone'), $1::int4";
    let look = client.prepare(look).await.unwrap();
    let mut round = 0;
    while !is_over.load(Ordering::Relaxed) {
        let transaction = client.transaction().await.unwrap();
        let changed = transaction.execute(&insert, &[&own, &round]).await.unwrap();
        assert_eq!(changed, 1);
        let row = transaction.query_one(&look, &[&round]).await.unwrap();
        let got: (String, String, i32) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(got, (own.to_string(), zone.clone(), round));
        transaction.commit().await.unwrap();
        round += 1;
        written[number].fetch_add(1, Ordering::Relaxed);
    }
    round as usize
}

/// Restarts the gate three times under so many clients.
fn restart_under(clients: usize) {
    let Some(place) = Place::new() else {
        return;
    };
    place.sql("create table ledger (client int4, round int4, primary key (client, round))");
    let mut gate = place.gate(0);
    let port = gate.address().port();
    let written = runtime().block_on(async {
        let writers = Writers::start(clients, async || soon(connect(port)).await, write).await;
        for _ in 0..3 {
            writers.have_written(1).await;
            let mut heir = place.gate(port);
            heir.line_with("the other gate has ended");
            assert!(gate.wait().success());
            gate = heir;
            writers.have_written(1).await;
        }
        writers.end().await
    });
    let rows = place.sql("select count(*), count(distinct client) from ledger");
    assert_eq!(rows, format!("{written}|{clients}"));
    let gaps = "select count(*) from (select max(round) + 1 - count(*) as gap from ledger group by client) gaps where gap > 0";
    assert_eq!(place.sql(gaps), "0");
    println!("{clients} clients, 3 restarts: {written} transactions, none failed, none lost");
    assert!(gate.said.iter().any(|line| line.contains("listening")));
}

#[test]
fn fifty_clients_do_not_notice_three_restarts() {
    restart_under(50);
}

#[test]
#[ignore = "takes a minute: make test-long"]
fn a_thousand_clients_do_not_notice_three_restarts() {
    restart_under(1000);
}

#[test]
fn a_client_at_rest_moves_with_all_that_it_has() {
    let Some(place) = Place::new() else {
        return;
    };
    let mut old = place.gate(0);
    let port = old.address().port();
    runtime().block_on(async {
        let client = connect(port).await;
        client
            .batch_execute("set search_path = pg_catalog; set my.own = 'here'")
            .await
            .unwrap();
        let sum = client.prepare("select $1::int4 + $2::int4").await.unwrap();
        let mut new = place.gate(port);
        new.line_with("the other gate has ended");
        assert!(old.wait().success());
        old.line_with("1 sessions have moved");
        let row = client.query_one(&sum, &[&40, &2]).await.unwrap();
        assert_eq!(row.get::<_, i32>(0), 42);
        let set = "select current_setting('search_path') || current_setting('my.own')";
        let row = client.query_one(set, &[]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), "pg_cataloghere");
        // A cancel request by the key that the old gate gave.
        let token = client.cancel_token();
        let sleeping = async { client.batch_execute("select pg_sleep(1000)").await };
        let cancelling = async {
            let at_work =
                "select count(*) from pg_stat_activity where query like 'select pg_sleep(%'";
            while place.sql(at_work) == "0" {}
            token.cancel_query(NoTls).await.unwrap();
        };
        let (slept, ()) = soon(async { tokio::join!(sleeping, cancelling) }).await;
        let error = slept.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "57014");
        // New ones come, too, and the page is there.
        connect(port).await.batch_execute("select 1").await.unwrap();
        assert_eq!(get(new.admin.unwrap(), "/status").status, 200);
    });
}

#[test]
fn an_open_transaction_ends_where_it_began() {
    let Some(place) = Place::new() else {
        return;
    };
    let mut old = place.gate(0);
    let port = old.address().port();
    runtime().block_on(async {
        let mut client = connect(port).await;
        let other = connect(port).await;
        let transaction = client.transaction().await.unwrap();
        transaction
            .batch_execute("create table mine (a int)")
            .await
            .unwrap();
        let mut new = place.gate(port);
        // It was at rest, and works on at the new one, while the transaction is open at the old one.
        soon(other.batch_execute("select 1")).await.unwrap();
        transaction
            .batch_execute("insert into mine values (7)")
            .await
            .unwrap();
        soon(transaction.commit()).await.unwrap();
        new.line_with("the other gate has ended; 2 sessions");
        assert!(old.wait().success());
        let row = client.query_one("select a from mine", &[]).await.unwrap();
        assert_eq!(row.get::<_, i32>(0), 7);
    });
}

#[test]
fn a_session_that_keeps_its_connection_stays_until_it_gives_it_up() {
    let Some(place) = Place::new() else {
        return;
    };
    let mut old = place.gate(0);
    let port = old.address().port();
    runtime().block_on(async {
        let (pinned, busy) = (connect(port).await, connect(port).await);
        pinned.batch_execute("listen here").await.unwrap();
        let token = busy.cancel_token();
        let sleeping = tokio::spawn(async move {
            let slept = busy.batch_execute("select pg_sleep(1000)").await;
            (slept, busy)
        });
        let at_work = "select count(*) from pg_stat_activity where query like 'select pg_sleep(%'";
        while place.sql(at_work) == "0" {}
        let mut new = place.gate(port);
        // The request comes to the new gate, and the session is at the old one.
        let cancelled = soon(async {
            while !sleeping.is_finished() {
                token.cancel_query(NoTls).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            sleeping.await.unwrap()
        });
        let (slept, busy) = cancelled.await;
        assert_eq!(slept.unwrap_err().code().unwrap().code(), "57014");
        busy.batch_execute("select 1").await.unwrap();
        // Served where it is.
        pinned.batch_execute("select 1").await.unwrap();
        pinned.batch_execute("unlisten *").await.unwrap();
        new.line_with("the other gate has ended; 2 sessions");
        assert!(old.wait().success());
        pinned.batch_execute("select 1").await.unwrap();
    });
}

#[test]
fn systemd_hears_which_process_is_the_service_now() {
    let Some(place) = Place::new() else {
        return;
    };
    let path = place.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let told = || {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let start = |port| Server::spawn(place.command(port, POOL_SIZE).env("NOTIFY_SOCKET", &path));
    let mut old = start(0);
    assert!(!told().contains("MAINPID"));
    let mut new = start(old.address().port());
    let ready = told();
    assert!(
        ready.contains("MAINPID=") && ready.contains("READY=1"),
        "{ready}"
    );
    assert!(old.wait().success());
    new.signal(Signal::TERM);
    // The old one has said nothing: it was not the service any more.
    assert!(told().contains("STOPPING=1"));
    assert!(new.wait().success());
    assert!(old.said.iter().all(|line| !line.contains("ERROR")));
    socket.set_nonblocking(true).unwrap();
    assert!(socket.recv(&mut [0; 256]).is_err());
}

#[test]
fn a_gate_that_is_paused_keeps_all_that_it_has() {
    let Some(place) = Place::new() else {
        return;
    };
    let mut old = place.gate(0);
    let port = old.address().port();
    place.console(port, "PAUSE");
    let refused = place.command(port, POOL_SIZE).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && said.contains("it is paused"),
        "{said}"
    );
    old.line_with("nothing was handed over");
    place.console(port, "RESUME");
    runtime().block_on(async {
        soon(connect(port))
            .await
            .batch_execute("select 1")
            .await
            .unwrap();
    });
}

#[test]
fn a_new_gate_that_dies_leaves_the_old_one_at_work() {
    let Some(place) = Place::new() else {
        return;
    };
    let mut old = place.gate(0);
    let port = old.address().port();
    runtime().block_on(async {
        let mut clients = [connect(port).await, connect(port).await];
        // It keeps the handover from its end.
        let transaction = clients[0].transaction().await.unwrap();
        transaction
            .batch_execute("create table mine (a int)")
            .await
            .unwrap();
        let new = place.gate(port);
        // The other client has moved: the new gate has had one connection in all, and the old one two.
        let has_moved = || {
            let connections = status(new.admin.unwrap())["connections"].clone();
            connections["total"] == 1 && connections["open"] == 1
        };
        wait_for("the client at rest to move", || has_moved().then_some(()));
        new.signal(Signal::KILL);
        old.line_with("this gate goes on with the others");
        transaction
            .batch_execute("insert into mine values (7)")
            .await
            .unwrap();
        soon(transaction.commit()).await.unwrap();
        soon(connect(port))
            .await
            .batch_execute("select 1")
            .await
            .unwrap();
        // The next one finds everything as it was.
        let mut new = place.gate(port);
        new.line_with("the other gate has ended");
        assert!(old.wait().success());
        let row = clients[0]
            .query_one("select a from mine", &[])
            .await
            .unwrap();
        assert_eq!(row.get::<_, i32>(0), 7);
    });
}

#[test]
fn whoever_is_no_gate_of_this_version_gets_nothing() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    let Some(place) = Place::new() else {
        return;
    };
    let mut gate = place.gate(0);
    let path = place.path("handover");
    assert_eq!(mode(&path), 0o600);
    let framed = |text: &str| {
        let length = (text.len() as u32).to_be_bytes();
        [&length[..], text.as_bytes()].concat()
    };
    let newer = framed(r#"{"Hello":{"version":99,"kind":"postgres"}}"#);
    let other = framed(r#"{"Hello":{"version":2,"kind":"mysql"}}"#);
    for (bytes, reason) in [
        (newer, "version 99"),
        (other, "something else"),
        (framed("\"Ready\""), "out of turn"),
        (framed("nonsense"), "no message"),
        (vec![0xff; 64], "at most"),
        (Vec::new(), "has left"),
    ] {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(&bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        // What it says, and its end.
        let _ = stream.read_to_end(&mut answer);
        let line = gate.line_with("nothing was handed over");
        assert!(line.contains(reason), "{line}");
    }
    let port = gate.address().port();
    runtime().block_on(async {
        soon(connect(port))
            .await
            .batch_execute("select 1")
            .await
            .unwrap();
    });
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().unwrap().permissions().mode() & 0o777
}
