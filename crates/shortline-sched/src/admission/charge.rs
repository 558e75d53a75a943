//! What a tenant has been charged for one running request.

/// What the tenant of a running request has been charged for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    pub(super) tenant: usize,
    /// The advance that is not replaced yet, in nanoseconds of load.
    pub(super) advance_ns: u64,
    /// The work it had used when it was last settled, in nanoseconds of load.
    pub(super) used_ns: u64,
    /// What was charged for that. It is more than `used_ns` if an advance was not given back.
    pub(super) charged_ns: u64,
    /// How often the tenant's tag had been raised when the advance was paid.
    pub(super) raises: u64,
}
