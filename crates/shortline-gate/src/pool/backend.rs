//! The part of a pool that each protocol implements: opening connections.

use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use super::Names;
use crate::relay::Stream;

/// Opens the connections of a pool.
pub trait Backend: Debug + Send + Sync + 'static {
    /// The kind of a connection. Connections of one kind are interchangeable.
    type Kind: Clone + Debug + Eq + Hash + Send + Sync;
    /// The credentials that the gate logs in with.
    type Login: Clone + Send + Sync;
    /// The protocol's state of a connection. It stays with the connection from session to session.
    type Known: Debug + Send;
    /// Why a connection could not be opened.
    type Refusal: Error + Send + Sync + 'static;

    /// Opens a connection and logs in.
    fn open(
        &self,
        kind: &Self::Kind,
        login: &Self::Login,
    ) -> impl Future<Output = Result<(Self::Known, Stream), Self::Refusal>> + Send;

    /// Whether it says that the server is not there, or not yet.
    fn is_unreachable(refusal: &Self::Refusal) -> bool;

    /// The names that an operator sees.
    fn names(&self, kind: &Self::Kind, known: &Self::Known) -> Names;
}
