//! What an audit is to know of each grant, while it is asked for.

/// One grant: what its job had left, and the least that another had left which could have gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub granted_bytes: u64,
    pub least_waiting_bytes: Option<u64>,
}
