//! Fetches under way: one for each name, and who waits for it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// All fetches under way. There are no more than requests that fetch.
#[derive(Default)]
pub struct Flights(Mutex<HashMap<Box<str>, watch::Receiver<()>>>);

/// Who fetches.
pub enum Turn {
    /// This request, for all.
    Fetches(Flight),
    /// Another. The channel closes when that has ended.
    Waits(watch::Receiver<()>),
}

/// A fetch under way, as long as this is held.
pub struct Flight {
    flights: Arc<Flights>,
    name: Box<str>,
    /// Who waits sees it go.
    _landing: watch::Sender<()>,
}

impl Flights {
    /// Whether a request with this name fetches or waits.
    pub fn turn(self: &Arc<Self>, name: &str) -> Turn {
        let mut under_way = self.0.lock();
        if let Some(landing) = under_way.get(name) {
            return Turn::Waits(landing.clone());
        }
        let (sender, landing) = watch::channel(());
        under_way.insert(name.into(), landing);
        Turn::Fetches(Flight {
            flights: Arc::clone(self),
            name: name.into(),
            _landing: sender,
        })
    }

    /// How many there are.
    pub fn under_way(&self) -> usize {
        self.0.lock().len()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.flights.0.lock().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_fetches_and_the_others_wait_for_its_end() {
        let flights = Arc::new(Flights::default());
        let Turn::Fetches(first) = flights.turn("a") else {
            panic!("nobody fetches yet")
        };
        let Turn::Waits(mut landing) = flights.turn("a") else {
            panic!("the first fetches")
        };
        assert!(matches!(flights.turn("b"), Turn::Fetches(_)));
        assert!(landing.has_changed().is_ok());
        drop(first);
        assert!(landing.changed().await.is_err());
        assert!(matches!(flights.turn("a"), Turn::Fetches(_)));
    }
}
