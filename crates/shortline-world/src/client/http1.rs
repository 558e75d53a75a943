//! An HTTP/1.1 client. It sends its requests one after another, or all before it reads.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::body::{Body, HeadFields};
use super::{Taken, fields, method, sound, upload, whose};
use crate::network::End;
use crate::requests::Requests;
use crate::scenario::{Ask, ClientPlan, Manner};
use crate::verdict::Outcome;

/// Bytes that are not a request.
const BABBLE: &[&[u8]] = &[
    b"\x00\xff\x00\xff not a request\r\n\r\n",
    b"GET / HTTP/1.1\r\n",
    b"GET / HTTP/9.9\r\nHost: h\r\n\r\n",
    b"POST /app/10/length HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /f3 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
];

/// Makes all planned requests.
pub async fn ask(requests: &Requests, index: usize, plan: &ClientPlan, end: End) {
    let mut client = Http1 {
        requests,
        stream: Taken::new(&requests.world, end, plan.manner),
        read: Vec::new(),
    };
    if plan.manner == Manner::Babbles {
        let babble = BABBLE[index % BABBLE.len()];
        let _ = client.stream.write_all(babble).await;
        let mut answer = Vec::new();
        let _ = client.stream.read_to_end(&mut answer).await;
        return;
    }
    let begun_at_version = requests.version();
    if plan.pipelines {
        for ask in &plan.asks {
            if client.send(index, ask).await.is_err() {
                return;
            }
        }
    }
    for ask in &plan.asks {
        if !plan.pipelines {
            requests.world.sleep(ask.think_ns).await;
        }
        requests.asks(index, ask);
        let version = match plan.pipelines {
            true => begun_at_version,
            false => requests.version(),
        };
        let outcome = client.exchange(index, ask, version, !plan.pipelines).await;
        let (outcome, goes_on) = match outcome {
            Ok(outcome) => outcome,
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                (Outcome::GivenUp, false)
            }
            Err(error) => (Outcome::Broken(error.to_string()), false),
        };
        requests.ended(index, ask, outcome);
        if !goes_on {
            return;
        }
    }
}

struct Http1<'a> {
    requests: &'a Requests,
    stream: Taken,
    /// Bytes read but not parsed yet.
    read: Vec<u8>,
}

/// What the head of a response says.
struct Head {
    told: HeadFields,
    length: Option<u64>,
    chunked: bool,
    closes: bool,
}

impl Http1<'_> {
    async fn send(&mut self, index: usize, ask: &Ask) -> io::Result<()> {
        let body = upload(ask);
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\n",
            method(ask),
            ask.what.target(ask.number),
            ask.host.name()
        );
        for (name, value) in fields(index, ask) {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        self.stream.write_all(head.as_bytes()).await?;
        self.stream.write_all(&body).await
    }

    /// Makes one request and reads its response. Returns whether another may follow on the
    /// connection.
    async fn exchange(
        &mut self,
        index: usize,
        ask: &Ask,
        version: u64,
        sends: bool,
    ) -> io::Result<(Outcome, bool)> {
        if sends {
            // A server may answer and close before it has a whole body.
            let _ = self.send(index, ask).await;
        }
        let head = self.head().await?;
        let status = head.told.status;
        self.requests.headed(ask, status);
        let whose = whose(index, ask);
        let body = Body::of(ask, index as u64, version, &head.told);
        let mut body = sound(self.requests, &whose, body).ok_or(io::ErrorKind::InvalidData)?;
        let has_body = method(ask) != "HEAD" && !matches!(status, 204 | 304);
        match (has_body, head.chunked, head.length) {
            (false, ..) => {}
            (true, true, _) => self.chunks(&whose, &mut body).await?,
            (true, false, Some(length)) => self.bytes(&whose, &mut body, length).await?,
            (true, false, None) => {
                return Ok((Outcome::Broken("no length".to_owned()), false));
            }
        }
        let missing = sound(self.requests, &whose, body.finish());
        match missing.ok_or(io::ErrorKind::InvalidData)? {
            0 => Ok((Outcome::Whole(status), !head.closes)),
            missing => Ok((Outcome::Broken(format!("{missing} bytes less")), false)),
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 8192];
        let length = self.stream.read(&mut buffer).await?;
        self.read.extend_from_slice(&buffer[..length]);
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = self.read.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.read.drain(..at + 2).take(at).collect();
                return String::from_utf8(line).map_err(io::Error::other);
            }
            self.fill().await?;
        }
    }

    async fn head(&mut self) -> io::Result<Head> {
        loop {
            let status = self.line().await?;
            let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
            let mut head = Head {
                told: HeadFields {
                    status: status.ok_or(io::ErrorKind::InvalidData)?,
                    ..HeadFields::default()
                },
                length: None,
                chunked: false,
                closes: false,
            };
            loop {
                let line = self.line().await?.to_ascii_lowercase();
                if line.is_empty() {
                    break;
                }
                match line.split_once(": ") {
                    Some(("content-length", length)) => head.length = length.parse().ok(),
                    Some(("transfer-encoding", "chunked")) => head.chunked = true,
                    Some(("connection", "close")) => head.closes = true,
                    Some(("content-encoding", coding)) => {
                        head.told.coding = Some(coding.to_owned())
                    }
                    Some(("etag", tag)) => head.told.tag = Some(tag.to_owned()),
                    Some(("x-site", site)) => head.told.site = Some(site.to_owned()),
                    _ => {}
                }
            }
            if head.told.status >= 200 {
                return Ok(head);
            }
        }
    }

    async fn bytes(&mut self, whose: &str, body: &mut Body, length: u64) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            if self.read.is_empty() {
                self.fill().await?;
            }
            let here = (self.read.len() as u64).min(left) as usize;
            let bytes: Vec<u8> = self.read.drain(..here).collect();
            sound(self.requests, whose, body.take(&bytes)).ok_or(io::ErrorKind::InvalidData)?;
            left -= here as u64;
        }
        Ok(())
    }

    async fn chunks(&mut self, whose: &str, body: &mut Body) -> io::Result<()> {
        loop {
            let length = self.line().await?;
            let length = u64::from_str_radix(length.trim(), 16).map_err(io::Error::other)?;
            if length == 0 {
                while !self.line().await?.is_empty() {}
                return Ok(());
            }
            self.bytes(whose, body, length).await?;
            if !self.line().await?.is_empty() {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}
