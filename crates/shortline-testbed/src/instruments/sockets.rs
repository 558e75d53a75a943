//! TCP sockets by state, and how many connections wait to be accepted (sock_diag(7)).
//!
//! A socket in SYN-RECV is an entry of 000's SYN queue. A listener reports the length of its accept
//! queue (000's ACK queue) as its receive queue, and the limit of that as its send queue. Sockets in
//! TIME-WAIT are not listed, because there can be tens of thousands. `/proc/net/sockstat` has their
//! number.

use std::fs;
use std::io;

use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{
    AF_INET, IPPROTO_TCP, TCP_CLOSE_WAIT, TCP_CLOSING, TCP_ESTABLISHED, TCP_FIN_WAIT1,
    TCP_FIN_WAIT2, TCP_LAST_ACK, TCP_LISTEN, TCP_SYN_RECV,
};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use shortline_base::netlink::{Channel, Want};

/// The number of sockets in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounts {
    /// Handshakes under way: the SYN queue.
    pub syn_recv: u64,
    /// Connections that wait to be accepted, of all listeners.
    pub accept_queue: u64,
    /// The limit of that queue.
    pub accept_queue_max: u64,
    /// Open both ways, including those in the accept queue.
    pub established: u64,
    /// Closed by the server; data or FIN not acknowledged yet.
    pub fin_wait1: u64,
    /// Closed by the server, not yet by the client.
    pub fin_wait2: u64,
    /// Closed by the client, not yet by the server.
    pub close_wait: u64,
    /// Closed by both, the last FIN not acknowledged yet.
    pub last_ack: u64,
    /// Closed by both at once.
    pub closing: u64,
    /// Closed and remembered (TIME-WAIT).
    pub time_wait: u64,
}

impl SocketCounts {
    /// Connections that take the server's programs and buffers: 000's "active sockets". These are
    /// all but those in the SYN queue, in the accept queue and in TIME-WAIT.
    pub fn connections(&self) -> u64 {
        let all = self.established
            + self.fin_wait1
            + self.fin_wait2
            + self.close_wait
            + self.last_ack
            + self.closing;
        all.saturating_sub(self.accept_queue)
    }

    /// `queued` and `queued_max` are a listener's queues.
    fn add(&mut self, state: u8, queued: u32, queued_max: u32) {
        let count = match state {
            TCP_LISTEN => {
                self.accept_queue += u64::from(queued);
                self.accept_queue_max += u64::from(queued_max);
                return;
            }
            TCP_SYN_RECV => &mut self.syn_recv,
            TCP_ESTABLISHED => &mut self.established,
            TCP_FIN_WAIT1 => &mut self.fin_wait1,
            TCP_FIN_WAIT2 => &mut self.fin_wait2,
            TCP_CLOSE_WAIT => &mut self.close_wait,
            TCP_LAST_ACK => &mut self.last_ack,
            TCP_CLOSING => &mut self.closing,
            // These states are not requested.
            _ => return,
        };
        *count += 1;
    }
}

/// A netlink socket, in the namespace of the thread that opened it.
pub struct Sockets(Channel);

impl Sockets {
    /// Opens the socket.
    ///
    /// # Errors
    /// If the kernel has no `inet_diag`.
    pub fn open() -> io::Result<Self> {
        Channel::open(NETLINK_SOCK_DIAG).map(Self)
    }

    /// All IPv4 TCP sockets of the namespace.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn count(&mut self) -> io::Result<SocketCounts> {
        let question = SockDiagMessage::InetRequest(InetRequest {
            family: AF_INET,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::empty(),
            states: StateFlags::all().difference(StateFlags::TIME_WAIT | StateFlags::CLOSE),
            socket_id: SocketId::new_v4(),
        });
        let mut counts = SocketCounts::default();
        self.0.ask(question, Want::All, |told| {
            let told = told.map_err(|error| io::Error::other(error.to_string()))?;
            if let SockDiagMessage::InetResponse(response) = told {
                let header = &response.header;
                counts.add(header.state, header.recv_queue, header.send_queue);
            }
            Ok(())
        })?;
        let sockstat = fs::read_to_string("/proc/thread-self/net/sockstat")?;
        counts.time_wait = parse_time_wait(&sockstat).unwrap_or(0);
        Ok(counts)
    }
}

fn parse_time_wait(sockstat: &str) -> Option<u64> {
    let tcp = sockstat
        .lines()
        .find_map(|line| line.strip_prefix("TCP: "))?;
    let mut words = tcp.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_that_nobody_accepts_is_in_the_accept_queue() {
        let mut sockets = Sockets::open().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let counts = sockets.count().unwrap();
        // Other tests have sockets too.
        assert!(
            counts.accept_queue >= 1 && counts.established >= 2,
            "{counts:?}"
        );
        assert!(counts.accept_queue_max >= counts.accept_queue);
        drop(client);
    }

    #[test]
    fn what_waits_is_no_connection_yet() {
        let mut counts = SocketCounts::default();
        for state in [
            TCP_SYN_RECV,
            TCP_ESTABLISHED,
            TCP_ESTABLISHED,
            TCP_FIN_WAIT1,
        ] {
            counts.add(state, 0, 0);
        }
        counts.add(TCP_LISTEN, 1, 512);
        assert_eq!((counts.connections(), counts.syn_recv), (2, 1));
        assert_eq!((counts.accept_queue, counts.accept_queue_max), (1, 512));
    }

    #[test]
    fn time_wait_is_found_by_its_name() {
        let text = "sockets: used 32\nTCP: inuse 1 orphan 2 tw 345 alloc 1 mem 0\nUDP: inuse 0\n";
        assert_eq!(parse_time_wait(text), Some(345));
        assert_eq!(parse_time_wait("UDP: inuse 0\n"), None);
    }
}
