//! A client's end of a connection, read in the manner of the client.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::network::End;
use crate::scenario::Manner;
use crate::world::World;

/// Reads and writes through an end as `manner` says.
pub struct Taking<S> {
    world: Arc<World>,
    end: Option<S>,
    manner: Manner,
    /// Bytes read so far.
    taken: u64,
    /// The wait until it reads on.
    pause: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// It has done what its manner requires.
    done: bool,
}

impl Taking<End> {
    /// An end for a client with this manner.
    pub fn new(world: &Arc<World>, end: End, manner: Manner) -> Self {
        Self {
            world: Arc::clone(world),
            end: Some(end),
            manner,
            taken: 0,
            pause: None,
            done: false,
        }
    }

    /// Does what is due after this many bytes. An error: the connection is over for its client.
    fn act(&mut self) -> Option<io::Error> {
        let taken = self.taken;
        let due = |after: u64| taken >= after;
        let Some(end) = &self.end else {
            return Some(io::ErrorKind::ConnectionAborted.into());
        };
        match self.manner {
            Manner::Leaves(after) if due(after) => {
                self.end = None;
                Some(io::ErrorKind::ConnectionAborted.into())
            }
            Manner::Resets(after) if due(after) => {
                end.reset();
                self.end = None;
                Some(io::ErrorKind::ConnectionAborted.into())
            }
            Manner::Vanishes(after) if due(after) && !self.done => {
                self.done = true;
                end.connection().vanish();
                None
            }
            Manner::HalfCloses(after) if due(after) && !self.done => {
                self.done = true;
                end.finish();
                None
            }
            _ => None,
        }
    }
}

impl AsyncRead for Taking<End> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(error) = self.act() {
            return Poll::Ready(Err(error));
        }
        if let Manner::Stalls(after) = self.manner
            && self.taken >= after
        {
            // Nobody wakes it. It stays until the run is over.
            return Poll::Pending;
        }
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        let most = match self.manner {
            Manner::Slow { bytes, .. } => bytes.min(buffer.remaining()),
            _ => buffer.remaining(),
        };
        let mut part = buffer.take(most);
        let Some(end) = &mut self.end else {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        };
        ready!(Pin::new(end).poll_read(context, &mut part))?;
        let length = part.filled().len();
        // The read went into the same memory, but the buffer does not know yet.
        let bytes = part.filled().to_vec();
        buffer.put_slice(&bytes);
        self.taken += length as u64;
        if let Manner::Slow { pause_ns, .. } = self.manner {
            let world = Arc::clone(&self.world);
            self.pause = Some(Box::pin(async move { world.sleep(pause_ns).await }));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Taking<End> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.end {
            Some(end) => Pin::new(end).poll_write(context, bytes),
            None => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(end) = &self.end {
            end.finish();
        }
        Poll::Ready(Ok(()))
    }
}
