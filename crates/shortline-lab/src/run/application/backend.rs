//! The application: a model that shares its servers among all requests inside, over HTTP/1.1.
//!
//! Each request has its work in its query (`/report?us=412000`). Every request inside is served at the rate
//! of the model over their number, so that all attain the same service in the same time. A request ends once
//! it has attained its work. The steps are computed at the times at which they would happen. So a late timer
//! delays a response, but changes nothing for the others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::gradient::{Gradient, Limiter};
use crate::study::application::{BODY, Model};

/// The longest head of a request, in bytes.
const HEAD_MAX: usize = 8_192;
/// Requests that have come and are not inside yet.
const COMING_MAX: usize = 20_000;
/// How long it waits for nothing.
const FOREVER: Duration = Duration::from_secs(86_400);

/// A running application. It ends when it is dropped.
pub struct Backend {
    address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

/// A request that comes: its work in nanoseconds, and who is told of its end.
struct Coming {
    work_ns: u64,
    done: oneshot::Sender<()>,
}

impl Backend {
    /// An application on a free port. With a gradient it refuses what is above that limit.
    ///
    /// # Errors
    /// If no socket can be opened.
    pub async fn start(model: Model, gradient: Option<Gradient>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (sender, coming) = mpsc::channel(COMING_MAX);
        let limiter = gradient.map(|gradient| Arc::new(Limiter::new(gradient)));
        let serving = tokio::spawn(Sharing::new(model).serve(coming));
        let accepting = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(answer(socket, sender.clone(), limiter.clone()));
            }
        });
        Ok(Self {
            address,
            tasks: [serving, accepting],
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Answers the requests of a connection. A connection that does not speak as the doors do is closed.
async fn answer(
    mut socket: TcpStream,
    sender: mpsc::Sender<Coming>,
    limiter: Option<Arc<Limiter>>,
) {
    socket.set_nodelay(true).ok();
    let mut held = Vec::new();
    while let Some(work_ns) = read_head(&mut socket, &mut held).await {
        let permit = match &limiter {
            None => None,
            Some(limiter) => match limiter.acquire() {
                Some(permit) => Some(permit),
                None => {
                    if respond(&mut socket, "503 Service Unavailable")
                        .await
                        .is_err()
                    {
                        return;
                    }
                    continue;
                }
            },
        };
        let (done, ended) = oneshot::channel();
        if sender.send(Coming { work_ns, done }).await.is_err() || ended.await.is_err() {
            return;
        }
        if let Some(permit) = permit {
            permit.completed();
        }
        if respond(&mut socket, "200 OK").await.is_err() {
            return;
        }
    }
}

async fn respond(socket: &mut TcpStream, status: &str) -> io::Result<()> {
    let length = BODY.len();
    let text = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{BODY}");
    socket.write_all(text.as_bytes()).await
}

/// The work of the next request, in nanoseconds. `None` at the end, or if it is none of ours.
async fn read_head(socket: &mut TcpStream, held: &mut Vec<u8>) -> Option<u64> {
    loop {
        if let Some(end) = held.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let work_ns = work_of(&held[..end]);
            held.drain(..end + 4);
            return work_ns;
        }
        if held.len() > HEAD_MAX || socket.read_buf(held).await.ok()? == 0 {
            return None;
        }
    }
}

/// The work of a request with this head, in nanoseconds.
fn work_of(head: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(head).ok()?.lines().next()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let us: u64 = target.split_once("?us=")?.1.parse().ok()?;
    us.checked_mul(1_000)
}

/// What is inside, and what it has attained.
struct Sharing {
    model: Model,
    now: Instant,
    /// The service that each request has attained since the beginning, in nanoseconds.
    attained_ns: f64,
    /// By the attained service at which they end, in nanoseconds.
    inside: BinaryHeap<Reverse<(u64, u64)>>,
    /// Who is told, by number.
    told: std::collections::HashMap<u64, oneshot::Sender<()>>,
    number: u64,
}

impl Sharing {
    fn new(model: Model) -> Self {
        Self {
            model,
            now: Instant::now(),
            attained_ns: 0.0,
            inside: BinaryHeap::new(),
            told: std::collections::HashMap::new(),
            number: 0,
        }
    }

    /// Serves what comes, until nobody can come any more.
    async fn serve(mut self, mut coming: mpsc::Receiver<Coming>) {
        loop {
            let next = self.next_end().unwrap_or_else(|| Instant::now() + FOREVER);
            tokio::select! {
                biased;
                come = coming.recv() => match come {
                    Some(come) => {
                        self.advance(Instant::now());
                        self.enter(come);
                    }
                    None => return,
                },
                () = sleep_until(next) => self.advance(Instant::now()),
            }
        }
    }

    fn enter(&mut self, come: Coming) {
        let end_ns = self.attained_ns as u64 + come.work_ns;
        self.number += 1;
        self.inside.push(Reverse((end_ns, self.number)));
        self.told.insert(self.number, come.done);
    }

    /// How fast each request inside attains service.
    fn each_rate(&self) -> f64 {
        let inside = self.inside.len();
        self.model.work_rate(inside) / inside.max(1) as f64
    }

    /// When the next request ends, if none comes before.
    fn next_end(&self) -> Option<Instant> {
        let &Reverse((end_ns, _)) = self.inside.peek()?;
        let left_ns = (end_ns as f64 - self.attained_ns).max(0.0) / self.each_rate();
        Some(self.now + Duration::from_nanos(left_ns as u64))
    }

    /// Ends what has ended until then, one after the other.
    fn advance(&mut self, until: Instant) {
        while let Some(end) = self.next_end().filter(|&end| end <= until) {
            self.pass(end);
            if let Some(Reverse((end_ns, number))) = self.inside.pop() {
                self.attained_ns = self.attained_ns.max(end_ns as f64);
                if let Some(done) = self.told.remove(&number) {
                    // Whoever has gone away is told nothing.
                    done.send(()).ok();
                }
            }
        }
        self.pass(until);
    }

    fn pass(&mut self, until: Instant) {
        let span = until.saturating_duration_since(self.now);
        if !self.inside.is_empty() {
            self.attained_ns += span.as_nanos() as f64 * self.each_rate();
        }
        self.now = self.now.max(until);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_work_is_in_the_query() {
        assert_eq!(work_of(b"GET /a?us=12 HTTP/1.1\r\nhost: x"), Some(12_000));
        for other in [
            "GET /a HTTP/1.1",
            "POST /a?us=1 HTTP/1.1",
            "GET /a?us=x HTTP/1.1",
            "",
        ] {
            assert_eq!(work_of(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn two_on_one_server_take_turns_and_a_late_look_changes_nothing() {
        let model = Model {
            servers: 1.0,
            knee: 1.0,
            fall: 0.0,
            types: Vec::new(),
        };
        let mut sharing = Sharing::new(model);
        let begin = sharing.now;
        let ms = Duration::from_millis;
        let mut come = |work_ms: u64| {
            let (done, ended) = oneshot::channel();
            let work_ns = work_ms * 1_000_000;
            sharing.enter(Coming { work_ns, done });
            ended
        };
        let (mut short, mut long) = (come(10), come(30));
        // Both share until 20 ms, and then the long one is alone.
        sharing.advance(begin + ms(19));
        assert!(short.try_recv().is_err());
        assert_eq!(
            sharing
                .next_end()
                .unwrap()
                .duration_since(begin)
                .as_millis(),
            20
        );
        sharing.advance(begin + ms(39));
        assert!(short.try_recv().is_ok() && long.try_recv().is_err());
        sharing.advance(begin + ms(41));
        assert!(long.try_recv().is_ok());
    }
}
