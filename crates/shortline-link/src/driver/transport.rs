//! A connection that may carry jobs of the link: its socket, its number in the queue, and the link. What its own thread
//! tells the link goes through here; what the queue knows of it is in [`crate::connections`].

use std::io;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use shortline_base::socket::SendHalf;
use shortline_sched::Client;

use super::link::Link;
use super::socket::Socket;
use crate::connections::{ConnectionId, Marks};

/// A connection, as long as somebody has a handle of it.
pub struct Transport {
    link: Arc<Link>,
    socket: Arc<Socket>,
    /// Its number, if its jobs wait for grants at all.
    id: Option<ConnectionId>,
    marks: Arc<Marks>,
    /// The socket took no more when it was last tried.
    full: AtomicBool,
    /// What it held back when it was last asked, in payload bytes.
    held_back_bytes: AtomicU32,
}

/// A connection that may carry jobs of a link. Clones are the same connection.
#[derive(Clone)]
pub struct TransportHandle(Arc<Transport>);

impl Link {
    /// Takes part in the life of a new connection between `local` and `peer`, of which it gets
    /// the half that sends.
    pub fn transport(
        self: &Arc<Self>,
        socket: Box<dyn SendHalf>,
        peer: IpAddr,
        local: IpAddr,
    ) -> TransportHandle {
        let socket = Arc::new(self.new_socket(socket, peer));
        let known = self.enter(&socket, local);
        let (id, marks) = known.map_or_else(
            || (None, Arc::new(Marks::new())),
            |(id, marks)| (Some(id), marks),
        );
        TransportHandle(Arc::new(Transport {
            link: Arc::clone(self),
            socket,
            id,
            marks,
            full: AtomicBool::new(false),
            held_back_bytes: AtomicU32::new(0),
        }))
    }
}

impl Transport {
    /// The socket below.
    pub fn socket(&self) -> &dyn SendHalf {
        self.socket.half()
    }

    /// The connection is over: what its socket has still leaves, and then the client hears of the end. To drop our
    /// own hold of it would not do: a slot or discovery may hold it longer.
    pub fn end(&self) {
        // It fails where the protocol has done it, or the client has gone.
        let _ = self.socket().shutdown();
    }

    /// Whether a grant would be used now: nothing handed over before still waits for the socket.
    pub fn can_send(&self) -> bool {
        self.marks.can_send()
    }

    /// Whether the socket took no more when it was last tried.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// What the client has acknowledged since it connected: one system call.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn acknowledged_bytes(&self) -> io::Result<u64> {
        Ok(self.socket.ask()?.acked_bytes)
    }

    /// A handshake of TLS begins. Until it is done, nothing that the client acknowledges counts.
    pub fn handshake_begins(&self) {
        self.socket.handshake_begins();
    }

    /// The handshake of TLS, which was granted to `client`, is done. What the connection is granted next is a wager
    /// again: that the client has acknowledged the handshake does not say that it will acknowledge a response.
    pub fn handshake_done(&self, client: Client) {
        if let Some(id) = self.id {
            self.socket.handshake_ends();
            self.link.handshake_done(id, client.name);
        }
    }

    /// Tells the link that everything handed over so far is in the socket. Cheap when the link
    /// does not wait for this.
    pub fn drained(&self) {
        self.full.store(false, Ordering::Release);
        let Some(id) = self.id else {
            return;
        };
        let has_to_be_told = self.marks.drain(self.link.listens());
        if has_to_be_told == Some(true) {
            self.link.drained(id, self.held_back_more());
        }
    }

    /// How many payload bytes more than at the last look the socket holds back: one system call where grants follow a
    /// rate and a device is read. Where none is, what the socket has sent says it anyway.
    fn held_back_more(&self) -> u32 {
        if !self.link.counts_segments() || !self.link.reads_device() {
            return 0;
        }
        let held_back_bytes = self.socket.held_back_bytes();
        let before = self.held_back_bytes.swap(held_back_bytes, Ordering::AcqRel);
        held_back_bytes.saturating_sub(before)
    }

    /// The protocol has written all that it will of what was handed to it, unless the socket is
    /// full: HTTP/2 throws away what is left of a stream that is reset, and nothing would ever say
    /// that this has drained. Cheap when there is nothing.
    pub fn flushed(&self) {
        if !self.can_send() && !self.is_full() {
            self.drained();
        }
    }

    /// Tells the link that the socket takes no more for now. Cheap when told again.
    pub fn blocked(&self) {
        self.full.store(true, Ordering::Release);
        if let Some(id) = self.id
            && self.link.counts_segments()
            && self.marks.has_unwritten()
        {
            self.link.blocked(id);
        }
    }

    /// The connection is about to end: what it was charged and will not send is given back, and what it
    /// sent beside its responses is counted.
    pub fn settle(&self) {
        let Some(id) = self.id else {
            return;
        };
        if self.marks.is_charged() {
            self.link.ended(id);
        }
        self.link.correct_by_socket(id, &self.socket);
    }

    /// How many of the slots that its bytes take are free again, for the client has acknowledged all: one system call
    /// where it takes any. Without the lock, so that other connections need not wait for the kernel's answer. What is
    /// granted in the meantime is not among them, as the slots are counted first.
    pub(crate) fn slots_arrived(&self) -> u32 {
        let slots = self.marks.slots();
        let arrived =
            slots > 0 && !self.marks.has_unwritten() && self.socket.unacknowledged_bytes() == 0;
        if arrived { slots } else { 0 }
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(crate) fn id(&self) -> Option<ConnectionId> {
        self.id
    }

    pub(crate) fn marks(&self) -> &Marks {
        &self.marks
    }

    /// What the kernel knows of it.
    pub(crate) fn kernel(&self) -> &Socket {
        &self.socket
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.link.close(id);
        }
    }
}

impl Deref for TransportHandle {
    type Target = Transport;

    fn deref(&self) -> &Transport {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::IoSlice;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use shortline_base::socket::Halves;
    use socket2::{SockFilter, SockRef};
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::{Length, LinkConfig, LinkMode, client_at};

    /// A connection over loopback with the link that schedules it, and the client's end.
    async fn connection(mode: LinkMode) -> (TransportHandle, TcpStream) {
        let link = Link::new(LinkConfig {
            mode,
            schedule_loopback: true,
            ..LinkConfig::default()
        });
        let listener = TcpListener::bind((HERE, 0)).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await;
        let ours = listener.accept().await.unwrap().0.into_std().unwrap();
        let socket = Halves::from(ours).sending;
        (link.unwrap().transport(socket, HERE, HERE), client.unwrap())
    }

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Hands a response of so many bytes over to the link.
    fn respond(transport: &TransportHandle, bytes: u32) {
        let job = transport.submit(client_at(HERE), Length::Known(bytes.into()));
        job.unwrap().finish(bytes);
    }

    #[tokio::test]
    async fn requests_sent_ahead_free_no_slot_before_the_response_has_arrived() {
        let (transport, client) = connection(LinkMode::Slots).await;
        assert_eq!(transport.slots_arrived(), 0, "it takes none");
        respond(&transport, 4);
        assert_eq!(transport.slots_arrived(), 0, "nothing is written");
        let drop_all = SockFilter::new(0x06, 0, 0, 0);
        SockRef::from(&client).attach_filter(&[drop_all]).unwrap();
        transport
            .socket()
            .try_write(&[IoSlice::new(b"data")])
            .unwrap();
        transport.drained();
        assert_eq!(transport.slots_arrived(), 0, "nothing is acknowledged");
        SockRef::from(&client).detach_filter().unwrap();
        // The kernel sends it again before long.
        while transport.slots_arrived() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        respond(&transport, 4);
        assert_eq!(transport.marks().slots(), 1, "the first one is free again");
    }

    /// A client whose connection ended without a word from its protocol waited for that as long as somebody asked
    /// what it had acknowledged.
    #[tokio::test]
    async fn the_end_of_a_connection_is_told_though_a_slot_still_holds_it() {
        let (transport, mut client) = connection(LinkMode::Slots).await;
        let link = Arc::clone(transport.link());
        let id = transport.id().unwrap();
        respond(&transport, 500);
        transport.end();
        drop(transport);
        assert!(link.state.lock().sockets.get(id).is_some());
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    }
}
