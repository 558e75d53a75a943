//! A small private database with a shop in front.
#![allow(dead_code)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use shortline_bookstore::application::{Application, Options};
use shortline_bookstore::bed::{Bed, Sizing};
use shortline_bookstore::population::{Population, Scale, populate};
use shortline_bookstore::{Database, Kind, Locking};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

pub const SCALE: Scale = Scale {
    items: 200,
    customers: 300,
};

/// Much longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two servers at once would only wait for each other.
static ONE_AT_A_TIME: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);

/// Runs a test on each database.
pub fn for_each_database(test: impl AsyncFn(Kind)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let _alone = ONE_AT_A_TIME.lock().await;
        for kind in Kind::ALL {
            test(kind).await;
        }
    });
}

/// An open shop.
pub struct Bench {
    pub shop: SocketAddr,
    bed: Bed,
}

impl Bench {
    /// Fills a new database and opens the shop. `None`, with a line, if the database is not
    /// installed.
    pub async fn open(kind: Kind, locking: Locking) -> Option<Self> {
        if let Err(missing) = Bed::available(kind) {
            eprintln!("skipped: {missing}");
            return None;
        }
        let sizing = Sizing {
            buffer_mib: 64,
            connections_max: 50,
            ..Sizing::default()
        };
        let bed = Bed::start(kind, sizing).await.unwrap();
        let population = Population {
            scale: SCALE,
            seed: 1,
        };
        populate(bed.database(), population).await.unwrap();
        let options = Options {
            locking,
            database_connections_max: 20,
            items: SCALE.items,
            tags: locking == Locking::Database,
            ..Options::default()
        };
        let application = Application::new(bed.database().clone(), options).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let shop = listener.local_addr().unwrap();
        tokio::spawn(async move {
            application.serve(listener, std::future::pending()).await;
        });
        Some(Self { shop, bed })
    }

    pub fn database(&self) -> &Database {
        self.bed.database()
    }

    /// A page that must exist.
    pub async fn get(&self, path: &str) -> String {
        self.page("GET", path, "").await
    }

    /// The page after a form. It must exist.
    pub async fn post(&self, path: &str, form: &str) -> String {
        self.page("POST", path, form).await
    }

    async fn page(&self, method: &str, path: &str, form: &str) -> String {
        let (status, body) = self.exchange(method, path, form).await;
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert_eq!(status, 200, "{method} {path} {form}: {body}");
        body
    }

    pub async fn status(&self, method: &str, path: &str, form: &str) -> u16 {
        self.exchange(method, path, form).await.0
    }

    async fn exchange(&self, method: &str, path: &str, form: &str) -> (u16, Bytes) {
        let stream = TcpStream::connect(self.shop).await.unwrap();
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", "shop")
            .body(Full::new(Bytes::from(form.to_owned())))
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        (
            status,
            response.into_body().collect().await.unwrap().to_bytes(),
        )
    }

    /// Runs a statement directly on the database.
    pub async fn run(&self, statement: &str) {
        match self.database().kind {
            Kind::Postgres => {
                self.postgres()
                    .await
                    .batch_execute(statement)
                    .await
                    .unwrap();
            }
            Kind::MariaDb => {
                use mysql_async::prelude::Queryable;
                self.mariadb().await.query_drop(statement).await.unwrap();
            }
        }
    }

    /// Runs statements on one connection, does something, then runs others on it.
    pub async fn run_in_two(&self, first: &str, between: impl AsyncFnOnce(), then: &str) {
        match self.database().kind {
            Kind::Postgres => {
                let session = self.postgres().await;
                session.batch_execute(first).await.unwrap();
                between().await;
                session.batch_execute(then).await.unwrap();
            }
            Kind::MariaDb => {
                use mysql_async::prelude::Queryable;
                let mut session = self.mariadb().await;
                session.query_drop(first).await.unwrap();
                between().await;
                session.query_drop(then).await.unwrap();
            }
        }
    }

    /// Waits until a transaction waits for another's lock.
    pub async fn until_a_lock_is_waited_for(&self) {
        let waiting = match self.database().kind {
            Kind::Postgres => "SELECT COUNT(*) FROM pg_locks WHERE NOT granted",
            Kind::MariaDb => {
                "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
            }
        };
        let waited = async {
            while self.number(waiting).await == 0 {
                // MariaDB refreshes this view only if nobody has read it for a tenth of a second.
                tokio::time::sleep(Duration::from_millis(150)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waited)
            .await
            .expect("nobody waits for a lock");
    }

    /// The single number that a statement returns.
    pub async fn number(&self, statement: &str) -> i64 {
        match self.database().kind {
            Kind::Postgres => {
                let row = self
                    .postgres()
                    .await
                    .query_one(statement, &[])
                    .await
                    .unwrap();
                let wide = row.try_get::<_, i64>(0);
                wide.unwrap_or_else(|_| row.get::<_, i32>(0).into())
            }
            Kind::MariaDb => {
                use mysql_async::prelude::Queryable;
                self.mariadb()
                    .await
                    .query_first(statement)
                    .await
                    .unwrap()
                    .unwrap()
            }
        }
    }

    async fn postgres(&self) -> tokio_postgres::Client {
        let database = self.database();
        let (client, connection) = tokio_postgres::Config::new()
            .host(database.address.ip().to_string())
            .port(database.address.port())
            .user(&database.user)
            .dbname(&database.name)
            .connect(tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client
    }

    async fn mariadb(&self) -> mysql_async::Conn {
        let database = self.database();
        let options = mysql_async::OptsBuilder::default()
            .ip_or_hostname(database.address.ip().to_string())
            .tcp_port(database.address.port())
            .user(Some(&database.user))
            .db_name(Some(&database.name))
            .prefer_socket(false);
        mysql_async::Conn::new(options).await.unwrap()
    }
}
