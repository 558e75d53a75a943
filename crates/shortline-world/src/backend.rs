//! HTTP/1.1 application servers. They check what they are sent, and answer or fail as the target
//! says.

use std::sync::Arc;

use rand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::content::{self, Checked};
use crate::network::End;
use crate::verdict::Fault;
use crate::world::World;

/// The port of the backend that always listens.
pub const SOUND_PORT: u16 = 1;
/// The port of the backend that sometimes refuses connections.
pub const FLAKY_PORT: u16 = 2;
/// The share of connections that it refuses.
const REFUSALS: f64 = 0.2;
/// A request's body is content named by its number plus this.
pub const UPLOAD_KEY: u64 = 1_000_000;
/// A response's body is content named by its length plus this.
pub const RELAYED_KEY: u64 = 2_000_000;
/// How long a late backend waits before it answers, in nanoseconds.
const LATE_NS: u64 = 700_000_000;
/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// The share of connections that the backend at `port` refuses.
pub fn refusals(port: u16) -> f64 {
    if port == FLAKY_PORT { REFUSALS } else { 0.0 }
}

/// What the target asks for.
struct Wanted {
    target: String,
    number: u64,
    bytes: u64,
    answer: String,
    has_body: bool,
}

/// Serves one connection until it ends.
pub async fn serve(world: Arc<World>, end: End) {
    let mut backend = Backend {
        world,
        end: Some(end),
        read: Vec::new(),
    };
    while let Some(head) = backend.head().await {
        let asked = asked(&head);
        let body = backend.body(&head).await;
        let Some(body) = body else {
            return;
        };
        if let Err(what) = check_upload(&asked, &body) {
            let whose = asked.target;
            backend.world.report(Fault::Upload { whose, what });
            return;
        }
        if !backend.answer(&asked).await {
            return;
        }
    }
}

fn check_upload(asked: &Wanted, body: &[u8]) -> Result<(), String> {
    if !asked.has_body {
        return Ok(());
    }
    let mut checked = Checked::new(UPLOAD_KEY + asked.number, 0, body.len() as u64);
    checked.take(body)
}

struct Backend {
    world: Arc<World>,
    /// The connection, until it is reset.
    end: Option<End>,
    /// Bytes read but not parsed yet.
    read: Vec<u8>,
}

impl Backend {
    async fn fill(&mut self) -> Option<()> {
        let mut buffer = [0; 4096];
        let length = self.end.as_mut()?.read(&mut buffer).await.ok()?;
        self.read.extend_from_slice(&buffer[..length]);
        (length > 0).then_some(())
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.read.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.read.drain(..at + 2).take(at).collect();
                return String::from_utf8(line).ok();
            }
            if self.read.len() > HEAD_BYTES_MAX {
                return None;
            }
            self.fill().await?;
        }
    }

    async fn head(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Some(lines);
            }
            lines.push(line);
        }
    }

    async fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.read.len() < length {
            self.fill().await?;
        }
        Some(self.read.drain(..length).collect())
    }

    /// The request's body. `None` if it breaks off.
    async fn body(&mut self, head: &[String]) -> Option<Vec<u8>> {
        if field(head, "transfer-encoding").is_some() {
            let mut body = Vec::new();
            loop {
                let length = usize::from_str_radix(self.line().await?.trim(), 16).ok()?;
                if length == 0 {
                    while !self.line().await?.is_empty() {}
                    return Some(body);
                }
                body.extend(self.take(length).await?);
                self.line().await?;
            }
        }
        let length = field(head, "content-length").and_then(|length| length.parse().ok());
        self.take(length.unwrap_or(0)).await
    }

    /// Answers. Returns whether the connection can bring another request.
    async fn answer(&mut self, asked: &Wanted) -> bool {
        let bytes = asked.bytes;
        let body = content::piece(RELAYED_KEY + bytes, 0, bytes as usize);
        let world = Arc::clone(&self.world);
        world.note(format_args!("a backend answers {}", asked.target));
        let half = body.len() / 2;
        match asked.answer.as_str() {
            "chunks" => {
                self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    .await;
                self.send_chunks(&body).await;
                self.send(b"0\r\n\r\n").await;
            }
            "close" => {
                self.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
                    .await;
                self.send_pieces(&body).await;
                return false;
            }
            "ends-early" | "resets" => {
                self.send(head_of(bytes).as_bytes()).await;
                self.send_pieces(&body[..half]).await;
                self.give_up(asked);
                return false;
            }
            "ends-early-in-chunks" | "resets-in-chunks" => {
                self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    .await;
                self.send_chunks(&body[..half]).await;
                self.give_up(asked);
                return false;
            }
            "never" => {
                while self.fill().await.is_some() {}
                return false;
            }
            answer => {
                if answer == "late" {
                    world.sleep(LATE_NS).await;
                }
                self.send(head_of(bytes).as_bytes()).await;
                self.send_pieces(&body).await;
            }
        }
        // Sometimes it closes silently, which whoever keeps the connection must tolerate.
        !world.chance(0.1)
    }

    fn give_up(&mut self, asked: &Wanted) {
        if let Some(end) = self.end.take()
            && asked.answer.starts_with("resets")
        {
            end.reset();
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        if let Some(end) = &mut self.end {
            // The other side may have gone.
            let _ = end.write_all(bytes).await;
        }
    }

    async fn send_pieces(&mut self, body: &[u8]) {
        let mut rest = body;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(self.piece_bytes(rest.len()).await);
            self.send(piece).await;
            rest = after;
        }
    }

    async fn send_chunks(&mut self, body: &[u8]) {
        let mut rest = body;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(self.piece_bytes(rest.len()).await);
            self.send(format!("{:x}\r\n", piece.len()).as_bytes()).await;
            self.send(piece).await;
            self.send(b"\r\n").await;
            rest = after;
        }
    }

    /// How many bytes come next, sometimes after a pause.
    async fn piece_bytes(&self, left: usize) -> usize {
        let (pause_ns, bytes) = self.world.draw(|random| {
            let pauses = random.random_bool(0.1);
            let pause_ns = random.random_range(0..5_000_000);
            (pauses.then_some(pause_ns), random.random_range(1..60_000))
        });
        if let Some(pause_ns) = pause_ns {
            self.world.sleep(pause_ns).await;
        }
        left.min(bytes)
    }
}

fn head_of(bytes: u64) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n")
}

fn field<'a>(head: &'a [String], name: &str) -> Option<&'a str> {
    head.iter().find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn asked(head: &[String]) -> Wanted {
    let request = head.first().map_or("", String::as_str);
    let target = request.split(' ').nth(1).unwrap_or("").to_owned();
    let (path, number) = target.split_once('?').unwrap_or((&target, "0"));
    let mut parts = path.trim_start_matches("/app/").split('/');
    let bytes = parts.next().and_then(|bytes| bytes.parse().ok());
    Wanted {
        number: number.parse().unwrap_or(0),
        bytes: bytes.unwrap_or(0),
        answer: parts.next().unwrap_or("").to_owned(),
        has_body: request.starts_with("POST"),
        target,
    }
}
