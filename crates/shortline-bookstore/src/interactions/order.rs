//! Order inquiry and order display (clauses 2.8 and 2.9).

use maud::{Markup, html};

use super::{Visit, customer};
use crate::page::dollars;
use crate::request::PageError;

const USER_NAME: &str = "SELECT c_uname FROM customer WHERE c_id = ?";
const LATEST: &str = "SELECT MAX(o_id) FROM orders WHERE o_c_id = ?";
const ORDER: &str = "SELECT o_sub_total, o_tax, o_total, o_ship_type, o_status, \
    CAST(o_date AS CHAR(19)), CAST(o_ship_date AS CHAR(19)), cx_type, \
    bill.addr_street1, bill.addr_city, bill.addr_zip, bill_country.co_name, \
    ship.addr_street1, ship.addr_city, ship.addr_zip, ship_country.co_name \
    FROM orders, cc_xacts, address bill, address ship, country bill_country, country ship_country \
    WHERE o_id = ? AND cx_o_id = o_id AND bill.addr_id = o_bill_addr_id \
    AND bill_country.co_id = bill.addr_co_id AND ship.addr_id = o_ship_addr_id \
    AND ship_country.co_id = ship.addr_co_id";
const LINES: &str = "SELECT i_id, i_title, i_publisher, i_cost, ol_qty, ol_discount, ol_comments \
    FROM order_line, item WHERE ol_i_id = i_id AND ol_o_id = ?";

/// A form for name and password, with the name of the session's customer.
pub(super) async fn inquiry(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    let name = match visit.session.customer {
        Some(id) => visit.work.row(USER_NAME, &[id.into()]).await?,
        None => None,
    };
    let name = name.as_ref().and_then(|row| row.text(0).ok()).unwrap_or("");
    Ok(html! {
        form action="/order_display" {
            input name="uname" value=(name);
            input name="passwd" type="password";
            button { "Show" }
        }
    })
}

/// A customer's latest order.
pub(super) async fn display(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    let customer = customer::known(visit.work, visit.fields).await?;
    let latest = visit.work.row(LATEST, &[customer.id.into()]).await?;
    let latest = latest
        .and_then(|row| row.optional_integer(0).transpose())
        .transpose()?;
    let Some(order) = latest else {
        return Ok(html! { p { "You have ordered nothing yet." } });
    };
    let row = visit.work.row(ORDER, &[order.into()]).await?;
    let row = row.ok_or(PageError::NotFound("order"))?;
    let lines = visit.work.rows(LINES, &[order.into()]).await?;
    Ok(html! {
        h2 { "Order " span id="order" { (order) } }
        p { (customer.first_name) " " (customer.last_name) ", " (customer.email) }
        p { (row.text(4)?) ", ordered " (row.text(5)?) ", shipped " (row.text(6)?)
            " by " (row.text(3)?) ", paid with " (row.text(7)?) }
        p { "Billed to " (row.text(8)?) ", " (row.text(9)?) " " (row.text(10)?) ", " (row.text(11)?) }
        p { "Shipped to " (row.text(12)?) ", " (row.text(13)?) " " (row.text(14)?) ", "
            (row.text(15)?) }
        table {
            @for line in &lines {
                tr {
                    td { (line.integer(0)?) } td { (line.text(1)?) } td { (line.text(2)?) }
                    td { (dollars(line.integer(3)?)) } td { (line.integer(4)?) }
                    td { (line.integer(5)?) " %" } td { (line.text(6)?) }
                }
            }
        }
        p { "Subtotal " (dollars(row.integer(0)?)) ", tax " (dollars(row.integer(1)?)) ", total "
            (dollars(row.integer(2)?)) }
    })
}
