//! Certificates by themselves: ordered from an authority by ACME (RFC 8555), kept in a folder, renewed in time. And what is told of
//! all that are served: whether they are revoked (OCSP, RFC 6960), and when they end.
//!
//! | part | what it does |
//! |---|---|
//! | [`Keeper`] | has a certificate for each name, orders what is missing, renews what is old |
//! | `keeper/on_demand` | certificates of names that nobody has listed: got when a client asks, within bounds |
//! | [`schedule`] | when to order, to ask and to try again; time is an argument |
//! | [`Challenges`] | what the authority looks for at our addresses, for the server to answer |
//! | `authority`, `order` | the account, one order from its beginning to a certificate, the authority's advice (ARI, RFC 9773) |
//! | [`ExternalAccount`] | what an authority has given to somebody it knows |
//! | `client` | HTTPS to the authority: little is taken from it, and not for long |
//! | `store` | the folder: keys and certificates, the account, what failed, the lock between processes |
//! | [`Attendant`] | certificates that are served, also those from files: their responders' answers, their end |
//! | [`ocsp`] | what a responder is asked, and whether its answer is good enough to be stapled |
//! | `leaf` | what a certificate says of itself |
//!
//! The protocol is `instant-acme`'s. Ours are the schedule, the folder, the lock, the answers to challenges and the limits on
//! what an authority may send. Whoever serves knows of this room only certificates that change and texts to answer with.
#![forbid(unsafe_code)]

mod attendant;
mod authority;
mod challenges;
mod client;
mod config;
mod external;
mod keeper;
pub mod leaf;
pub mod ocsp;
mod order;
pub mod schedule;
mod store;

pub use attendant::{Attendant, Attended, OcspStatus, Served};
pub use challenges::Challenges;
pub use client::retry_after_s;
pub use config::{ChallengeKind, Config, DIRECTORY, DIRECTORY_STAGING, KeyKind, OnDemand};
pub use external::ExternalAccount;
pub use keeper::{CertificateStatus, Counts, Keeper, KeeperError, Prepared};
pub use store::{StoreError, check as check_state};
