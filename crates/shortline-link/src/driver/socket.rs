//! The socket of a connection, and the table in which the queue finds what only the kernel knows of it.
//!
//! The table stands beside the queue, under the same lock: the queue names a connection by its number, and a
//! socket stays open as long as the queue knows of the connection.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use shortline_base::TcpInfo;
use shortline_base::socket::SendHalf;
use shortline_sched::PathView;

use super::discovery::counted::Counted;
use super::network;
use crate::connections::{ConnectionId, Packets, Sockets};
use crate::queue::{SEGMENT_BYTES_DEFAULT, Setting};

/// What `TCP_INFO` counts of TCP's handshake as acknowledged: the SYN has a number, like a byte.
const SYN_BYTES: u64 = 1;

/// A connection's socket.
pub(crate) struct Socket {
    half: Box<dyn SendHalf>,
    /// The client's address.
    pub address: IpAddr,
    /// What a packet costs below IP.
    packet_header_bytes: u32,
    /// Its counters when discovery asked for them last.
    counted: Mutex<Counted>,
    /// The bytes that belong to handshakes. Their acknowledgement says nothing of a response. [`u64::MAX`] during a
    /// handshake of TLS.
    handshake_bytes: AtomicU64,
}

impl Socket {
    pub fn new(half: Box<dyn SendHalf>, address: IpAddr, packet_header_bytes: u32) -> Self {
        Self {
            half,
            address,
            packet_header_bytes,
            counted: Mutex::default(),
            handshake_bytes: AtomicU64::new(SYN_BYTES),
        }
    }

    /// The half that sends.
    pub fn half(&self) -> &dyn SendHalf {
        &*self.half
    }

    /// What its packets are like: one system call.
    pub fn packets(&self) -> Packets {
        let segment_bytes = self.half.info().map_or(0, |info| info.segment_bytes);
        Packets {
            segment_bytes: match segment_bytes {
                0 => SEGMENT_BYTES_DEFAULT,
                asked => asked,
            },
            overhead_bytes: self.half.headers().inner_bytes + self.outer_bytes(),
        }
    }

    /// The path to the client now, for a response that has sent something or not yet: one system
    /// call. Unknown where the socket is gone.
    pub fn path(&self, has_sent: bool) -> PathView {
        self.half
            .info()
            .map_or(PathView::UNKNOWN, |info| network::view(&info, has_sent))
    }

    /// What the kernel says of the connection: one system call.
    pub fn ask(&self) -> io::Result<TcpInfo> {
        self.half.info()
    }

    /// Bytes that the peer has not acknowledged: one system call. 0 where the socket is gone.
    pub fn unacknowledged_bytes(&self) -> u32 {
        self.half.unacknowledged_bytes().unwrap_or(0)
    }

    /// Bytes that it keeps until the peer has acknowledged others: one system call. 0 where the socket is gone.
    pub fn held_back_bytes(&self) -> u32 {
        self.half.info().map_or(0, |info| info.held_back_bytes())
    }

    /// What the connection has put on the wire so far, by its own count.
    pub fn wire_bytes_sent(&self) -> io::Result<u64> {
        let sent = self.half.sent()?;
        Ok(sent.bytes + sent.packets * u64::from(self.outer_bytes()))
    }

    /// The headers of a packet up to the transport's.
    fn outer_bytes(&self) -> u32 {
        self.half.headers().outer_bytes + self.packet_header_bytes
    }

    /// Whatever is sent from now on belongs to a handshake.
    pub fn handshake_begins(&self) {
        self.handshake_bytes.store(u64::MAX, Ordering::Relaxed);
    }

    /// All bytes sent so far belonged to the handshake, and none after: two system calls.
    pub fn handshake_ends(&self) {
        let bytes = self.half.info().map_or(0, |info| info.acked_bytes)
            + u64::from(self.unacknowledged_bytes());
        self.handshake_bytes
            .store(bytes.max(SYN_BYTES), Ordering::Relaxed);
    }

    /// Whether the client has acknowledged more than handshakes. Also if the socket is gone. One system call.
    fn has_acknowledged(&self) -> bool {
        let info = self.half.info();
        info.map_or(true, |info| {
            info.acked_bytes > self.handshake_bytes.load(Ordering::Relaxed)
        })
    }

    /// Changes the counters that discovery keeps of the connection.
    pub fn count<T>(&self, change: impl FnOnce(&mut Counted) -> T) -> T {
        change(&mut self.counted.lock())
    }

    fn set(&self, setting: Setting) {
        match setting {
            Setting::Priority(priority) => self.half.set_priority(priority),
            Setting::UnsentBytesMax(bytes) => self.half.set_unsent_bytes_max(bytes),
        }
    }
}

/// The sockets by the numbers of their connections.
#[derive(Default)]
pub(crate) struct SocketTable(Vec<Option<Arc<Socket>>>);

impl SocketTable {
    /// The socket of a new connection.
    pub fn insert(&mut self, id: ConnectionId, socket: Arc<Socket>) {
        if self.0.len() <= id.index() {
            self.0.resize(id.index() + 1, None);
        }
        self.0[id.index()] = Some(socket);
    }

    /// Takes out the socket of a connection that the queue knows no more.
    pub fn remove(&mut self, id: ConnectionId) -> Option<Arc<Socket>> {
        self.0.get_mut(id.index())?.take()
    }

    /// The socket of a connection that the queue knows.
    pub fn get(&self, id: ConnectionId) -> Option<&Arc<Socket>> {
        self.0.get(id.index())?.as_ref()
    }

    /// Tells the socket of a connection something: one system call.
    pub fn set(&self, id: ConnectionId, setting: Setting) {
        if let Some(socket) = self.get(id) {
            socket.set(setting);
        }
    }
}

impl Sockets for SocketTable {
    fn unacknowledged_bytes(&self, id: ConnectionId) -> u32 {
        self.get(id)
            .map_or(0, |socket| socket.unacknowledged_bytes())
    }

    fn rtt_ns_min(&self, id: ConnectionId) -> u64 {
        let info = self.get(id).and_then(|socket| socket.ask().ok());
        info.map_or(0, |info| u64::from(info.rtt_us_min) * 1000)
    }

    fn has_acknowledged(&self, id: ConnectionId) -> bool {
        self.get(id).is_none_or(|socket| socket.has_acknowledged())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::future::poll_fn;
    use std::io::IoSlice;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use shortline_base::socket::Halves;
    use socket2::{SockFilter, SockRef};
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::connections::Connections;

    async fn write(socket: &Socket) {
        poll_fn(|context| socket.half.poll_write_ready(context))
            .await
            .unwrap();
        socket.half.try_write(&[IoSlice::new(b"data")]).unwrap();
    }

    #[tokio::test]
    async fn the_kernel_knows_who_has_acknowledged_anything() {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let listener = TcpListener::bind((here, 0)).await.unwrap();
        let (mut connections, mut table) = (Connections::default(), SocketTable::default());
        let (mut clients, mut ids) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let client = TcpStream::connect(listener.local_addr().unwrap()).await;
            let ours = listener.accept().await.unwrap().0.into_std().unwrap();
            let half = Halves::from(ours).sending;
            let socket = Arc::new(Socket::new(half, here, 14));
            let (id, _) = connections.open(socket.packets(), 0);
            table.insert(id, Arc::clone(&socket));
            clients.push(client.unwrap());
            ids.push(id);
        }
        let [known, deaf] = [ids[0], ids[1]];
        let drop_all = SockFilter::new(0x06, 0, 0, 0);
        SockRef::from(&clients[1])
            .attach_filter(&[drop_all])
            .unwrap();
        assert!(ids.iter().all(|&id| !table.has_acknowledged(id)));
        for &id in &ids {
            write(table.get(id).unwrap()).await;
        }
        clients[0].read_exact(&mut [0; 4]).await.unwrap();
        // The kernel may put its acknowledgement off for a moment.
        while !table.has_acknowledged(known) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(table.unacknowledged_bytes(known), 0);
        // What belonged to a handshake does not count.
        let socket = Arc::clone(table.get(known).unwrap());
        socket.handshake_begins();
        assert!(!table.has_acknowledged(known));
        socket.handshake_ends();
        assert!(!table.has_acknowledged(known));
        write(table.get(known).unwrap()).await;
        clients[0].read_exact(&mut [0; 4]).await.unwrap();
        while !table.has_acknowledged(known) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(!table.has_acknowledged(deaf));
        assert_eq!(table.unacknowledged_bytes(deaf), 4);
        drop(table.remove(deaf));
        assert!(table.has_acknowledged(deaf), "it has gone");
    }
}
