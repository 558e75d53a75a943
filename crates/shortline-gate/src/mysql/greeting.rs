//! The two packets that open a connection (MySQL's source documentation, "Connection Phase
//! Packets"): the server's greeting (`HandshakeV10`) and the client's answer
//! (`HandshakeResponse41`). An `SSLRequest`, which is the first 32 bytes of the answer, may come
//! before the answer.
//!
//! Both pass unchanged except for their capabilities. MariaDB keeps its further capabilities in
//! bytes that MySQL leaves zero. They are there if the sender does not claim to be MySQL.

use super::capability::{
    self, CONNECT_ATTRS, CONNECT_WITH_DB, Capabilities, MYSQL, PLUGIN_AUTH, PLUGIN_AUTH_LENENC,
    PROTOCOL_41, SECURE_CONNECTION, SSL,
};
use super::scramble::NONCE_BYTES;
use super::value;
use crate::classify::ClientNames;

/// The length of an `SSLRequest`.
pub const SSL_REQUEST_BYTES: usize = 32;
/// The position of MariaDB's capabilities in a client's answer.
const CLIENT_MARIADB_AT: usize = 28;
/// The position of the collation in a client's answer.
const COLLATION_AT: usize = 8;
/// The offset from the lower capabilities of a greeting to MariaDB's: 2 of these, charset, 2 of
/// status, 2 of upper capabilities, a length, 6 reserved.
const SERVER_MARIADB_OFFSET: usize = 14;
/// The offset from the lower capabilities to the length of the nonce.
const NONCE_LENGTH_OFFSET: usize = 7;
/// The bytes of the nonce that stand before the capabilities.
const NONCE_FIRST_BYTES: usize = 8;
/// The offset from the lower capabilities to the upper ones.
const SERVER_UPPER_OFFSET: usize = 5;

/// Bytes that are not such a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GreetingError {
    /// Another protocol.
    #[error("the server's greeting has protocol version {0}, and the gate reads 10")]
    Version(u8),
    /// The packet ends too early.
    #[error("the {0} is cut short")]
    Short(&'static str),
    /// A client older than MySQL 4.1.
    #[error("the client does not speak the protocol of MySQL 4.1 and later")]
    Old,
}

/// A server's greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    payload: Vec<u8>,
    thread_id: u32,
    capabilities_at: usize,
}

impl Greeting {
    /// Reads a payload.
    ///
    /// # Errors
    /// [`GreetingError`]
    pub fn parse(payload: Vec<u8>) -> Result<Self, GreetingError> {
        const SHORT: GreetingError = GreetingError::Short("server's greeting");
        let mut rest = payload.as_slice();
        match value::byte(&mut rest).ok_or(SHORT)? {
            10 => {}
            other => return Err(GreetingError::Version(other)),
        }
        value::text(&mut rest).ok_or(SHORT)?;
        let thread_id = value::integer(&mut rest, 4).ok_or(SHORT)? as u32;
        // The first part of the authentication data, and a filler.
        value::take(&mut rest, 9).ok_or(SHORT)?;
        let capabilities_at = payload.len() - rest.len();
        if rest.len() < SERVER_MARIADB_OFFSET + 4 {
            return Err(SHORT);
        }
        Ok(Self {
            payload,
            thread_id,
            capabilities_at,
        })
    }

    /// The packet's payload.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The lower 32 bits of the number by which KILL names the connection.
    pub fn thread_id(&self) -> u32 {
        self.thread_id
    }

    /// The server's version string.
    pub fn version(&self) -> &[u8] {
        let mut rest = &self.payload[1..];
        value::text(&mut rest).expect("parse has found its end")
    }

    /// The number of the collation that sessions begin with.
    pub fn collation(&self) -> u8 {
        self.payload[self.capabilities_at + 2]
    }

    /// The nonce for a proof of the password. Missing bytes are zero.
    pub fn nonce(&self) -> [u8; NONCE_BYTES] {
        let mut nonce = [0; NONCE_BYTES];
        let first = &self.payload[self.capabilities_at - 9..][..NONCE_FIRST_BYTES];
        let rest = self
            .payload
            .get(self.capabilities_at + SERVER_MARIADB_OFFSET + 4..)
            .unwrap_or_default();
        for (at, byte) in nonce.iter_mut().zip(first.iter().chain(rest)) {
            *at = *byte;
        }
        nonce
    }

    /// The name of the server's authentication plugin.
    pub fn method(&self) -> &[u8] {
        // At least 13 bytes: the rest of the nonce and a zero.
        let length = usize::from(self.payload[self.capabilities_at + NONCE_LENGTH_OFFSET]);
        let nonce_bytes = length.saturating_sub(NONCE_FIRST_BYTES).max(13);
        let at = self.capabilities_at + SERVER_MARIADB_OFFSET + 4 + nonce_bytes;
        let mut rest = self.payload.get(at..).unwrap_or_default();
        value::text(&mut rest).unwrap_or(rest)
    }

    /// The capabilities that the server offers.
    pub fn capabilities(&self) -> Capabilities {
        let at = self.capabilities_at;
        let lower = self.integer(at, 2);
        let upper = self.integer(at + SERVER_UPPER_OFFSET, 2);
        let capabilities = lower | upper << 16;
        if capabilities & MYSQL != 0 {
            return capabilities;
        }
        capabilities | self.integer(at + SERVER_MARIADB_OFFSET, 4) << 32
    }

    /// Offers these instead. MariaDB's are set only if the server has any.
    pub fn set_capabilities(&mut self, capabilities: Capabilities) {
        let is_mariadb = self.capabilities() & MYSQL == 0;
        let at = self.capabilities_at;
        let bytes = capabilities.to_le_bytes();
        self.payload[at..at + 2].copy_from_slice(&bytes[..2]);
        let upper_at = at + SERVER_UPPER_OFFSET;
        self.payload[upper_at..upper_at + 2].copy_from_slice(&bytes[2..4]);
        if is_mariadb {
            let mariadb_at = at + SERVER_MARIADB_OFFSET;
            self.payload[mariadb_at..mariadb_at + 4].copy_from_slice(&bytes[4..]);
        }
    }

    fn integer(&self, at: usize, count: usize) -> u64 {
        value::integer(&mut &self.payload[at..], count).expect("parse has checked the length")
    }
}

/// A client's answer, or the `SSLRequest` before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer(Vec<u8>);

impl Answer {
    /// Reads a payload.
    ///
    /// # Errors
    /// [`GreetingError`]
    pub fn parse(payload: Vec<u8>) -> Result<Self, GreetingError> {
        const SHORT: GreetingError = GreetingError::Short("client's answer");
        let lower = value::integer(&mut payload.as_slice(), 2).ok_or(SHORT)?;
        if lower & PROTOCOL_41 == 0 {
            return Err(GreetingError::Old);
        }
        if payload.len() < SSL_REQUEST_BYTES {
            return Err(SHORT);
        }
        Ok(Self(payload))
    }

    /// The packet's payload.
    pub fn payload(&self) -> &[u8] {
        &self.0
    }

    /// Whether this asks for TLS, with the answer itself still to come.
    pub fn is_ssl_request(&self) -> bool {
        self.0.len() == SSL_REQUEST_BYTES && self.capabilities() & SSL != 0
    }

    /// An `SSLRequest` with the same capabilities as this answer.
    pub fn ssl_request(&self) -> Self {
        let mut request = Self(self.0[..SSL_REQUEST_BYTES].to_vec());
        request.set_capabilities(request.capabilities() | SSL);
        request
    }

    /// The offered capabilities that the client asks for.
    pub fn capabilities(&self) -> Capabilities {
        let lower = self.integer(0);
        if lower & MYSQL != 0 {
            return lower;
        }
        lower | self.integer(CLIENT_MARIADB_AT) << 32
    }

    /// Asks for these instead. MariaDB's are set only if the client has any.
    pub fn set_capabilities(&mut self, capabilities: Capabilities) {
        let is_mariadb = self.capabilities() & MYSQL == 0;
        let bytes = capabilities.to_le_bytes();
        self.0[..4].copy_from_slice(&bytes[..4]);
        if is_mariadb {
            self.0[CLIENT_MARIADB_AT..SSL_REQUEST_BYTES].copy_from_slice(&bytes[4..]);
        }
    }

    /// The number of the collation that the client begins with.
    pub fn collation(&self) -> u8 {
        self.0[COLLATION_AT]
    }

    /// The plugin's name and the proof in the answer. Both are empty if they cannot be read.
    pub fn proof(&self) -> (Vec<u8>, Vec<u8>) {
        self.read_proof().unwrap_or_default()
    }

    fn read_proof(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let rest = &mut &self.0[SSL_REQUEST_BYTES..];
        value::text(rest)?;
        let proof = self.read_secret(rest)?;
        if self.capabilities() & CONNECT_WITH_DB != 0 {
            value::text(rest)?;
        }
        let name = match self.capabilities() & PLUGIN_AUTH {
            0 => &[],
            _ => value::text(rest)?,
        };
        Some((name.to_vec(), proof.to_vec()))
    }

    fn read_secret<'a>(&self, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let has = |capability| self.capabilities() & capability != 0;
        if has(PLUGIN_AUTH_LENENC) {
            value::length_encoded_bytes(rest)
        } else if has(SECURE_CONNECTION) {
            let length = value::byte(rest)?;
            value::take(rest, length.into())
        } else {
            value::text(rest)
        }
    }

    /// The names that may decide types, as far as they can be read.
    pub fn names(&self) -> ClientNames {
        let mut names = ClientNames::default();
        // An incomplete name is unknown. The server will report the error.
        let _ = self.read_names(&mut names);
        names
    }

    fn read_names(&self, names: &mut ClientNames) -> Option<()> {
        let capabilities = self.capabilities();
        let has = |capability| capabilities & capability != 0;
        let rest = &mut &self.0[SSL_REQUEST_BYTES..];
        names.user = readable(value::text(rest)?);
        self.read_secret(rest)?;
        if has(CONNECT_WITH_DB) {
            names.database = readable(value::text(rest)?);
        }
        if has(PLUGIN_AUTH) {
            value::text(rest)?;
        }
        if has(CONNECT_ATTRS) {
            let attributes = &mut value::length_encoded_bytes(rest)?;
            while let Some(key) = value::length_encoded_bytes(attributes) {
                let text = value::length_encoded_bytes(attributes)?;
                if key == b"program_name" {
                    names.application_name = readable(text);
                }
            }
        }
        Some(())
    }

    fn integer(&self, at: usize) -> u64 {
        value::integer(&mut &self.0[at..], 4).expect("parse has checked the length")
    }
}

fn readable(text: &[u8]) -> Option<Box<str>> {
    (!text.is_empty()).then(|| String::from_utf8_lossy(text).into())
}

/// The capabilities that the gate offers a client in the name of a server.
pub fn offered(server: Capabilities, has_tls: bool) -> Capabilities {
    let offered = server & capability::KNOWN & !SSL;
    if has_tls { offered | SSL } else { offered }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The greeting of a MariaDB 10.11 server, taken from its socket.
    const MARIADB: &[u8] = b"\x0a5.5.5-10.11.6-MariaDB\0\x1f\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0\
        ijklmnopqrst\0mysql_native_password\0";

    #[test]
    fn a_greeting_keeps_all_but_its_capabilities() {
        let mut greeting = Greeting::parse(MARIADB.to_vec()).unwrap();
        assert_eq!(greeting.thread_id(), 31);
        assert_eq!(&greeting.nonce(), b"abcdefghijklmnopqrst");
        assert_eq!(greeting.method(), b"mysql_native_password");
        assert_eq!(greeting.capabilities(), 0x1d_81ff_f7fe);
        greeting.set_capabilities(greeting.capabilities());
        assert_eq!(greeting.payload(), MARIADB);
        greeting.set_capabilities(offered(greeting.capabilities(), true) & !(1 << 32));
        assert_eq!(greeting.capabilities(), 0x1c_81ff_fffe);
        let changed = MARIADB
            .iter()
            .zip(greeting.payload())
            .filter(|(a, b)| a != b)
            .count();
        assert_eq!(changed, 2);
    }

    #[test]
    fn what_greets_otherwise_is_told() {
        assert_eq!(Greeting::parse(vec![9, 0]), Err(GreetingError::Version(9)));
        for end in 0..MARIADB.len() - 36 {
            let short = Greeting::parse(MARIADB[..end].to_vec()).unwrap_err();
            assert_eq!(short, GreetingError::Short("server's greeting"));
        }
        assert_eq!(Answer::parse(vec![0, 0, 0]), Err(GreetingError::Old));
        assert_eq!(
            Answer::parse(vec![0]),
            Err(GreetingError::Short("client's answer"))
        );
        let short = Answer::parse(vec![0, 2, 0, 0, 0]);
        assert_eq!(short, Err(GreetingError::Short("client's answer")));
    }

    fn answer(capabilities: Capabilities, rest: &[u8]) -> Answer {
        let mut payload = vec![0; SSL_REQUEST_BYTES];
        payload[..4].copy_from_slice(&capabilities.to_le_bytes()[..4]);
        payload.extend_from_slice(rest);
        Answer::parse(payload).unwrap()
    }

    #[test]
    fn names_are_found() {
        let all = PROTOCOL_41 | CONNECT_WITH_DB | PLUGIN_AUTH | CONNECT_ATTRS;
        let rest = b"root\0\x02\x01\x02shop\0mysql_native_password\0\x16\x03pid\x011\x0cprogram_name\x02ab";
        let names = answer(all | SECURE_CONNECTION, rest).names();
        assert_eq!(names.application_name.as_deref(), Some("ab"));
        assert_eq!(names.user.as_deref(), Some("root"));
        assert_eq!(names.database.as_deref(), Some("shop"));
        let names = answer(all, b"root\0xx").names();
        assert_eq!((names.user.is_some(), names.database), (true, None));
    }

    #[test]
    fn an_ssl_request_is_the_front_of_an_answer() {
        let answer = answer(PROTOCOL_41, b"root\0");
        assert!(!answer.is_ssl_request());
        assert!(answer.ssl_request().is_ssl_request());
        assert_eq!(answer.ssl_request().capabilities(), PROTOCOL_41 | SSL);
    }

    proptest! {
        #[test]
        fn any_packets_are_read(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            for first in [None, Some(10)] {
                let payload: Vec<u8> = first.into_iter().chain(bytes.iter().copied()).collect();
                if let Ok(mut greeting) = Greeting::parse(payload.clone()) {
                    greeting.set_capabilities(offered(greeting.capabilities(), false));
                    prop_assert_eq!(greeting.payload().len(), payload.len());
                    prop_assert!(greeting.method().len() < payload.len());
                    prop_assert_eq!(greeting.nonce().len(), 20);
                }
                if let Ok(mut answer) = Answer::parse(payload.clone()) {
                    answer.names();
                    answer.proof();
                    let capabilities = answer.capabilities();
                    answer.set_capabilities(capabilities);
                    prop_assert_eq!(answer.payload(), payload);
                }
            }
        }
    }
}
