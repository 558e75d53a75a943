//! HTTP/1.1 application servers.

use std::sync::Arc;

use rand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Knowledge, LATE_NS, NUMBER_FIELD, Owner, WHO_FIELD, Wanted, kept, piece_bytes};
use crate::network::End;
use crate::scenario::{Behind, KeptKind};
use crate::world::World;

/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The share of responses that may be kept and come later than they are made, and how much later, in nanoseconds.
const SLOW: f64 = 0.3;
const SLOW_NS_MAX: u64 = 300_000_000;
/// What looks like a response, behind one.
const ANOTHER_RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong";

/// Serves one connection until it ends.
pub async fn serve(world: Arc<World>, knows: Knowledge, end: End) {
    let mut backend = Backend {
        world,
        knows,
        end: Some(end),
        read: Vec::new(),
    };
    while let Some(head) = backend.head().await {
        let asked = asked(&head);
        let body = backend.body(&head).await;
        let Some(body) = body else {
            return;
        };
        if asked.check_upload(&backend.world, &body).is_none() {
            return;
        }
        let goes_on = match KeptKind::of_name(&asked.answer) {
            Some(kind) => backend.answer_kept(&asked, kind, &head).await,
            None => backend.answer(&asked).await,
        };
        if !goes_on {
            return;
        }
    }
}

struct Backend {
    world: Arc<World>,
    knows: Knowledge,
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
        let body = asked.body();
        let head_of = |framing: &str| head(asked, framing);
        let chunked = head_of("Transfer-Encoding: chunked");
        let measured = head_of(&format!("Content-Length: {bytes}"));
        let world = Arc::clone(&self.world);
        world.note(format_args!("a backend answers {}", asked.target));
        let half = body.len() / 2;
        match asked.answer.as_str() {
            "chunks" => {
                self.send(chunked.as_bytes()).await;
                self.send_chunks(&body).await;
                self.send(b"0\r\n\r\n").await;
            }
            "close" => {
                self.send(head_of("Connection: close").as_bytes()).await;
                self.send_pieces(&body).await;
                return false;
            }
            "ends-early" | "resets" => {
                self.send(measured.as_bytes()).await;
                self.send_pieces(&body[..half]).await;
                self.give_up(asked);
                return false;
            }
            "ends-early-in-chunks" | "resets-in-chunks" => {
                self.send(chunked.as_bytes()).await;
                self.send_chunks(&body[..half]).await;
                self.give_up(asked);
                return false;
            }
            "never" => {
                while self.fill().await.is_some() {}
                return false;
            }
            "too-much" => {
                let all = [measured.as_bytes(), &body, ANOTHER_RESPONSE].concat();
                self.send_pieces(&all).await;
            }
            answer => {
                if answer == "late" {
                    world.sleep(LATE_NS).await;
                }
                self.send(measured.as_bytes()).await;
                self.send_pieces(&body).await;
            }
        }
        // Sometimes it closes silently, which whoever keeps the connection must tolerate.
        !world.chance(0.1)
    }

    /// Answers with what may be kept. Returns as [`Self::answer`].
    async fn answer_kept(&mut self, asked: &Wanted, kind: KeptKind, head: &[String]) -> bool {
        let world = Arc::clone(&self.world);
        let version = self.knows.version(world.now_ns());
        let owner = Owner {
            version,
            who: asked.who,
            number: asked.number,
        };
        world.note(format_args!(
            "a backend answers {}, version {version}",
            asked.target
        ));
        // What it has made may be old by the time that it says it.
        if world.chance(SLOW) {
            let slow_ns = world.draw(|random| random.random_range(0..SLOW_NS_MAX));
            world.sleep(slow_ns).await;
        }
        let tag = format!("\"v{version}\"");
        let terms = match kind {
            KeptKind::Public | KeptKind::Chunks | KeptKind::Lies => "Cache-Control: max-age=2",
            KeptKind::Stale => "Cache-Control: max-age=1, stale-while-revalidate=5",
            KeptKind::Private => "Cache-Control: private, max-age=60",
            KeptKind::Cookie => "Cache-Control: max-age=60\r\nSet-Cookie: a=b",
            KeptKind::Varies => "Cache-Control: max-age=2\r\nVary: X-Who",
        };
        let begin = |status: &str| format!("HTTP/1.1 {status}\r\n{terms}\r\nETag: {tag}\r\n");
        if field(head, "if-none-match") == Some(&*tag) {
            let head = format!("{}\r\n", begin("304 Not Modified"));
            self.send(head.as_bytes()).await;
            return !world.chance(0.1);
        }
        let body = kept(kind, asked.name, asked.bytes, owner).piece(0, asked.bytes as usize);
        let begin = begin("200 OK");
        match kind {
            KeptKind::Chunks => {
                let head = format!("{begin}Transfer-Encoding: chunked\r\n\r\n");
                self.send(head.as_bytes()).await;
                self.send_chunks(&body).await;
                self.send(b"0\r\n\r\n").await;
            }
            KeptKind::Lies => {
                let head = format!("{begin}Content-Length: {}\r\n\r\n", body.len() + 1);
                self.send(head.as_bytes()).await;
                self.send_pieces(&body).await;
                return false;
            }
            _ => {
                let head = format!("{begin}Content-Length: {}\r\n\r\n", body.len());
                self.send(head.as_bytes()).await;
                self.send_pieces(&body).await;
            }
        }
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
            let (piece, after) = rest.split_at(piece_bytes(&self.world, rest.len()).await);
            self.send(piece).await;
            rest = after;
        }
    }

    async fn send_chunks(&mut self, body: &[u8]) {
        let mut rest = body;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_bytes(&self.world, rest.len()).await);
            self.send(format!("{:x}\r\n", piece.len()).as_bytes()).await;
            self.send(piece).await;
            self.send(b"\r\n").await;
            rest = after;
        }
    }
}

/// The head of a response that is delimited so.
fn head(asked: &Wanted, framing: &str) -> String {
    let kind = match asked.behind {
        Some(Behind::Texts) => "Content-Type: text/plain\r\n",
        _ => "",
    };
    let coding = match &*asked.answer {
        "packed" => "Content-Encoding: gzip\r\n",
        _ => "",
    };
    format!("HTTP/1.1 200 OK\r\n{kind}{coding}{framing}\r\n\r\n")
}

fn field<'a>(head: &'a [String], name: &str) -> Option<&'a str> {
    head.iter().find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn asked(head: &[String]) -> Wanted {
    let request = head.first().map_or("", String::as_str);
    let target = request.split(' ').nth(1).unwrap_or("");
    let has_body = request.starts_with("POST");
    let (number, who) = (field(head, NUMBER_FIELD), field(head, WHO_FIELD));
    Wanted::new(target, has_body, number, who)
}
