//! A relay of datagrams between one client and a server, which a test may cut.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A relay; it ends with the process.
pub struct Relay {
    /// Where the client connects.
    pub address: SocketAddr,
    /// Nothing of the client's passes any more once so many bytes of the server's have come.
    pub cut_at_bytes: Arc<AtomicU64>,
    /// Bytes of the server's that have come.
    pub to_client_bytes: Arc<AtomicU64>,
    /// Retry packets among them (RFC 9000, 17.2.5).
    pub retries: Arc<AtomicU64>,
}

impl Relay {
    pub fn start(server: SocketAddr) -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(server).unwrap();
        let relay = Self {
            address: front.local_addr().unwrap(),
            cut_at_bytes: Arc::new(AtomicU64::new(u64::MAX)),
            to_client_bytes: Arc::default(),
            retries: Arc::default(),
        };
        let client = Arc::new(parking_lot::Mutex::new(None));
        let (to_server, from) = (back.try_clone().unwrap(), front.try_clone().unwrap());
        let (cut_at_bytes, seen) = (Arc::clone(&relay.cut_at_bytes), Arc::clone(&client));
        let come_bytes = Arc::clone(&relay.to_client_bytes);
        std::thread::spawn(move || {
            let mut packet = [0; 65536];
            while let Ok((bytes, peer)) = from.recv_from(&mut packet) {
                *seen.lock() = Some(peer);
                if come_bytes.load(Ordering::SeqCst) < cut_at_bytes.load(Ordering::SeqCst) {
                    let _ = to_server.send(&packet[..bytes]);
                }
            }
        });
        let (bytes_of, retries) = (
            Arc::clone(&relay.to_client_bytes),
            Arc::clone(&relay.retries),
        );
        std::thread::spawn(move || {
            let mut packet = [0; 65536];
            while let Ok(bytes) = back.recv(&mut packet) {
                bytes_of.fetch_add(bytes as u64, Ordering::SeqCst);
                if packet[0] & 0xb0 == 0xb0 {
                    retries.fetch_add(1, Ordering::SeqCst);
                }
                if let Some(peer) = *client.lock() {
                    let _ = front.send_to(&packet[..bytes], peer);
                }
            }
        });
        relay
    }
}
