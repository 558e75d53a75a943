//! The uplink as our server found it: `/status` of its admin address, key `link.discovered`.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The longest time for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The states. The samples have their numbers, from 1; 0 is none.
const STATES: [&str; 8] = [
    "",
    "starting",
    "open",
    "searching",
    "confident",
    "yielding",
    "local",
    "blind",
];

/// The uplink as the server found it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Discovered {
    /// The rate that it found, in bits per second; 0 if none.
    pub estimate_bps: u64,
    /// The state's place in `starting`, `open`, `searching`, `confident`, `yielding`, `local`, `blind`,
    /// from 1; 0 if unknown.
    pub state: usize,
}

impl Discovered {
    /// Asks the server with this admin port. The default if there is no port or no answer.
    pub fn read(admin_port: Option<u16>) -> Self {
        let page = admin_port.and_then(|port| admin_page(port, "/status").ok());
        page.and_then(|page| Self::parse(&page)).unwrap_or_default()
    }

    fn parse(page: &str) -> Option<Self> {
        let (_, body) = page.split_once("\r\n\r\n")?;
        let status: serde_json::Value = serde_json::from_str(body).ok()?;
        let found = &status["link"]["discovered"];
        let state = found["state"].as_str()?;
        Some(Self {
            estimate_bps: found["estimate_bps"].as_u64().unwrap_or(0),
            state: STATES.iter().position(|name| *name == state)?,
        })
    }
}

/// A response of the admin address on this machine, in this thread's network namespace, with its head.
///
/// # Errors
/// If nothing answers.
pub fn admin_page(port: u16, path: &str) -> io::Result<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port))?;
    connection.set_read_timeout(Some(ANSWER_MAX))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes())?;
    let mut text = String::new();
    connection.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_read_and_what_is_not_told_is_nothing() {
        let page = |discovered: &str| {
            format!("HTTP/1.1 200 OK\r\nA: b\r\n\r\n{{\"link\":{{\"discovered\":{discovered}}}}}")
        };
        let found = page(r#"{"state":"confident","estimate_bps":9700000}"#);
        let expected = Discovered {
            estimate_bps: 9_700_000,
            state: 4,
        };
        assert_eq!(Discovered::parse(&found), Some(expected));
        let unknown = page(r#"{"state":"open","estimate_bps":null}"#);
        let state = Discovered::parse(&unknown).map(|found| (found.estimate_bps, found.state));
        assert_eq!(state, Some((0, 2)));
        assert_eq!(Discovered::parse(&page("null")), None);
        assert_eq!(Discovered::read(None), Discovered::default());
    }
}
