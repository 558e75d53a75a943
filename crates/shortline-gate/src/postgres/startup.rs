//! A client's packets before authentication: a request for encryption, a cancel request, or the
//! StartupMessage with user and database (PostgreSQL's documentation, 55.2.1, 55.2.8 to 55.2.10
//! and 55.7).

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::messages::text;
use super::reply::Complaint;
use crate::relay::tls::ClientTls;
use crate::relay::{Socket, Stream};

/// The longest packet, in bytes: PostgreSQL's MAX_STARTUP_PACKET_LENGTH.
pub const PACKET_BYTES_MAX: usize = 10_000;
const CANCEL_CODE: u32 = 80_877_102;
const TLS_CODE: u32 = 80_877_103;
const GSS_CODE: u32 = 80_877_104;
/// The first byte of a TLS handshake. Some clients begin with it directly.
const TLS_HANDSHAKE: u8 = 0x16;
/// Length and code.
const PREFIX_BYTES: usize = 8;

/// How a client begins.
#[derive(Debug)]
pub enum Beginning {
    /// It requests a session.
    Session {
        /// The client, on TLS if it asked for it.
        client: Stream,
        /// Its packet.
        startup: Startup,
    },
    /// It sends a cancel request for another connection.
    Cancel {
        /// The client. It treats the close of its connection as the end of the request.
        client: Stream,
        /// The packet.
        packet: Vec<u8>,
    },
    /// It has closed without a request, like the probes of load balancers.
    Gone,
}

/// Why a client gets no further.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// The socket broke, or TLS did.
    #[error("while the client began: {0}")]
    Io(#[from] io::Error),
    /// The packet is not acceptable.
    #[error("{complaint}")]
    Refused {
        /// The error for the client.
        complaint: Complaint,
        /// The client.
        client: Box<Stream>,
    },
}

/// A StartupMessage.
#[derive(Debug, PartialEq, Eq)]
pub struct Startup {
    /// The whole packet. It goes to the backend unchanged, unless a suffix was added to
    /// `application_name`.
    pub packet: Vec<u8>,
}

impl Startup {
    /// Reads a packet as a StartupMessage.
    ///
    /// # Errors
    /// The error for the client.
    pub fn parse(packet: Vec<u8>) -> Result<Self, Complaint> {
        let refused = |message: &str| Err(Complaint::new("08P01", message));
        let Some([_, _, _, _, major_high, major_low, _, _]) = packet.first_chunk() else {
            return refused("invalid length of startup packet");
        };
        let major = u16::from_be_bytes([*major_high, *major_low]);
        if major != 3 {
            return Err(Complaint::new(
                "0A000",
                format!("unsupported frontend protocol {major}: server supports 3"),
            ));
        }
        if packet.len() == PREFIX_BYTES || packet.last() != Some(&0) {
            return refused("invalid startup packet layout: expected terminator as last byte");
        }
        Ok(Self { packet })
    }

    /// The value of the last parameter of this name, which is the one that PostgreSQL takes.
    pub fn parameter(&self, name: &str) -> Option<&[u8]> {
        let named = self.parameters().filter(|(key, _)| *key == name.as_bytes());
        named.last().map(|(_, value)| value)
    }

    /// The database that the client asks for. PostgreSQL's default, also for an empty name, is the user's name.
    pub fn database(&self) -> Option<&[u8]> {
        let named = self.parameter("database").filter(|name| !name.is_empty());
        named.or_else(|| self.parameter("user"))
    }

    /// All parameters in their order.
    pub fn parameters(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &self.packet[PREFIX_BYTES..];
        std::iter::from_fn(move || {
            let (key, behind) = text(rest);
            let (value, behind) = text(behind);
            rest = behind;
            (!key.is_empty()).then_some((key, value))
        })
    }

    /// Appends `suffix` to `application_name`, if the client sends one.
    pub fn add_to_application_name(&mut self, suffix: &str) {
        let Some(name) = self.parameter("application_name") else {
            return;
        };
        // The value is a slice of the packet, so its end is a position in the packet.
        let end = name.as_ptr() as usize - self.packet.as_ptr() as usize + name.len();
        self.packet.splice(end..end, suffix.bytes());
        if let Ok(length) = u32::try_from(self.packet.len()) {
            self.packet[..4].copy_from_slice(&length.to_be_bytes());
        }
    }

    /// The minor version of the protocol that the client asks for.
    pub fn minor(&self) -> u16 {
        u16::from_be_bytes([self.packet[6], self.packet[7]])
    }

    /// Whether this is a replication connection. Any value of `replication` counts, except a false one
    /// (`parse_bool` in PostgreSQL's `bool.c`, where a false word may be cut short).
    pub fn is_replication(&self) -> bool {
        let Some(value) = self.parameter("replication") else {
            return false;
        };
        let value = value.to_ascii_lowercase();
        let is_false = match value.as_slice() {
            b"0" | b"of" | b"off" => true,
            value => !value.is_empty() && (b"false".starts_with(value) || b"no".starts_with(value)),
        };
        !is_false
    }
}

/// Reads a client's packets up to its request. Begins TLS if the client asks for it and `tls` is set.
///
/// # Errors
/// [`StartupError`]
pub async fn begin(mut socket: Socket, tls: Option<&ClientTls>) -> Result<Beginning, StartupError> {
    let Some(first) = socket.first_byte().await? else {
        return Ok(Beginning::Gone);
    };
    let mut client = match tls {
        Some(tls) if first == TLS_HANDSHAKE => tls.accept(socket).await?,
        _ => Stream::Plain(socket),
    };
    let (mut tls_answered, mut gss_answered) = (client.is_secure(), false);
    loop {
        let packet = match read_packet(&mut client).await {
            Ok(packet) => packet,
            Err(PacketError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(Beginning::Gone);
            }
            Err(PacketError::Io(error)) => return Err(error.into()),
            Err(PacketError::Length(complaint)) => return refuse(complaint, client),
        };
        match code(&packet) {
            TLS_CODE if !tls_answered => {
                tls_answered = true;
                client = answer_tls(client, tls).await?;
            }
            GSS_CODE if !gss_answered => {
                gss_answered = true;
                client.write_all(b"N").await?;
            }
            CANCEL_CODE => return Ok(Beginning::Cancel { client, packet }),
            _ => return take_startup(packet, client, tls),
        }
    }
}

async fn answer_tls(mut client: Stream, tls: Option<&ClientTls>) -> io::Result<Stream> {
    match (tls, client) {
        (Some(tls), Stream::Plain(mut socket)) => {
            socket.write_all(b"S").await?;
            // Cleartext bytes after the request make the handshake fail.
            tls.accept(socket).await
        }
        (_, plain) => {
            client = plain;
            client.write_all(b"N").await?;
            Ok(client)
        }
    }
}

fn take_startup(
    packet: Vec<u8>,
    client: Stream,
    tls: Option<&ClientTls>,
) -> Result<Beginning, StartupError> {
    let startup = match Startup::parse(packet) {
        Ok(startup) => startup,
        Err(complaint) => return refuse(complaint, client),
    };
    if tls.is_some_and(|tls| tls.is_required) && !client.is_secure() {
        let complaint = Complaint::new("28000", "this gate takes connections with TLS only");
        return refuse(complaint, client);
    }
    Ok(Beginning::Session { client, startup })
}

fn refuse(complaint: Complaint, client: Stream) -> Result<Beginning, StartupError> {
    Err(StartupError::Refused {
        complaint,
        client: Box::new(client),
    })
}

enum PacketError {
    Io(io::Error),
    Length(Complaint),
}

/// Reads a whole packet, which has no type byte.
async fn read_packet(client: &mut Stream) -> Result<Vec<u8>, PacketError> {
    let mut length = [0; 4];
    client
        .read_exact(&mut length)
        .await
        .map_err(PacketError::Io)?;
    let packet_bytes = u32::from_be_bytes(length) as usize;
    if !(PREFIX_BYTES..=PACKET_BYTES_MAX).contains(&packet_bytes) {
        let complaint = Complaint::new("08P01", "invalid length of startup packet");
        return Err(PacketError::Length(complaint));
    }
    let mut packet = vec![0; packet_bytes];
    packet[..4].copy_from_slice(&length);
    client
        .read_exact(&mut packet[4..])
        .await
        .map_err(PacketError::Io)?;
    Ok(packet)
}

fn code(packet: &[u8]) -> u32 {
    let code = packet[4..].first_chunk().expect("a packet has 8 bytes");
    u32::from_be_bytes(*code)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn startup(parameters: &[u8]) -> Result<Startup, Complaint> {
        Startup::parse([&[0, 0, 0, 0, 0, 3, 0, 0], parameters].concat())
    }

    #[test]
    fn parameters_are_found() {
        let startup = startup(b"user\0a\0application_name\0shop\0\0").unwrap();
        assert_eq!(startup.parameter("application_name"), Some(&b"shop"[..]));
        assert_eq!(startup.parameter("database"), None);
        assert_eq!(startup.database(), startup.parameter("user"));
        assert!(!startup.is_replication());
    }

    #[test]
    fn the_last_of_two_counts_and_no_name_is_none() {
        let two = startup(b"user\0a\0database\0x\0user\0b\0database\0y\0\0").unwrap();
        let names = (two.parameter("user"), two.database());
        assert_eq!(names, (Some(&b"b"[..]), Some(&b"y"[..])));
        let empty = startup(b"user\0a\0database\0\0\0").unwrap();
        assert_eq!(empty.database(), Some(&b"a"[..]));
    }

    #[test]
    fn replication_is_what_is_not_false() {
        for (value, expected) in [
            ("database", true),
            ("true", true),
            ("1", true),
            ("on", true),
            ("", true),
            ("o", true),
            ("false", false),
            ("F", false),
            ("0", false),
            ("off", false),
            ("no", false),
        ] {
            let startup = startup(format!("replication\0{value}\0\0").as_bytes()).unwrap();
            assert_eq!(startup.is_replication(), expected, "{value}");
        }
    }

    #[test]
    fn what_is_no_startup_is_told() {
        assert_eq!(startup(b"").unwrap_err().sqlstate, "08P01");
        assert_eq!(startup(b"user\0a").unwrap_err().sqlstate, "08P01");
        let old = Startup::parse(vec![0, 0, 0, 9, 0, 2, 0, 0, 0]).unwrap_err();
        assert_eq!(
            old.message,
            "unsupported frontend protocol 2: server supports 3"
        );
    }

    proptest! {
        #[test]
        fn any_packet_is_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(startup) = startup(&bytes) {
                startup.is_replication();
                startup.parameter("user");
            }
        }
    }
}
