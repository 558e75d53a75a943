//! Who asks: users, the clients that they are, and a client that never has enough.
//!
//! Users are written `NUMBER[/CLIENTS]`, groups separated by commas: `20,100/1` are 20 users who
//! are one client each (20 addresses) and 100 users who are one client together (a carrier's NAT).
//! Each request comes from any user with the same probability. Without groups each request is a
//! client of its own.
//!
//! A greedy client is written `NUMBER*SIZE`. It always waits for so many responses of that size, in
//! a closed loop from the first arrival to the last, beside the users. `1*1TB` is a download,
//! `64*1KB` are pieces over 64 connections.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use shortline_sched::Client;
use shortline_sched::units::{Size, excerpt};

use crate::SimError;
use crate::random::{Stream, generator, unit};

/// Users, and the number of clients they ask as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserGroup {
    /// How many users.
    pub users: NonZeroU32,
    /// How many clients they are together.
    pub clients: NonZeroU32,
}

/// One client that never has enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greedy {
    /// Responses that it always waits for.
    pub at_once: NonZeroU32,
    /// How large each is.
    pub size: Size,
}

/// Text that describes no group of users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "users `{text}`: want their number, and if they share addresses that of these, such as 20 or 100/1"
)]
pub struct UserGroupError {
    text: String,
}

/// Text that describes no greedy client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: want what the client always waits for, such as 64*1KB (at most {GREEDY_MAX})")]
pub struct GreedyError {
    text: String,
}

/// The most responses that a greedy client waits for.
pub const GREEDY_MAX: u32 = 100_000;
/// The greedy client's name; users have smaller ones.
const GREEDY: u128 = u128::MAX;

impl FromStr for UserGroup {
    type Err = UserGroupError;

    fn from_str(text: &str) -> Result<Self, UserGroupError> {
        let (users, clients) = text.split_once('/').unwrap_or((text, text));
        let group = || {
            Some(Self {
                users: users.trim().parse().ok()?,
                clients: clients.trim().parse().ok()?,
            })
        };
        group()
            .filter(|group| group.clients <= group.users)
            .ok_or_else(|| UserGroupError {
                text: excerpt(text),
            })
    }
}

impl fmt::Display for UserGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.users)?;
        match self.clients == self.users {
            true => Ok(()),
            false => write!(f, "/{}", self.clients),
        }
    }
}

impl FromStr for Greedy {
    type Err = GreedyError;

    fn from_str(text: &str) -> Result<Self, GreedyError> {
        let read = || {
            let (at_once, size) = text.split_once('*')?;
            Some(Self {
                at_once: at_once.trim().parse().ok()?,
                size: size.trim().parse().ok()?,
            })
        };
        read()
            .filter(|greedy| greedy.at_once.get() <= GREEDY_MAX)
            .ok_or_else(|| GreedyError {
                text: excerpt(text),
            })
    }
}

impl fmt::Display for Greedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}*{}", self.at_once, self.size)
    }
}

/// Says of each request who asks.
pub(crate) struct Users {
    groups: Vec<UserGroup>,
    rng: ChaCha8Rng,
}

impl Users {
    pub(crate) fn new(groups: &[UserGroup], seed: u64, replication: u32) -> Self {
        Self {
            groups: groups.to_vec(),
            rng: generator(seed, replication, Stream::Users),
        }
    }

    /// A user's group, from 0, and its client; `None` where each request is a client of its own.
    pub(crate) fn draw(&mut self) -> (usize, Option<Client>) {
        if self.groups.is_empty() {
            return (0, None);
        }
        let users = |group: &UserGroup| u64::from(group.users.get());
        let all: u64 = self.groups.iter().map(users).sum();
        let mut user = (unit(&mut self.rng) * all as f64) as u64;
        let mut clients_before = 0;
        for (place, group) in self.groups.iter().enumerate() {
            if user < users(group) {
                let name = clients_before + user % u64::from(group.clients.get());
                return (place, Some(client(name.into())));
            }
            user -= users(group);
            clients_before += u64::from(group.clients.get());
        }
        unreachable!("invariant: a user is one of all")
    }
}

/// The client that never has enough.
pub(crate) fn greedy_client() -> Client {
    client(GREEDY)
}

fn client(name: u128) -> Client {
    Client {
        name,
        weight: NonZeroU32::MIN,
    }
}

/// Refuses numbers that cannot be counted.
pub(crate) fn check(groups: &[UserGroup]) -> Result<(), SimError> {
    let all: u64 = groups
        .iter()
        .map(|group| u64::from(group.users.get()))
        .sum();
    if all > u64::from(u32::MAX) {
        return Err(SimError::Range {
            what: "users in all",
            value: all as f64,
            want: "below 4 billion",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_written_reads_as_it_was() {
        for text in ["20", "100/1", "100/8"] {
            let group: UserGroup = text.parse().unwrap();
            assert_eq!(group.to_string(), text);
        }
        for text in ["", "0", "20/0", "20/21", "x", "-1", "1/2/3", "99999999999"] {
            let error = text.parse::<UserGroup>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
        let greedy: Greedy = "64*1KB".parse().unwrap();
        assert_eq!((greedy.at_once.get(), greedy.size.bytes()), (64, 1000));
        assert_eq!(greedy.to_string().parse(), Ok(greedy));
        for text in ["", "64", "0*1KB", "64*", "64*fast", "100001*1KB"] {
            assert!(text.parse::<Greedy>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_user_asks_as_often_and_as_its_client() {
        let groups = ["20".parse().unwrap(), "100/4".parse().unwrap()];
        let mut users = Users::new(&groups, 1, 0);
        let mut of_client = BTreeMap::<(usize, u128), u32>::new();
        for _ in 0..120_000 {
            let (group, client) = users.draw();
            *of_client.entry((group, client.unwrap().name)).or_default() += 1;
        }
        assert_eq!(of_client.len(), 24);
        for ((group, _), requests) in of_client {
            let mean = [1000.0, 25_000.0][group];
            assert!((f64::from(requests) - mean).abs() < 6.0 * mean.sqrt());
        }
        assert_eq!(Users::new(&[], 1, 0).draw(), (0, None));
    }
}
