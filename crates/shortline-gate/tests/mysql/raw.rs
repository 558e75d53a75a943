//! A client without a driver: packets by hand, root without a password.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Protocol 4.1, transactions, secure connection, plugins, several statements and results, files.
pub const PLAIN: u64 = 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19 | 1 << 16 | 1 << 17 | 1 << 18 | 1 << 7;
/// Without EOF packets.
pub const DEPRECATE_EOF: u64 = 1 << 24;
/// MariaDB: bulk execution, cached metadata, each unit's result.
pub const MARIADB: u64 = 1 << 34 | 1 << 36 | 1 << 37;
/// `CLIENT_MYSQL`: no capabilities of MariaDB's.
pub const MYSQL: u64 = 1;

/// A connection.
pub struct Raw {
    pub socket: TcpStream,
}

impl Raw {
    pub async fn connect(address: SocketAddr, capabilities: u64) -> Self {
        let mut raw = Self {
            socket: TcpStream::connect(address).await.unwrap(),
        };
        let (number, greeting) = raw.read().await;
        assert_eq!((number, greeting[0]), (0, 10));
        raw.write(1, &answer(capabilities)).await;
        let (_, verdict) = raw.read().await;
        assert_eq!(verdict[0], 0, "{:?}", String::from_utf8_lossy(&verdict));
        raw
    }

    pub async fn write(&mut self, sequence: u8, payload: &[u8]) {
        self.socket
            .write_all(&packet(sequence, payload))
            .await
            .unwrap();
    }

    pub async fn query(&mut self, statement: &str) {
        self.write(0, &[b"\x03", statement.as_bytes()].concat())
            .await;
    }

    /// The next packet: its number and payload.
    pub async fn read(&mut self) -> (u8, Vec<u8>) {
        let mut header = [0; 4];
        self.socket.read_exact(&mut header).await.unwrap();
        let [a, b, c, sequence] = header;
        let mut payload = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        self.socket.read_exact(&mut payload).await.unwrap();
        (sequence, payload)
    }

    /// All packets up to the answer to a further command, which is sent at once.
    pub async fn read_all(&mut self) -> Vec<(u8, Vec<u8>)> {
        // COM_STATISTICS: nothing else is answered so.
        self.write(0, b"\x09").await;
        let mut packets = Vec::new();
        loop {
            let packet = self.read().await;
            if packet.1.starts_with(b"Uptime: ") {
                return packets;
            }
            packets.push(packet);
        }
    }

    /// Whether the other side has closed the connection, with nothing more said.
    pub async fn is_closed(&mut self) -> bool {
        matches!(self.socket.read(&mut [0; 1]).await, Ok(0) | Err(_))
    }
}

/// A client's answer to a greeting.
pub fn answer(capabilities: u64) -> Vec<u8> {
    let mut payload = capabilities.to_le_bytes()[..4].to_vec();
    payload.extend(0x0100_0000_u32.to_le_bytes());
    payload.push(45);
    payload.extend([0; 19]);
    payload.extend(&capabilities.to_le_bytes()[4..]);
    payload.extend(b"root\0\0mysql_native_password\0");
    payload
}

pub fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes[3] = sequence;
    bytes.extend_from_slice(payload);
    bytes
}

/// The code in an ERR packet.
pub fn code(payload: &[u8]) -> Option<u16> {
    match payload {
        [0xff, low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    }
}
