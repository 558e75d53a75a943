//! What follows `101 Switching Protocols`: bytes in both directions, until both sides have closed,
//! one has failed, or neither has sent anything for too long.
//!
//! A tunnel's bytes take no turns with responses. As a rule they are few, and nothing shows where a
//! message ends. Where the uplink is paced by its device's counters, they are charged like
//! handshakes.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};

use crate::context::Connection;
use crate::respond::Tunnel;
use crate::socket::Rewound;
use crate::watch::Order;

/// The size of the buffer in each direction.
const BUFFER_BYTES: usize = 16 * 1024;

/// Carries bytes between a client, of which `before` were already read, and a backend.
pub async fn tunnel<S>(connection: &Arc<Connection>, client: S, before: Bytes, tunnel: Tunnel)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Tunnel {
        mut backend,
        idle_time_max,
    } = tunnel;
    let watch = &connection.watch;
    watch.tunnel_begins();
    let mut client = Rewound::new(before, client);
    let mut carried = pin!(copy_bidirectional_with_sizes(
        &mut client,
        &mut backend,
        BUFFER_BYTES,
        BUFFER_BYTES
    ));
    let mut moves_seen = watch.moves();
    let mut silence = pin!(tokio::time::sleep(idle_time_max));
    poll_fn(|context| {
        if watch.order(context) == Order::Close {
            return Poll::Ready(());
        }
        if let Poll::Ready(ended) = carried.as_mut().poll(context) {
            if let Err(error) = ended {
                tracing::debug!("a tunnel ended: {error}");
            }
            return Poll::Ready(());
        }
        while silence.as_mut().poll(context).is_ready() {
            let moves = watch.moves();
            if std::mem::replace(&mut moves_seen, moves) == moves {
                return Poll::Ready(());
            }
            let next = tokio::time::Instant::now() + idle_time_max;
            silence.as_mut().reset(next);
        }
        Poll::Pending
    })
    .await;
}
