//! FastCGI application servers: they read the records of a request, and send output and complaints in records of any length.
//! Source: FastCGI 1.0. One request at a time on a connection, as PHP has it.

use std::sync::Arc;

use rand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{LATE_NS, Wanted, piece_bytes};
use crate::network::End;
use crate::world::World;

const BEGIN: u8 = 1;
const END: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
/// The flag of a request after which the connection stays.
const KEEP_CONNECTION: u8 = 1;
/// The share of records behind which a complaint follows.
const COMPLAINTS: f64 = 0.1;

/// Serves one connection until it ends.
pub async fn serve(world: Arc<World>, end: End) {
    let mut backend = Backend {
        world,
        end: Some(end),
    };
    while let Some(request) = backend.request().await {
        let keeps = request.keeps;
        if !backend.answer(&request.wanted()).await || !keeps {
            return;
        }
    }
}

struct Backend {
    world: Arc<World>,
    /// The connection, until it is reset.
    end: Option<End>,
}

#[derive(Default)]
struct Request {
    keeps: bool,
    variables: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn wanted(&self) -> Wanted {
        let target = self.variable("REQUEST_URI").unwrap_or_default();
        let has_body = self.variable("REQUEST_METHOD") == Some("POST");
        let number = self.variable("HTTP_USER_AGENT");
        Wanted::new(target, has_body, number, self.variable("HTTP_X_WHO"))
    }
}

impl Backend {
    /// The next request, whole.
    async fn request(&mut self) -> Option<Request> {
        let (mut request, mut variables) = (Request::default(), Vec::new());
        loop {
            let mut head = [0; 8];
            let end = self.end.as_mut()?;
            end.read_exact(&mut head).await.ok()?;
            let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
            let mut content = vec![0; length + usize::from(head[6])];
            end.read_exact(&mut content).await.ok()?;
            content.truncate(length);
            match head[1] {
                BEGIN => request.keeps = content.get(2)? & KEEP_CONNECTION != 0,
                PARAMS if content.is_empty() => request.variables = pairs(&variables)?,
                PARAMS => variables.extend(content),
                STDIN if content.is_empty() => break,
                STDIN => request.body.extend(content),
                _ => return None,
            }
        }
        request.wanted().check_upload(&self.world, &request.body)?;
        let length = request.variable("CONTENT_LENGTH").unwrap_or_default();
        let is_whole = length.is_empty() || length.parse() == Ok(request.body.len());
        is_whole.then_some(request)
    }

    /// Answers. Returns whether the connection can bring another request.
    async fn answer(&mut self, asked: &Wanted) -> bool {
        let world = Arc::clone(&self.world);
        world.note(format_args!("a program answers {}", asked.target));
        let body = asked.body();
        let has_length = ![
            "chunks",
            "close",
            "ends-early-in-chunks",
            "resets-in-chunks",
        ]
        .contains(&&*asked.answer);
        let length = match has_length {
            true => format!("Content-Length: {}\r\n", body.len()),
            false => String::new(),
        };
        let head = format!("Status: 200 OK\r\n{length}Content-Type: image/png\r\n\r\n");
        let output = [head.as_bytes(), &body].concat();
        match &*asked.answer {
            "never" => {
                let end = self.end.as_mut();
                let mut byte = [0];
                if let Some(end) = end {
                    // Until the other side has gone.
                    let _ = end.read(&mut byte).await;
                }
                return false;
            }
            answer if answer.starts_with("ends-early") || answer.starts_with("resets") => {
                self.send_output(&output[..output.len() - body.len().div_ceil(2)])
                    .await;
                self.break_off(asked).await;
                return false;
            }
            answer => {
                if answer == "late" {
                    world.sleep(LATE_NS).await;
                }
                self.send_output(&output).await;
            }
        }
        self.send_record(STDOUT, &[]).await;
        self.send_record(END, &[0; 8]).await;
        asked.answer != "close" && !world.chance(0.1)
    }

    /// Ends in the middle of a record, or at its end.
    async fn break_off(&mut self, asked: &Wanted) {
        let cut = self.world.chance(0.5);
        if cut {
            // A record of a hundred bytes that ends after some of them.
            self.send(&[1, STDOUT, 0, 1, 0, 100, 0, 0]).await;
        }
        if let Some(end) = self.end.take()
            && asked.answer.starts_with("resets")
        {
            end.reset();
        }
    }

    async fn send_output(&mut self, output: &[u8]) {
        let mut rest = output;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_bytes(&self.world, rest.len()).await);
            self.send_record(STDOUT, piece).await;
            if self.world.chance(COMPLAINTS) {
                self.send_record(STDERR, b"PHP Notice: a complaint").await;
            }
            rest = after;
        }
    }

    async fn send_record(&mut self, kind: u8, content: &[u8]) {
        let padding: u8 = self.world.draw(|random| random.random());
        let [high, low] = (content.len() as u16).to_be_bytes();
        let head = [1, kind, 0, 1, high, low, padding, 0];
        let padding = vec![0xee; usize::from(padding)];
        self.send(&[&head, content, &padding].concat()).await;
    }

    async fn send(&mut self, bytes: &[u8]) {
        if let Some(end) = &mut self.end {
            // The other side may have gone.
            let _ = end.write_all(bytes).await;
        }
    }
}

/// The variables of a request (3.4): two lengths of one byte or four, then name and value.
fn pairs(mut bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (name, value) = (length(&mut bytes)?, length(&mut bytes)?);
        let (pair, rest) = bytes.split_at_checked(name + value)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        all.push((text(&pair[..name]), text(&pair[name..])));
        bytes = rest;
    }
    Some(all)
}

fn length(bytes: &mut &[u8]) -> Option<usize> {
    let (first, rest) = bytes.split_first()?;
    if *first < 128 {
        *bytes = rest;
        return Some(usize::from(*first));
    }
    let (four, rest) = bytes.split_at_checked(4)?;
    *bytes = rest;
    let four: [u8; 4] = four.try_into().ok()?;
    Some((u32::from_be_bytes(four) & !(1 << 31)) as usize)
}
