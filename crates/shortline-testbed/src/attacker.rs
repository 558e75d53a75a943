//! One client that tries to get more than its share, or to keep others from theirs: the attacker of
//! the experiment `adversary`.
//!
//! The lab starts it in the clients' namespace (`shortline lab attacker CONFIG`, hidden). It connects
//! from an address of its own, in the clear or over TLS, where each connection is a new session. It asks
//! for one large file, whole or in pieces, over a given number of connections, and replaces a connection
//! that ends after a moment. It goes on until SIGTERM or for a given time at most. Then it writes an
//! [`AttackReport`] to standard output.
//!
//! - **Pieces over HTTP/1.1** are Range requests, [`PIPELINED`] of them under way on a connection. The
//!   next one leaves when one is answered (`answers` reads them).
//! - **Pieces over HTTP/2**, by prior knowledge: a number of streams at a time on a connection (`http2`).
//! - **Trickle**: HTTP/2 streams that ask for the whole file and open a window of one byte, again and again.
//! - **Never read**: asks for the file and leaves the response in a small receive buffer.
//! - **Connect**: completes the handshake, resets the connection, and begins again at once.
//! - **Never acknowledge**: asks for the file and drops all that arrives before TCP sees it (a filter on the
//!   socket). The server sends the same bytes again and again.

mod answers;
mod http2;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize};
use socket2::{SockFilter, SockRef};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

use self::answers::{Answers, Counted};
use crate::process::raise_open_files;
use crate::{TestbedError, tls};

/// Requests under way at a time on a pipelined connection.
pub const PIPELINED: u64 = 16;
/// The pause before an ended connection is replaced.
const AGAIN: Duration = Duration::from_millis(100);
/// The same if the attack only connects.
const SOON: Duration = Duration::from_millis(10);
/// The most bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// The receive buffer of an attacker that never reads. Its window closes after this many bytes.
const UNREAD_BYTES: u32 = 4 << 10;
/// The classic BPF program `ret 0`, which drops every packet.
const DROP_ALL: SockFilter = SockFilter::new(0x06, 0, 0, 0);
/// Descriptors besides those of the connections, which have two each.
const FILES_SPARE: u64 = 100;

/// A connection, in the clear or over TLS.
type Wire = Box<dyn Stream>;

/// What any connection can do.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Why a connection failed.
type Problem = Box<dyn std::error::Error + Send + Sync>;

/// The attacker's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttackConfig {
    /// The server.
    pub server: SocketAddr,
    /// The address it connects from.
    pub from: Ipv4Addr,
    /// The large file's path.
    pub path: String,
    /// How long that file is.
    pub file_bytes: u64,
    /// How many connections.
    pub connections: u32,
    /// What to do on each.
    pub way: Way,
    /// The server's certificate, if it speaks TLS.
    pub certificate: Option<PathBuf>,
    /// How long it attacks before anything is counted, in seconds.
    pub lead_s: u64,
    /// How long it then counts what it receives, in seconds.
    pub counted_s: u64,
    /// The most time of the whole attack, in seconds.
    pub seconds_max: u64,
}

/// What an attacker does on each of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Downloads the file, honestly.
    Download,
    /// Asks for pieces of this many bytes over HTTP/1.1, pipelined.
    Ranges(u64),
    /// The same over HTTP/2.
    Streams {
        /// The bytes of a piece.
        piece_bytes: u64,
        /// Streams at a time.
        at_a_time: u32,
    },
    /// Asks for the file over HTTP/2 with windows of one byte.
    Trickle {
        /// Streams at a time.
        at_a_time: u32,
    },
    /// Asks for the file and reads nothing.
    NeverRead,
    /// Asks for the file and acknowledges nothing.
    NeverAcknowledge,
    /// Connects and resets the connection.
    Connect,
}

/// The result of an attack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttackReport {
    /// Bytes of bodies that it read in the counted time.
    pub body_bytes: u64,
    /// The counted time, in seconds.
    pub counted_s: f64,
    /// Responses that it read to their end, in the whole attack.
    pub answered: u64,
    /// Responses with a status other than 200 and 206, in the whole attack.
    pub refused: u64,
    /// Connections that could not be opened, or failed before the attack ended.
    pub lost: u64,
}

impl AttackReport {
    /// Its goodput, in bits per second of bodies.
    pub fn goodput_bps(&self) -> f64 {
        if self.counted_s > 0.0 {
            self.body_bytes as f64 * 8.0 / self.counted_s
        } else {
            0.0
        }
    }
}

/// Runs the process from start to end. Returns its report, as JSON.
///
/// # Errors
/// If the configuration cannot be read, or there are too few file descriptors.
pub fn run(config_file: &Path) -> Result<String, TestbedError> {
    let text = fs::read_to_string(config_file).map_err(TestbedError::file(config_file))?;
    let config: AttackConfig =
        serde_json::from_str(&text).map_err(TestbedError::content(config_file))?;
    let failed = |error: io::Error| TestbedError::command("lab attacker", &error);
    raise_open_files(2 * u64::from(config.connections) + FILES_SPARE)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(failed)?;
    let report = runtime.block_on(attack(config)).map_err(failed)?;
    // Open connections end with the process.
    runtime.shutdown_background();
    serde_json::to_string(&report).map_err(TestbedError::content(config_file))
}

async fn attack(config: AttackConfig) -> io::Result<AttackReport> {
    let mut terminate = signal(SignalKind::terminate())?;
    let limit = sleep(Duration::from_secs(config.seconds_max));
    let (lead, counted) = (
        Duration::from_secs(config.lead_s),
        Duration::from_secs(config.counted_s),
    );
    let protocol = match config.way {
        Way::Streams { .. } | Way::Trickle { .. } => "h2",
        _ => "http/1.1",
    };
    let certificate = config.certificate.as_deref();
    let tls = certificate.map(|certificate| tls::connector(certificate, protocol));
    let attack = Arc::new(Attack {
        config,
        tls: tls.transpose().map_err(io::Error::other)?,
        totals: Totals::default(),
    });
    for number in 0..attack.config.connections {
        tokio::spawn(Arc::clone(&attack).keep_connected(number));
    }
    let mut window = Window::default();
    tokio::select! {
        () = window.count(&attack.totals, lead, counted) => {}
        _ = terminate.recv() => return Ok(attack.report(&window)),
    }
    tokio::select! {
        () = limit => {}
        _ = terminate.recv() => {}
    }
    Ok(attack.report(&window))
}

/// The time in which received bytes count.
#[derive(Default)]
struct Window {
    begin: Option<(Instant, u64)>,
    end: Option<(Instant, u64)>,
}

impl Window {
    async fn count(&mut self, totals: &Totals, lead: Duration, counted: Duration) {
        sleep(lead).await;
        self.begin = Some((Instant::now(), totals.body_bytes()));
        sleep(counted).await;
        self.end = Some((Instant::now(), totals.body_bytes()));
    }
}

/// The sums over all connections so far.
#[derive(Debug, Default)]
struct Totals {
    body_bytes: AtomicU64,
    answered: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
}

impl Totals {
    fn add(&self, counted: Counted) {
        self.body_bytes
            .fetch_add(counted.body_bytes, Ordering::Relaxed);
        self.answered.fetch_add(counted.answered, Ordering::Relaxed);
        self.refused.fetch_add(counted.refused, Ordering::Relaxed);
    }

    fn body_bytes(&self) -> u64 {
        self.body_bytes.load(Ordering::Relaxed)
    }
}

struct Attack {
    config: AttackConfig,
    tls: Option<TlsConnector>,
    totals: Totals,
}

impl Attack {
    async fn keep_connected(self: Arc<Self>, number: u32) {
        loop {
            // The attack replaces a connection however it ended.
            let ended: Result<(), Problem> = self.connection(number).await;
            if ended.is_err() {
                self.totals.lost.fetch_add(1, Ordering::Relaxed);
            }
            sleep(if ended.is_ok() { SOON } else { AGAIN }).await;
        }
    }

    /// Attacks over one connection until it ends. An end that belongs to the attack is not a failure.
    async fn connection(self: &Arc<Self>, number: u32) -> Result<(), Problem> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((self.config.from, 0)))?;
        if self.config.way == Way::NeverRead {
            socket.set_recv_buffer_size(UNREAD_BYTES)?;
        }
        let tcp = socket.connect(self.config.server).await?;
        tcp.set_nodelay(true)?;
        // A second handle, for socket options once TLS owns the connection.
        let handle = tcp.into_std()?;
        let tcp = TcpStream::from_std(handle.try_clone()?)?;
        let mut stream: Wire = match &self.tls {
            None => Box::new(tcp),
            Some(tls) => {
                let name = ServerName::IpAddress(self.config.server.ip().into());
                Box::new(tls.connect(name, tcp).await?)
            }
        };
        match self.config.way {
            Way::Connect => {
                // A reset leaves no TIME_WAIT, so the ports are not used up.
                SockRef::from(&handle).set_linger(Some(Duration::ZERO))?;
                self.totals.answered.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Way::Download => self.download(stream).await,
            Way::Ranges(piece_bytes) => {
                let pieces = self.pieces(piece_bytes, number);
                self.ranges(stream, pieces).await
            }
            Way::Streams {
                piece_bytes,
                at_a_time,
            } => {
                let pieces = self.pieces(piece_bytes, number);
                http2::ask(Arc::clone(self), stream, pieces, at_a_time).await
            }
            Way::Trickle { at_a_time } => http2::trickle(Arc::clone(self), stream, at_a_time).await,
            Way::NeverRead => {
                stream.write_all(self.request(None).as_bytes()).await?;
                std::future::pending().await
            }
            Way::NeverAcknowledge => {
                SockRef::from(&handle).attach_filter(&[DROP_ALL])?;
                stream.write_all(self.request(None).as_bytes()).await?;
                std::future::pending().await
            }
        }
    }

    async fn download(&self, mut stream: Wire) -> Result<(), Problem> {
        let mut answers = Answers::default();
        let request = self.request(None);
        loop {
            stream.write_all(request.as_bytes()).await?;
            while self.read_some(&mut stream, &mut answers).await? == 0 {}
        }
    }

    async fn ranges(&self, mut stream: Wire, mut pieces: Pieces) -> Result<(), Problem> {
        let mut answers = Answers::default();
        let mut free = PIPELINED;
        loop {
            let requests: String = (0..free)
                .map(|_| self.request(Some(&pieces.next_range())))
                .collect();
            stream.write_all(requests.as_bytes()).await?;
            free = self.read_some(&mut stream, &mut answers).await?;
        }
    }

    /// Reads what has arrived, and returns how many responses ended in it.
    async fn read_some(&self, stream: &mut Wire, answers: &mut Answers) -> Result<u64, Problem> {
        let mut buffer = Vec::with_capacity(READ_BYTES);
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err("the server closed".into());
        }
        let counted = answers.take(&buffer)?;
        self.totals.add(counted);
        Ok(counted.answered)
    }

    fn request(&self, range: Option<&str>) -> String {
        let range = range.map_or(String::new(), |range| format!("Range: {range}\r\n"));
        format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\n{range}\r\n",
            self.config.path, self.config.server
        )
    }

    fn pieces(&self, piece_bytes: u64, connection: u32) -> Pieces {
        Pieces::new(
            self.config.file_bytes,
            piece_bytes,
            u64::from(connection) * PIPELINED,
        )
    }

    fn report(&self, window: &Window) -> AttackReport {
        let now = (Instant::now(), self.totals.body_bytes());
        let begin = window.begin.unwrap_or(now);
        let end = window.end.unwrap_or(now);
        AttackReport {
            body_bytes: end.1 - begin.1,
            counted_s: (end.0 - begin.0).as_secs_f64(),
            answered: self.totals.answered.load(Ordering::Relaxed),
            refused: self.totals.refused.load(Ordering::Relaxed),
            lost: self.totals.lost.load(Ordering::Relaxed),
        }
    }
}

/// The pieces of the file, one after another, then from its beginning again.
#[derive(Clone, Debug)]
struct Pieces {
    piece_bytes: u64,
    number: u64,
    next: u64,
}

impl Pieces {
    fn new(file_bytes: u64, piece_bytes: u64, first: u64) -> Self {
        let number = (file_bytes / piece_bytes.max(1)).max(1);
        Self {
            piece_bytes,
            number,
            next: first % number,
        }
    }

    /// The value of the next `Range` field.
    fn next_range(&mut self) -> String {
        let begin = self.next * self.piece_bytes;
        self.next = (self.next + 1) % self.number;
        format!("bytes={begin}-{}", begin + self.piece_bytes - 1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn pieces_follow_each_other_and_begin_again() {
        let mut pieces = Pieces::new(2_500, 1_000, 1);
        assert_eq!(pieces.next_range(), "bytes=1000-1999");
        assert_eq!(pieces.next_range(), "bytes=0-999");
        assert_eq!(pieces.next_range(), "bytes=1000-1999");
    }

    #[test]
    fn what_it_is_told_is_read_as_it_was_written() {
        let config = AttackConfig {
            server: "10.91.0.1:8080".parse().unwrap(),
            from: Ipv4Addr::new(10, 92, 20, 1),
            path: "/large".into(),
            file_bytes: 10_000,
            connections: 1,
            way: Way::Streams {
                piece_bytes: 1_000,
                at_a_time: 64,
            },
            certificate: Some("site.crt".into()),
            lead_s: 1,
            counted_s: 20,
            seconds_max: 60,
        };
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(
            serde_json::from_str::<AttackConfig>(&text).unwrap(),
            config,
            "{text}"
        );
    }

    #[test]
    fn an_attack_that_was_stopped_before_anything_counted_got_nothing() {
        let attack = Attack {
            config: AttackConfig {
                server: "127.0.0.1:1".parse().unwrap(),
                from: Ipv4Addr::LOCALHOST,
                path: "/large".into(),
                file_bytes: 1,
                connections: 1,
                way: Way::Download,
                certificate: None,
                lead_s: 1,
                counted_s: 1,
                seconds_max: 1,
            },
            tls: None,
            totals: Totals::default(),
        };
        attack.totals.add(Counted {
            body_bytes: 7,
            answered: 1,
            refused: 0,
        });
        let report = attack.report(&Window::default());
        assert_eq!((report.body_bytes, report.answered), (0, 1));
        assert_eq!(report.goodput_bps(), 0.0);
        assert_eq!(
            attack.request(Some("bytes=0-0")),
            "GET /large HTTP/1.1\r\nHost: 127.0.0.1:1\r\nRange: bytes=0-0\r\n\r\n"
        );
    }
}
