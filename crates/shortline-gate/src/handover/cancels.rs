//! Cancel requests that come to the new process and mean a session which is still the old one's.

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::Blob;

/// Requests that wait; further ones are dropped. As with a database's own, nobody learns whether one had an effect.
const CANCELS_MAX: usize = 256;

/// Both ways.
#[derive(Debug)]
pub struct Cancels {
    /// To the other process, while there is one.
    elsewhere: Mutex<Option<mpsc::Sender<Blob>>>,
    /// From it.
    sender: mpsc::Sender<Blob>,
    receiver: tokio::sync::Mutex<mpsc::Receiver<Blob>>,
}

impl Default for Cancels {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(CANCELS_MAX);
        Self {
            elsewhere: Mutex::default(),
            sender,
            receiver: tokio::sync::Mutex::new(receiver),
        }
    }
}

impl Cancels {
    /// Requests that mean no session here come out here, until [`Self::close`].
    pub(super) fn open(&self) -> mpsc::Receiver<Blob> {
        let (sender, receiver) = mpsc::channel(CANCELS_MAX);
        *self.elsewhere.lock() = Some(sender);
        receiver
    }

    /// There is no other process any more.
    pub(super) fn close(&self) {
        *self.elsewhere.lock() = None;
    }

    /// A request of the other process.
    pub(super) fn arrive(&self, key: Blob) {
        // There is room, or the request has no effect.
        let _ = self.sender.try_send(key);
    }

    /// Passes a request on that means no session here. False if there is no other process.
    pub fn pass_on(&self, key: &[u8]) -> bool {
        let elsewhere = self.elsewhere.lock();
        if let Some(sender) = &*elsewhere {
            // There is room, or the request has no effect.
            let _ = sender.try_send(key.into());
        }
        elsewhere.is_some()
    }

    /// The key of the next request of the other process, for whoever asks.
    pub async fn next(&self) -> Vec<u8> {
        let arrived = self.receiver.lock().await.recv().await;
        arrived.expect("invariant: the sender is here").0
    }
}
