//! One end of a connection, before commands begin or with one command at a time. Whole packets are read and
//! written with the protocol's sequence numbers.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::packet::{HEADER_BYTES, Header, packet};
use crate::relay::tls::ClientTls;
use crate::relay::{LINGER_TIME_MAX, Socket, Stream, lingering_close};

/// The longest packet before the end of authentication, in bytes. Connection attributes take up to
/// 64 KiB, and so do Kerberos tickets.
pub const PACKET_BYTES_MAX: u32 = 256 * 1024;

/// One end, with its sequence numbers.
#[derive(Debug)]
pub struct Link {
    /// Its connection.
    pub stream: Stream,
    /// The number of its next packet.
    pub sequence: u8,
    /// A client's wrong numbers are refused, as a server refuses them. A server's are not checked.
    is_client: bool,
}

/// Bytes that are not a packet of this part of the protocol.
#[derive(Debug, thiserror::Error)]
pub enum NoPacket {
    /// The sequence number is wrong.
    #[error("a packet whose number is not its turn's")]
    OutOfOrder,
    /// The packet has this many bytes, which is above the limit.
    #[error("a packet of {0} bytes, more than {PACKET_BYTES_MAX}")]
    TooLong(u32),
}

fn invalid(no_packet: NoPacket) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, no_packet)
}

impl Link {
    /// A new connection of a client.
    pub fn of_client(socket: Socket) -> Self {
        Self {
            stream: Stream::Plain(socket),
            sequence: 0,
            is_client: true,
        }
    }

    /// A new connection to a server.
    pub fn of_server(socket: Socket) -> Self {
        Self {
            is_client: false,
            ..Self::of_client(socket)
        }
    }

    /// A connection to a server after login, before a command.
    pub fn of_established(stream: Stream) -> Self {
        Self {
            stream,
            sequence: 0,
            is_client: false,
        }
    }

    /// Accepts TLS from the client.
    ///
    /// # Errors
    /// Those of the handshake.
    pub async fn accept_tls(self, tls: &ClientTls) -> io::Result<Self> {
        let stream = match self.stream {
            Stream::Plain(socket) => tls.accept(socket).await?,
            secure => secure,
        };
        Ok(Self { stream, ..self })
    }

    /// The payload of the next packet.
    pub async fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_into(&mut bytes).await?;
        Ok(bytes.split_off(HEADER_BYTES))
    }

    /// Reads on until `bytes` is a packet, and not a byte further, since TLS may begin after it.
    /// May be dropped and called again.
    pub async fn read_into(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let wanted = match Header::first_of(bytes) {
                None => HEADER_BYTES,
                Some(header) if self.is_client && header.sequence != self.sequence => {
                    return Err(invalid(NoPacket::OutOfOrder));
                }
                Some(header) if header.payload_bytes > PACKET_BYTES_MAX => {
                    return Err(invalid(NoPacket::TooLong(header.payload_bytes)));
                }
                Some(header) => {
                    let wanted = HEADER_BYTES + header.payload_bytes as usize;
                    if bytes.len() == wanted {
                        self.sequence = header.sequence.wrapping_add(1);
                        return Ok(());
                    }
                    wanted
                }
            };
            let missing = (wanted - bytes.len()) as u64;
            let read = (&mut self.stream).take(missing).read_buf(bytes).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends a packet with this payload.
    pub async fn write(&mut self, payload: &[u8]) -> io::Result<()> {
        let bytes = packet(self.sequence, payload);
        self.sequence = self.sequence.wrapping_add(1);
        self.stream.write_all(&bytes).await?;
        self.stream.flush().await
    }

    /// Ends the connection in a way that lets the last message arrive.
    pub async fn linger(&mut self) {
        // It ends either way.
        let _ = tokio::time::timeout(LINGER_TIME_MAX, lingering_close(&mut self.stream)).await;
    }
}
