//! Finds the user whose process is at the other end of a connection from this machine.
//!
//! The kernel lists both ends of a loopback connection with the user of each (`/proc/net/tcp`,
//! proc(5)). PostgreSQL's `ident` finds the user in a similar way, but through a daemon. So the gate
//! can check clients that need no password. A forwarder on this machine (a proxy, a pooler, a
//! sidecar) makes remote clients look local. It counts as the user that it runs as.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};

use parking_lot::Mutex;

/// Why a client may not use the admin commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHeard {
    /// The client is on another machine, with this address.
    #[error("the admin database answers clients of its own machine only, not {0}")]
    Stranger(IpAddr),
    /// The client runs as another user, with this number.
    #[error(
        "the admin database answers root and the gate's own user, not the user {0}: name that with \
         --admin-uids {0}, or ask the --admin address"
    )]
    User(u32),
    /// The user is unknown, for this reason.
    #[error(
        "the admin database answers root and the gate's own user, and whose connection this is \
         cannot be told ({0}): ask the --admin address"
    )]
    Unknown(String),
}

/// Checks that the client at `peer`, connected to our `local` address, is on this machine. It must run
/// as root, as our own user, or as one of `uids`.
///
/// # Errors
/// [`NotHeard`]
pub fn check(peer: SocketAddr, local: SocketAddr, uids: &[u32]) -> Result<(), NotHeard> {
    let ip = peer.ip().to_canonical();
    if !ip.is_loopback() {
        return Err(NotHeard::Stranger(ip));
    }
    let uid = uid_of(peer, local).map_err(|error| NotHeard::Unknown(error.to_string()))?;
    check_uid(uid, uids)
}

/// Checks that this user of this machine is root, our own user, or one of `uids`.
///
/// # Errors
/// [`NotHeard::User`]
pub fn check_uid(uid: u32, uids: &[u32]) -> Result<(), NotHeard> {
    let own = rustix::process::geteuid().as_raw();
    if uid == 0 || uid == own || uids.contains(&uid) {
        Ok(())
    } else {
        Err(NotHeard::User(uid))
    }
}

/// The user of the socket at `peer` that is connected to `local`.
fn uid_of(peer: SocketAddr, local: SocketAddr) -> io::Result<u32> {
    // The list grows with the number of connections, so only one thread reads it at a time.
    static LOOKING: Mutex<()> = Mutex::new(());
    let _alone = LOOKING.lock();
    for (path, written) in [
        (
            "/proc/net/tcp",
            written_v4 as fn(SocketAddr) -> Option<String>,
        ),
        ("/proc/net/tcp6", written_v6),
    ] {
        let (Some(from), Some(to)) = (written(peer), written(local)) else {
            continue;
        };
        // A machine without IPv6 has no such file.
        match fs::read_to_string(path) {
            Ok(list) => {
                if let Some(uid) = listed(&list, &from, &to) {
                    return Ok(uid);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.ends_with('6') => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        "the kernel lists no such connection",
    ))
}

/// The state of a connection that both sides keep open. The kernel lists a socket that its process has closed as
/// root's, whoever that was.
const ESTABLISHED: &str = "01";

/// The user in the line with the local address `from` and the remote address `to`, if the socket is still open.
fn listed(list: &str, from: &str, to: &str) -> Option<u32> {
    let mut lines = list.lines().skip(1).map(str::split_ascii_whitespace);
    lines.find_map(|mut words| {
        // The columns: number, both addresses, state, queues, timer, retransmissions, user.
        let is_it = words.nth(1) == Some(from)
            && words.next() == Some(to)
            && words.next() == Some(ESTABLISHED);
        is_it.then(|| words.nth(3)?.parse().ok())?
    })
}

/// An IPv4 address as the kernel writes it: a number in native byte order, and the port.
fn written_v4(address: SocketAddr) -> Option<String> {
    let IpAddr::V4(ip) = address.ip().to_canonical() else {
        return None;
    };
    let number = u32::from_ne_bytes(ip.octets());
    Some(format!("{number:08X}:{:04X}", address.port()))
}

/// An IPv6 address as the kernel writes it: four numbers, and the port. An IPv4 address is mapped first.
fn written_v6(address: SocketAddr) -> Option<String> {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let octets = ip.octets();
    let (words, _) = octets.as_chunks::<4>();
    let numbers = words
        .iter()
        .map(|word| format!("{:08X}", u32::from_ne_bytes(*word)));
    Some(format!(
        "{}:{:04X}",
        numbers.collect::<String>(),
        address.port()
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn is_stranger(peer: &str) -> bool {
        let local = "127.0.0.1:1".parse().unwrap();
        matches!(
            check(peer.parse().unwrap(), local, &[]),
            Err(NotHeard::Stranger(_))
        )
    }

    #[test]
    fn strangers_are_refused() {
        assert!(is_stranger("192.0.2.1:5") && is_stranger("[2001:db8::1]:5"));
        assert!(!is_stranger("[::ffff:127.0.0.1]:5"));
    }

    #[test]
    fn a_connection_of_our_own_is_told_from_one_that_is_not_there() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let local = listener.local_addr().unwrap();
            let client = TcpStream::connect(local).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let own = rustix::process::geteuid().as_raw();
            assert_eq!(uid_of(peer, local).unwrap(), own);
            assert_eq!(check(peer, local, &[]), Ok(()));
            let other = SocketAddr::new(peer.ip(), peer.port() ^ 1);
            assert!(matches!(
                check(other, local, &[]),
                Err(NotHeard::Unknown(_))
            ));
            // Its socket is root's now, for the kernel.
            drop(client);
            assert!(matches!(check(peer, local, &[]), Err(NotHeard::Unknown(_))));
            drop(server);
        }
    }

    #[test]
    fn another_user_is_heard_if_named() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
            0: 0100007F:1920 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 1\n\
            1: 0100007F:9C40 0100007F:1920 01 00000000:00000000 00:00000000 00000000  1000        0 2\n";
        let (from, to) = ("0100007F:9C40", "0100007F:1920");
        assert_eq!(listed(list, from, to), Some(1000));
        assert_eq!(listed(list, from, "0100007F:1921"), None);
        let closed = list.replace(" 01 ", " 05 ").replace("1000", "   0");
        assert_eq!(listed(&closed, from, to), None);
    }
}
