//! The fourteen interactions of TPC-W (clause 2), their names, and the tables each one uses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A page of the bookstore, in the order of the specification's transition tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the specification's")]
pub enum Interaction {
    /// 002 calls it "Admin Resp".
    AdminConfirm,
    AdminRequest,
    BestSellers,
    BuyConfirm,
    BuyRequest,
    /// The one that does not use the database.
    CustomerRegistration,
    Home,
    NewProducts,
    OrderDisplay,
    OrderInquiry,
    ProductDetail,
    SearchRequest,
    /// 002 calls it "Exec Search".
    SearchResults,
    ShoppingCart,
}

impl Interaction {
    /// All of them, in order.
    pub const ALL: [Self; 14] = [
        Self::AdminConfirm,
        Self::AdminRequest,
        Self::BestSellers,
        Self::BuyConfirm,
        Self::BuyRequest,
        Self::CustomerRegistration,
        Self::Home,
        Self::NewProducts,
        Self::OrderDisplay,
        Self::OrderInquiry,
        Self::ProductDetail,
        Self::SearchRequest,
        Self::SearchResults,
        Self::ShoppingCart,
    ];

    /// Its name, as in paths, tags and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::AdminConfirm => "admin_confirm",
            Self::AdminRequest => "admin_request",
            Self::BestSellers => "best_sellers",
            Self::BuyConfirm => "buy_confirm",
            Self::BuyRequest => "buy_request",
            Self::CustomerRegistration => "customer_registration",
            Self::Home => "home",
            Self::NewProducts => "new_products",
            Self::OrderDisplay => "order_display",
            Self::OrderInquiry => "order_inquiry",
            Self::ProductDetail => "product_detail",
            Self::SearchRequest => "search_request",
            Self::SearchResults => "search_results",
            Self::ShoppingCart => "shopping_cart",
        }
    }

    /// Its position in [`Interaction::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether it changes the database. Such a page is requested with POST, so that nothing on the
    /// way repeats it.
    pub fn writes(self) -> bool {
        self.tables()
            .iter()
            .any(|used| used.access == Access::Write)
    }

    /// The tables it uses, for locking in the database.
    pub(crate) fn tables(self) -> &'static [Used] {
        match self {
            Self::AdminConfirm => ADMIN_CONFIRM,
            Self::AdminRequest | Self::ProductDetail => ITEMS,
            Self::BestSellers => BEST_SELLERS,
            Self::BuyConfirm => BUY_CONFIRM,
            Self::BuyRequest => BUY_REQUEST,
            Self::CustomerRegistration => &[],
            Self::Home => HOME,
            Self::NewProducts | Self::SearchResults => ITEMS,
            Self::OrderDisplay => ORDER_DISPLAY,
            Self::OrderInquiry => CUSTOMERS,
            Self::SearchRequest => PROMOTED,
            Self::ShoppingCart => SHOPPING_CART,
        }
    }
}

impl fmt::Display for Interaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Interaction {
    type Err = UnknownInteraction;

    fn from_str(name: &str) -> Result<Self, UnknownInteraction> {
        let found = Self::ALL.into_iter().find(|each| each.name() == name);
        found.ok_or(UnknownInteraction)
    }
}

/// A word that is not the name of an [`Interaction`].
#[derive(Debug, Error, PartialEq, Eq)]
#[error("want one of TPC-W's fourteen interactions, such as home or best_sellers")]
pub struct UnknownInteraction;

/// What an interaction does with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A table in the statements of an interaction, under its alias there: MariaDB locks a table once
/// for each alias.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub table: &'static str,
    pub alias: &'static str,
    pub access: Access,
}

const fn read(table: &'static str) -> Used {
    read_as(table, table)
}

const fn read_as(table: &'static str, alias: &'static str) -> Used {
    Used {
        table,
        alias,
        access: Access::Read,
    }
}

const fn write(table: &'static str) -> Used {
    Used {
        table,
        alias: table,
        access: Access::Write,
    }
}

// Each list is in the order of the tables' names, so that two interactions cannot deadlock.
const ITEMS: &[Used] = &[read("author"), read("item")];
const CUSTOMERS: &[Used] = &[read("customer")];
const PROMOTED: &[Used] = &[read("item"), read_as("item", "promoted")];
const HOME: &[Used] = &[read("customer"), read("item"), read_as("item", "promoted")];
const BEST_SELLERS: &[Used] = &[
    read("author"),
    read("item"),
    read("order_line"),
    read("orders"),
];
const ADMIN_CONFIRM: &[Used] = &[
    read("author"),
    write("item"),
    read("order_line"),
    read_as("order_line", "their_line"),
    read("orders"),
    read_as("orders", "their_order"),
    read_as("orders", "newest"),
];
const SHOPPING_CART: &[Used] = &[
    read("item"),
    read_as("item", "promoted"),
    write("shopping_cart"),
    write("shopping_cart_line"),
];
const BUY_REQUEST: &[Used] = &[
    write("address"),
    read("country"),
    write("customer"),
    read("item"),
    read("shopping_cart_line"),
];
const BUY_CONFIRM: &[Used] = &[
    write("address"),
    write("cc_xacts"),
    read("country"),
    read("customer"),
    write("item"),
    write("order_line"),
    write("orders"),
    write("shopping_cart_line"),
];
const ORDER_DISPLAY: &[Used] = &[
    read("address"),
    read_as("address", "bill"),
    read_as("address", "ship"),
    read("cc_xacts"),
    read("country"),
    read_as("country", "bill_country"),
    read_as("country", "ship_country"),
    read("customer"),
    read("item"),
    read("order_line"),
    read("orders"),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_is_found_by_its_name_and_place() {
        for (index, interaction) in Interaction::ALL.into_iter().enumerate() {
            assert_eq!(interaction.index(), index);
            assert_eq!(interaction.name().parse(), Ok(interaction));
        }
        assert!("checkout".parse::<Interaction>().is_err());
    }

    #[test]
    fn those_that_write_are_the_four_that_change_carts_customers_orders_and_items() {
        let writing: Vec<_> = Interaction::ALL
            .into_iter()
            .filter(|each| each.writes())
            .collect();
        use Interaction::{AdminConfirm, BuyConfirm, BuyRequest, ShoppingCart};
        assert_eq!(
            writing,
            [AdminConfirm, BuyConfirm, BuyRequest, ShoppingCart]
        );
    }

    #[test]
    fn tables_are_locked_in_one_order() {
        for interaction in Interaction::ALL {
            let tables: Vec<_> = interaction.tables().iter().map(|used| used.table).collect();
            assert!(tables.is_sorted(), "{interaction}: {tables:?}");
        }
    }
}
