//! The content of the tables when the shop opens (clause 4.7), made from a seed.
//!
//! With C customers and I items there are 2 C addresses, I / 4 authors, 0.9 C orders of 1 to 5
//! lines each, as many credit card transactions, 92 countries, and empty carts. 002 (4.3) had
//! 10,000 items and 288,000 customers.
//!
//! Departures: names come from random letters and the specification's syllables, not from its DBGEN
//! utility. Dates count back from a fixed day, so that a seed gives the same rows on every day. A
//! search looks for a part of a title or last name.

mod countries;
mod load;
mod rows;

use std::time::Duration;

use serde::Serialize;
use time::Date;
use time::macros::date;

pub use load::populate;
pub(crate) use rows::Field;

/// The size of the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Scale {
    /// Books.
    pub items: u64,
    /// Customers.
    pub customers: u64,
}

impl Scale {
    /// 002's (4.3).
    pub const PAPER: Self = Self {
        items: 10_000,
        customers: 288_000,
    };

    /// Authors.
    pub fn authors(self) -> u64 {
        (self.items / 4).max(1)
    }

    /// Addresses.
    pub fn addresses(self) -> u64 {
        2 * self.customers
    }

    /// Orders, and credit card transactions.
    pub fn orders(self) -> u64 {
        self.customers * 9 / 10
    }
}

/// All that determines the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Population {
    /// The size.
    pub scale: Scale,
    /// The same seed makes the same rows.
    pub seed: u64,
}

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Populated {
    /// Rows in all tables.
    pub rows: u64,
    /// How long it took.
    pub took: Duration,
}

/// The last day before the shop opens: that of 002's conference.
pub(crate) const TODAY: Date = date!(2004 - 05 - 17);
