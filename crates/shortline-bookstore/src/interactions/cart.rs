//! The shopping cart (clause 2.4), and its content for the pages that need it.

use maud::{Markup, html};

use super::Visit;
use super::promotion::{any_item, promoted};
use crate::images::THUMBNAIL_BYTES;
use crate::page::{dollars, image, promotion};
use crate::request::PageError;
use crate::store::{Row, StoreError, Work};

const CREATE: &str = "INSERT INTO shopping_cart (sc_time) VALUES (CURRENT_TIMESTAMP)";
const TOUCH: &str = "UPDATE shopping_cart SET sc_time = CURRENT_TIMESTAMP WHERE sc_id = ?";
const LINE: &str = "SELECT scl_qty FROM shopping_cart_line WHERE scl_sc_id = ? AND scl_i_id = ?";
const ADD: &str = "INSERT INTO shopping_cart_line (scl_sc_id, scl_i_id, scl_qty) VALUES (?, ?, 1)";
const SET: &str = "UPDATE shopping_cart_line SET scl_qty = ? WHERE scl_sc_id = ? AND scl_i_id = ?";
const REMOVE: &str = "DELETE FROM shopping_cart_line WHERE scl_sc_id = ? AND scl_i_id = ?";
const COUNT: &str = "SELECT COUNT(*) FROM shopping_cart_line WHERE scl_sc_id = ?";
const LINES: &str = "SELECT scl_i_id, scl_qty, i_title, i_cost, i_srp, i_backing \
    FROM shopping_cart_line, item WHERE scl_i_id = i_id AND scl_sc_id = ? ORDER BY scl_i_id";

/// The most lines a cart may have (clause 1.4: a cart holds up to 100 items).
const LINES_MAX: i64 = 100;
/// The largest quantity of a line.
const QUANTITY_MAX: i64 = 999;

/// Makes a cart if the session has none. Adds `i_id` and sets the quantities `qty_I`. If the cart
/// is then empty, adds a random book.
pub(super) async fn show(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    let added: Option<i64> = visit.fields.optional_number("i_id")?;
    let quantities = visit.fields.numbered("qty_")?;
    let cart = match visit.session.cart {
        Some(cart) => cart,
        None => visit.work.insert(CREATE, "sc_id", &[]).await?,
    };
    visit.session.cart = Some(cart);
    if let Some(item) = added {
        add(visit.work, cart, item).await?;
    }
    for (item, quantity) in quantities {
        set(visit.work, cart, item, quantity).await?;
    }
    let row = visit.work.row(COUNT, &[cart.into()]).await?;
    if row.ok_or(StoreError::Missing("count"))?.integer(0)? == 0 {
        add(visit.work, cart, any_item(visit.items)).await?;
    }
    visit.work.change(TOUCH, &[cart.into()]).await?;
    let promoted = promoted(visit).await?;
    let lines = lines(visit.work, cart).await?;
    Ok(html! {
        (promotion(visit.session, &promoted))
        form method="post" action="/shopping_cart" {
            table {
                @for line in &lines {
                    tr {
                        td { (image(THUMBNAIL_BYTES, line.item, "book")) }
                        td { (line.title) " (" (line.backing) ")" }
                        td { (dollars(line.price)) }
                        td { input name=(format!("qty_{}", line.item)) value=(line.quantity); }
                    }
                }
            }
            p { "Subtotal " (dollars(subtotal(&lines, 0))) }
            button { "Refresh" }
        }
    })
}

/// A line of a cart.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub item: i64,
    pub quantity: i64,
    pub title: String,
    /// In cents.
    pub price: i64,
    pub backing: String,
}

/// The content of a cart, in the order of the items' numbers.
pub(super) async fn lines(work: &mut Work, cart: i64) -> Result<Vec<Line>, StoreError> {
    let rows = work.rows(LINES, &[cart.into()]).await?;
    rows.iter().map(line).collect()
}

/// The cost of the lines with a discount in percent, in cents.
pub(super) fn subtotal(lines: &[Line], discount: i64) -> i64 {
    let full: i64 = lines.iter().map(|line| line.price * line.quantity).sum();
    full - full * discount / 100
}

fn line(row: &Row) -> Result<Line, StoreError> {
    Ok(Line {
        item: row.integer(0)?,
        quantity: row.integer(1)?,
        title: row.text(2)?.to_owned(),
        price: row.integer(3)?,
        backing: row.text(5)?.to_owned(),
    })
}

async fn add(work: &mut Work, cart: i64, item: i64) -> Result<(), StoreError> {
    let held = work.row(LINE, &[cart.into(), item.into()]).await?;
    if let Some(held) = held {
        return set(work, cart, item, held.integer(0)? + 1).await;
    }
    let count = work.row(COUNT, &[cart.into()]).await?;
    if count.ok_or(StoreError::Missing("count"))?.integer(0)? < LINES_MAX {
        work.change(ADD, &[cart.into(), item.into()]).await?;
    }
    Ok(())
}

/// Sets the quantity of a line. A quantity of 0 removes it.
async fn set(work: &mut Work, cart: i64, item: i64, quantity: i64) -> Result<(), StoreError> {
    if quantity <= 0 {
        work.change(REMOVE, &[cart.into(), item.into()]).await?;
    } else {
        let quantity = quantity.min(QUANTITY_MAX);
        work.change(SET, &[quantity.into(), cart.into(), item.into()])
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discount_is_taken_from_the_whole() {
        let line = |price, quantity| Line {
            item: 1,
            quantity,
            title: String::new(),
            price,
            backing: String::new(),
        };
        assert_eq!(subtotal(&[line(1000, 2), line(333, 1)], 0), 2333);
        assert_eq!(subtotal(&[line(1000, 2), line(333, 1)], 10), 2100);
        assert_eq!(subtotal(&[], 50), 0);
    }
}
