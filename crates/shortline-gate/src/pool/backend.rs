//! What a pool asks of a protocol: to open connections.

use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use super::Names;
use crate::relay::Stream;

/// What opens connections, and what is known of them.
pub trait Backend: Debug + Send + Sync + 'static {
    /// What names a connection's kind: connections of one kind can stand in for each other.
    type Kind: Clone + Debug + Eq + Hash + Send + Sync;
    /// What the gate logs in with.
    type Login: Clone + Send + Sync;
    /// What is known of a connection, whoever has it.
    type Known: Debug + Send;
    /// Why there is no connection.
    type Refusal: Error + Send + Sync + 'static;

    /// Opens a connection and logs in.
    fn open(
        &self,
        kind: &Self::Kind,
        login: &Self::Login,
    ) -> impl Future<Output = Result<(Self::Known, Stream), Self::Refusal>> + Send;

    /// What an operator is told of it.
    fn names(&self, kind: &Self::Kind, known: &Self::Known) -> Names;
}
