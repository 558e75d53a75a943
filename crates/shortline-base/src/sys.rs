//! What no crate does for us safely: asking a TCP socket how many bytes are not yet acknowledged
//! (`SIOCOUTQ`, tcp(7)) and what the connection has put on the wire (`TCP_INFO`, linux/tcp.h), how often
//! a thread has waited (getrusage(2)), putting a descriptor on the runtime's poller, and receiving into memory
//! that nobody has written to. The only module of the workspace with `unsafe`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::net::RecvFlags;
use tokio::io::ReadBuf;
use tokio::io::unix::AsyncFd;

/// The fields of `TCP_INFO` that are needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Payload bytes per full segment.
    pub segment_bytes: u32,
    /// Payload bytes handed to IP, retransmissions included.
    pub sent_bytes: u64,
    /// The part of these bytes that was sent again.
    pub resent_bytes: u64,
    /// Payload bytes that the peer has acknowledged.
    pub acked_bytes: u64,
    /// Segments handed to IP: data, acknowledgements, SYN-ACK and FIN.
    pub sent_segments: u32,
    /// Segments of the peer that carried no payload: its acknowledgements.
    pub ack_segments: u32,
    /// Segments of the peer that carried payload: its requests, and acknowledgements with them.
    pub request_segments: u32,
    /// Smallest round trip seen, in microseconds; 0 when the kernel has no sample.
    pub rtt_us_min: u32,
    /// Smoothed round trip, in microseconds; 0 when the kernel has no sample.
    pub rtt_us: u32,
    /// How long ago the peer acknowledged anything, in milliseconds, which is the age of the round
    /// trip.
    pub ack_age_ms: u32,
    /// How long ago the peer sent anything, such as a request, in milliseconds.
    pub request_age_ms: u32,
    /// Congestion window, in segments.
    pub cwnd_segments: u32,
    /// Segments that are on their way, as the kernel counts them: sent, not acknowledged and not thought lost.
    pub flight_segments: u32,
    /// Bytes in the socket that were never sent.
    pub unsent_bytes: u32,
    /// The recent delivery rate, in bytes per second; 0 before the first.
    pub delivered_bytes_per_s: u64,
}

impl TcpInfo {
    /// Bytes in the socket that wait for the client to acknowledge others, as the congestion window is full.
    pub fn held_back_bytes(&self) -> u32 {
        let is_full = self.flight_segments >= self.cwnd_segments;
        if is_full { self.unsent_bytes } else { 0 }
    }
}

/// Bytes written to the socket that the peer has not acknowledged, sent or not.
pub fn unacknowledged_bytes(socket: impl AsFd) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ (the value of SIOCOUTQ) writes one int through the pointer, which is
    // valid for the whole call, and the descriptor is borrowed for as long.
    let status = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::try_from(bytes).unwrap_or(0))
}

/// Reads `TCP_INFO`; fields that an old kernel does not fill stay 0.
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    const INFO_BYTES: usize = 232;
    let mut info = [0u8; INFO_BYTES];
    let mut length = INFO_BYTES as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `info`, which outlives the call.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo {
        segment_bytes: u32_at(&info, 16),
        sent_segments: u32_at(&info, 136),
        ack_segments: u32_at(&info, 140).wrapping_sub(u32_at(&info, 152)),
        request_segments: u32_at(&info, 152),
        rtt_us_min: u32_at(&info, 148),
        rtt_us: u32_at(&info, 68),
        ack_age_ms: u32_at(&info, 56),
        request_age_ms: u32_at(&info, 52),
        cwnd_segments: u32_at(&info, 80),
        // As tcp_packets_in_flight: what is out, without what arrived or was lost, with what was sent again.
        flight_segments: (u32_at(&info, 24) + u32_at(&info, 36))
            .saturating_sub(u32_at(&info, 28) + u32_at(&info, 32)),
        unsent_bytes: u32_at(&info, 144),
        delivered_bytes_per_s: u64_at(&info, 160),
        sent_bytes: u64_at(&info, 200),
        resent_bytes: u64_at(&info, 208),
        acked_bytes: u64_at(&info, 120),
    })
}

/// How often this thread has given up its processor to wait for something. Never goes back.
pub fn thread_waits() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one `rusage` through the pointer, which is valid for the whole call. All zeros are one, too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_nvcsw as u64
}

/// Puts a descriptor on the runtime's poller.
pub fn on_poller(descriptor: impl Into<Arc<OwnedFd>>) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    // SAFETY: an `OwnedFd` names the same open file for as long as it lives, and the `AsyncFd`
    // that shares it takes it off the poller before it lets it be closed.
    Ok(unsafe { AsyncFd::register(descriptor.into()) }?)
}

/// Receives what a socket has, as much as there is room for, and returns how many bytes that were.
pub fn receive(socket: impl AsFd, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
    // SAFETY: recv(2) only writes to it.
    let room = unsafe { buffer.unfilled_mut() };
    let ((received, _), _) = rustix::net::recv(socket, room, RecvFlags::DONTWAIT)?;
    let bytes = received.len();
    // SAFETY: it has written so many.
    unsafe { buffer.assume_init(bytes) };
    buffer.advance(bytes);
    Ok(bytes)
}

fn u32_at(info: &[u8], offset: usize) -> u32 {
    let mut word = [0u8; 4];
    word.copy_from_slice(&info[offset..offset + 4]);
    u32::from_ne_bytes(word)
}

fn u64_at(info: &[u8], offset: usize) -> u64 {
    let mut word = [0u8; 8];
    word.copy_from_slice(&info[offset..offset + 8]);
    u64::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_socket_reports_its_unacknowledged_and_sent_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        assert_eq!(unacknowledged_bytes(&server).unwrap(), 0);
        server.write_all(&[7; 1000]).unwrap();
        client.read_exact(&mut [0; 1000]).unwrap();
        let info = tcp_info(&server).unwrap();
        assert_eq!(info.sent_bytes, 1000);
        assert_eq!(info.resent_bytes, 0);
        // The byte that the handshake counts is not payload, and the acknowledgement may come late.
        assert!(info.acked_bytes <= 1000);
        assert!(info.sent_segments >= 1 && info.ack_segments >= 1);
        assert!(info.segment_bytes > 500);
        assert!(info.rtt_us > 0 && info.rtt_us_min > 0);
        assert!((2..1000).contains(&info.cwnd_segments));
    }
}
