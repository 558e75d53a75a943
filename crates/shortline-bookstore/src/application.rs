//! The web application: HTTP/1.1 in front, a pool of database connections behind.
//!
//! Pages that change the database are requested with POST (a form), the others with GET, pictures
//! at `/images/BYTES/NUMBER.gif`. An interaction that has begun runs to its end, like a servlet,
//! even if its visitor has gone away. Work that nobody waits for still loads the database. Only when the
//! shop has been closed for a while is it broken off, or it would load the database for whoever comes next.
//!
//! | status | when |
//! |---|---|
//! | 200 | the page |
//! | 400 | a field is missing or is not what it should be |
//! | 403 | name and password do not belong together |
//! | 404 | no such page, book, customer or picture |
//! | 405 | GET for POST or the other way round |
//! | 413 | a form over 16 KiB |
//! | 500 | the database refused a statement, or its connection broke |
//! | 503 | no connection became free in time |

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use maud::Markup;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::images;
use crate::interaction::Interaction;
use crate::interactions::{self, Visit};
use crate::locks::{Locking, Mutexes};
use crate::request::{Fields, PageError, Session};
use crate::store::{Database, Pool, Statements, StoreError, Work, WorkOptions, pool};

/// The longest form, in bytes.
const FORM_BYTES_MAX: usize = 16 * 1024;
/// The longest time for a visitor to send a request's head.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(3600);
/// How often an interaction is tried if the database rolls it back because of others, as InnoDB
/// does when two lock gaps that meet.
const ATTEMPTS_MAX: u32 = 4;
/// How long interactions under way get after the shop closes.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// How the shop runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who keeps conflicting interactions apart (002, 4.2).
    pub locking: Locking,
    /// One transaction per interaction, or else one per statement. With locking in the database it
    /// is always one per interaction.
    pub transactions: bool,
    /// How statements go to PostgreSQL.
    pub statements: Statements,
    /// Whether statements carry SQLCommenter's `route`, as an ordinary framework may add it.
    pub tags: bool,
    /// The most connections to the database. 002's servlets had one each.
    pub database_connections_max: usize,
    /// How long an interaction waits for a connection.
    pub database_wait_max: Duration,
    /// The most connections of visitors. Further ones wait in the kernel.
    pub visitors_max: usize,
    /// How many items were loaded.
    pub items: u64,
    /// How many [`Execution`]s are kept, the first ones.
    pub executions_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            locking: Locking::Application,
            transactions: true,
            statements: Statements::Prepared,
            tags: false,
            database_connections_max: 400,
            database_wait_max: Duration::from_secs(300),
            visitors_max: 10_000,
            items: 10_000,
            executions_max: 0,
        }
    }
}

/// The time an interaction took at the database, as 002 (3.1) measures it: from its first statement
/// to the answer to its last. It includes waiting in a gate, but not waiting for a free connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Execution {
    /// Which interaction.
    pub interaction: Interaction,
    /// When it began, in seconds since the shop was made.
    pub at_s: f64,
    /// How long it took, in seconds.
    pub took_s: f64,
}

/// A shop that is ready to open.
#[derive(Clone)]
pub struct Application {
    shop: Arc<Shop>,
}

struct Shop {
    pool: Pool,
    options: Options,
    work: WorkOptions,
    made: Instant,
    executions: Mutex<Vec<Execution>>,
    /// Nobody waits for a page any more.
    over: CancellationToken,
}

impl Application {
    /// A shop over that database. It connects when the first visitor needs it.
    ///
    /// # Errors
    /// The pool of connections cannot be made.
    pub fn new(database: Database, options: Options) -> Result<Self, StoreError> {
        let pool = pool(
            database,
            options.statements,
            options.database_connections_max,
            options.database_wait_max,
        )?;
        let work = WorkOptions {
            locking: options.locking,
            transactions: options.transactions,
            tags: options.tags,
            mutexes: Mutexes::default(),
        };
        Ok(Self {
            shop: Arc::new(Shop {
                pool,
                options,
                work,
                made: Instant::now(),
                executions: Mutex::default(),
                over: CancellationToken::new(),
            }),
        })
    }

    /// What was kept of the interactions that have succeeded so far, in the order of their ends.
    pub fn executions(&self) -> Vec<Execution> {
        self.shop.executions.lock().clone()
    }

    /// Serves visitors until `closing` is done, then interactions under way for at most 5 s.
    pub async fn serve(&self, listener: TcpListener, closing: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(self.shop.options.visitors_max));
        let mut visitors = JoinSet::new();
        let (close, closed) = watch::channel(());
        tokio::pin!(closing);
        loop {
            tokio::select! {
                () = &mut closing => break,
                next = accept(&listener, &places) => {
                    let Some((stream, place)) = next else { continue };
                    let (shop, closed) = (Arc::clone(&self.shop), closed.clone());
                    visitors.spawn(async move {
                        visitor(shop, stream, closed).await;
                        drop(place);
                    });
                }
                Some(_) = visitors.join_next() => {}
            }
        }
        drop((listener, close));
        let ended = async { while visitors.join_next().await.is_some() {} };
        tokio::time::timeout(CLOSING_MAX, ended).await.ok();
        self.shop.over.cancel();
        self.shop.pool.close();
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            // For example, out of file descriptors. That passes when others leave.
            tracing::warn!(%error, "bookstore: cannot accept");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

/// Serves one visitor's connection until either side ends it. When `closed` has no sender any more,
/// it ends after the page under way.
async fn visitor(shop: Arc<Shop>, stream: TcpStream, mut closed: watch::Receiver<()>) {
    stream.set_nodelay(true).ok();
    let service = service_fn(move |request| {
        let shop = Arc::clone(&shop);
        async move {
            let over = shop.over.clone();
            let answer = answer(shop, request);
            let answer = tokio::spawn(async move { over.run_until_cancelled(answer).await });
            Ok::<_, Infallible>(answer.await.ok().flatten().unwrap_or_else(|| {
                text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the page could not be made",
                )
            }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // Whatever ends the connection, the visitor sees it too.
    tokio::select! {
        _ = &mut connection => return,
        _ = closed.changed() => connection.as_mut().graceful_shutdown(),
    }
    connection.await.ok();
}

type Answer = Response<Full<Bytes>>;

async fn answer(shop: Arc<Shop>, request: Request<Incoming>) -> Answer {
    let path = request.uri().path();
    if let Some(rest) = path.strip_prefix("/images/") {
        return picture(request.method(), rest);
    }
    let name = path.strip_prefix('/').unwrap_or_default();
    let name = if name.is_empty() { "home" } else { name };
    let Ok(interaction) = name.parse::<Interaction>() else {
        return text(StatusCode::NOT_FOUND, "there is no such page");
    };
    let wanted = if interaction.writes() {
        Method::POST
    } else {
        Method::GET
    };
    if request.method() != wanted {
        return text(
            StatusCode::METHOD_NOT_ALLOWED,
            "the page wants the other method",
        );
    }
    let encoded = if interaction.writes() {
        match Limited::new(request.into_body(), FORM_BYTES_MAX)
            .collect()
            .await
        {
            Ok(form) => form.to_bytes(),
            Err(_) => {
                return text(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "the form is cut or over 16 KiB",
                );
            }
        }
    } else {
        Bytes::copy_from_slice(request.uri().query().unwrap_or_default().as_bytes())
    };
    match page(&shop, interaction, &encoded).await {
        Ok(page) => html(page),
        Err(error) => refused(interaction, &error),
    }
}

async fn page(shop: &Shop, interaction: Interaction, encoded: &[u8]) -> Result<Markup, PageError> {
    let fields = Fields::parse(encoded)?;
    let session = fields.session()?;
    if interaction == Interaction::CustomerRegistration {
        return interactions::registration(&fields);
    }
    for _ in 1..ATTEMPTS_MAX {
        match shop.attempt(interaction, &fields, session).await {
            Err(PageError::Store(error)) if shop.may_ask_again(&error) => {}
            result => return result,
        }
    }
    shop.attempt(interaction, &fields, session).await
}

impl Shop {
    async fn attempt(
        &self,
        interaction: Interaction,
        fields: &Fields,
        session: Session,
    ) -> Result<Markup, PageError> {
        let mut work = Work::begin(&self.pool, interaction, self.work.clone()).await?;
        let mut visit = Visit {
            fields,
            session,
            items: self.options.items,
            work: &mut work,
        };
        let result = interactions::run(interaction, &mut visit).await;
        let began = work.began();
        let page = work.finish(result).await?;
        self.keep(interaction, began);
        Ok(page)
    }

    /// Whether the database rolled back the whole interaction and expects it again from the start.
    fn may_ask_again(&self, error: &StoreError) -> bool {
        self.work.is_one_transaction() && error.asks_to_restart()
    }

    fn keep(&self, interaction: Interaction, began: Instant) {
        let mut executions = self.executions.lock();
        if executions.len() < self.options.executions_max {
            executions.push(Execution {
                interaction,
                at_s: began.saturating_duration_since(self.made).as_secs_f64(),
                took_s: began.elapsed().as_secs_f64(),
            });
        }
    }
}

fn refused(interaction: Interaction, error: &PageError) -> Answer {
    let status = match error {
        PageError::Field { .. } | PageError::Fields => StatusCode::BAD_REQUEST,
        PageError::Password => StatusCode::FORBIDDEN,
        PageError::NotFound(_) => StatusCode::NOT_FOUND,
        PageError::Store(StoreError::Busy { .. }) => StatusCode::SERVICE_UNAVAILABLE,
        PageError::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    if status.is_server_error() {
        tracing::warn!(%interaction, %error, "bookstore: no page");
    }
    text(status, &error.to_string())
}

/// `BYTES/NUMBER.gif`. All pictures of one size look the same.
fn picture(method: &Method, rest: &str) -> Answer {
    let bytes = rest
        .split_once('/')
        .and_then(|(bytes, _)| bytes.parse().ok());
    match bytes.and_then(images::picture) {
        Some(picture) if method == Method::GET => {
            let mut answer = Response::new(Full::new(picture));
            let headers = answer.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("image/gif"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
            answer
        }
        _ => text(StatusCode::NOT_FOUND, "there is no such picture"),
    }
}

fn html(page: Markup) -> Answer {
    let mut answer = Response::new(Full::new(page.into_string().into()));
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, html);
    answer
}

fn text(status: StatusCode, line: &str) -> Answer {
    let mut answer = Response::new(Full::new(format!("{line}\n").into()));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}
