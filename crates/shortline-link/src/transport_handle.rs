//! The handle of a connection: what it tells the link, until it ends.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use shortline_base::socket::SendHalf;

use crate::link::Link;
use crate::regulator::slots::Holder;
use crate::transport::Transport;

/// A connection that may carry jobs of a link. Clones are the same connection.
#[derive(Clone)]
pub struct TransportHandle {
    link: Arc<Link>,
    transport: Arc<Transport>,
}

impl Link {
    /// Takes part in the life of a new connection between `local` and `peer`, of which it gets
    /// the half that sends.
    pub fn transport(
        self: &Arc<Self>,
        socket: Box<dyn SendHalf>,
        peer: IpAddr,
        local: IpAddr,
    ) -> TransportHandle {
        TransportHandle {
            transport: Arc::new(self.new_transport(socket, peer, local)),
            link: Arc::clone(self),
        }
    }
}

impl TransportHandle {
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// What the link knows of it.
    pub(crate) fn shared(&self) -> &Arc<Transport> {
        &self.transport
    }

    /// Tells the link that everything handed over so far is in the socket. Cheap when the link
    /// does not wait for this.
    pub fn drained(&self) {
        let Some(is_awaited) = self.transport.end_busy() else {
            return;
        };
        if !self.is_scheduled() {
            return;
        }
        let pacer_waits = self.link.counts_segments() && self.transport.is_charged();
        let link_waits = pacer_waits || self.link.counts_writes();
        if link_waits || is_awaited {
            self.link.transport_drained(&self.transport);
        } else {
            self.ledger.written();
        }
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
        self.transport.set_full();
        if self.is_scheduled() && self.link.counts_segments() && self.has_unwritten() {
            self.link.transport_blocked(&self.transport);
        }
    }

    /// The connection is about to end: what it was charged and will not send is given back, and what it
    /// sent beside its responses is counted.
    pub fn settle(&self) {
        if !self.is_scheduled() {
            return;
        }
        if self.transport.is_charged() {
            self.link.transport_ended(&self.transport);
        }
        self.link.correct_by_socket(&self.transport);
    }
}

impl Deref for TransportHandle {
    type Target = Transport;

    fn deref(&self) -> &Transport {
        &self.transport
    }
}
