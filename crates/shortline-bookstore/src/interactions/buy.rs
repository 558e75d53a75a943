//! Buy request and buy confirm (clauses 2.6 and 2.7).

use maud::{Markup, html};

use super::Visit;
use super::cart::{self, Line};
use super::customer::{self, Customer};
use crate::page::dollars;
use crate::request::PageError;
use crate::store::{StoreError, Value};
use crate::words::{CARD_TYPES, SHIP_TYPES};

const CUSTOMER: &str =
    "SELECT c_discount, c_addr_id, c_fname, c_lname FROM customer WHERE c_id = ?";
const ORDER: &str = "INSERT INTO orders (o_c_id, o_date, o_sub_total, o_tax, o_total, o_ship_type, \
    o_ship_date, o_bill_addr_id, o_ship_addr_id, o_status) VALUES (?, CURRENT_TIMESTAMP, ?, ?, ?, ?, \
    CURRENT_TIMESTAMP + INTERVAL '3' DAY, ?, ?, 'PENDING')";
const ORDER_LINE: &str = "INSERT INTO order_line (ol_o_id, ol_id, ol_i_id, ol_qty, ol_discount, \
    ol_comments) VALUES (?, ?, ?, ?, ?, ?)";
/// Clause 2.7.3: if fewer than 10 would be left, 21 are ordered and available at once.
const TAKE: &str = "UPDATE item SET i_stock = CASE WHEN i_stock - ? < 10 THEN i_stock - ? + 21 \
    ELSE i_stock - ? END WHERE i_id = ?";
const PAYMENT: &str = "INSERT INTO cc_xacts (cx_o_id, cx_type, cx_num, cx_name, cx_expire, \
    cx_auth_id, cx_xact_amt, cx_xact_date, cx_co_id) \
    SELECT ?, ?, ?, ?, CURRENT_DATE + INTERVAL '1' YEAR, ?, ?, CURRENT_TIMESTAMP, addr_co_id \
    FROM address WHERE addr_id = ?";
const EMPTY: &str = "DELETE FROM shopping_cart_line WHERE scl_sc_id = ?";

/// In hundredths of a percent.
const TAX: i64 = 825;
/// The shipping costs in cents: a base, and an amount for each line.
const SHIPPING: (i64, i64) = (300, 100);

/// Shows the cost of the cart to the customer, and registers or logs in the customer.
pub(super) async fn request(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    let customer = match visit.fields.text("returning_flag")? {
        "Y" => customer::log_in(visit.work, visit.fields).await?,
        _ => customer::register(visit.work, visit.fields).await?,
    };
    visit.session.customer = Some(customer.id);
    let lines = match visit.session.cart {
        Some(cart) => cart::lines(visit.work, cart).await?,
        None => Vec::new(),
    };
    Ok(bill(&customer, &lines))
}

fn bill(customer: &Customer, lines: &[Line]) -> Markup {
    let cost = Cost::of(lines, customer.discount);
    html! {
        p { (customer.first_name) " " (customer.last_name) ", " (customer.address) }
        p { (customer.email) ", " (customer.phone) }
        table {
            @for line in lines {
                tr { td { (line.quantity) } td { (line.title) } td { (dollars(line.price)) } }
            }
        }
        p { "Subtotal " (dollars(cost.subtotal)) ", tax " (dollars(cost.tax)) ", total "
            (dollars(cost.total)) ", discount " (customer.discount) " %" }
        form method="post" action="/buy_confirm" {
            select name="cc_type" { @for card in CARD_TYPES { option { (card) } } }
            input name="cc_number"; input name="cc_name";
            select name="shipping" { @for shipping in SHIP_TYPES { option { (shipping) } } }
            button { "Buy" }
        }
    }
}

/// The cost of an order, in cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    subtotal: i64,
    tax: i64,
    total: i64,
}

impl Cost {
    fn of(lines: &[Line], discount: i64) -> Self {
        let subtotal = cart::subtotal(lines, discount);
        let tax = subtotal * TAX / 10_000;
        let count = i64::try_from(lines.len()).unwrap_or(i64::MAX);
        let total = subtotal + tax + SHIPPING.0 + SHIPPING.1 * count;
        Self {
            subtotal,
            tax,
            total,
        }
    }
}

/// Turns the cart into an order, takes it from the stock, records the payment and empties the cart.
pub(super) async fn confirm(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    let fields = visit.fields;
    let buyer: i64 = fields.number("c_id")?;
    let cart: i64 = fields.number("shopping_id")?;
    let card = listed(fields.text("cc_type")?, &CARD_TYPES, "cc_type")?;
    let shipping = listed(fields.text("shipping")?, &SHIP_TYPES, "shipping")?;
    let number = fit(fields.text("cc_number")?, 16, "cc_number")?;
    let holder = fit(fields.text("cc_name")?, 31, "cc_name")?;

    let customer = visit.work.row(CUSTOMER, &[buyer.into()]).await?;
    let customer = customer.ok_or(PageError::NotFound("customer"))?;
    let (discount, bill_to) = (customer.integer(0)?, customer.integer(1)?);
    let ship_to = match fields.optional_text("street1") {
        Some(_) => customer::enter_address(visit.work, fields).await?,
        None => bill_to,
    };
    let lines = cart::lines(visit.work, cart).await?;
    let cost = Cost::of(&lines, discount);
    let order: [Value; 7] = [
        buyer.into(),
        cost.subtotal.into(),
        cost.tax.into(),
        cost.total.into(),
        shipping.into(),
        bill_to.into(),
        ship_to.into(),
    ];
    let order = visit.work.insert(ORDER, "o_id", &order).await?;
    enter_lines(visit, order, &lines, discount).await?;
    let payment: [Value; 7] = [
        order.into(),
        card.into(),
        number.into(),
        holder.into(),
        "AUTHORIZED00000".into(),
        cost.total.into(),
        ship_to.into(),
    ];
    visit.work.change(PAYMENT, &payment).await?;
    visit.work.change(EMPTY, &[cart.into()]).await?;
    take(visit, &lines).await?;
    Ok(html! {
        p { "Thank you. Your order is number " span id="order" { (order) } "." }
        table {
            @for line in &lines {
                tr { td { (line.quantity) } td { (line.title) } td { (dollars(line.price)) } }
            }
        }
        p { "Total " (dollars(cost.total)) ", by " (shipping) }
    })
}

async fn enter_lines(
    visit: &mut Visit<'_>,
    order: i64,
    lines: &[Line],
    discount: i64,
) -> Result<(), StoreError> {
    for (number, line) in (1i64..).zip(lines) {
        let values: [Value; 6] = [
            order.into(),
            number.into(),
            line.item.into(),
            line.quantity.into(),
            discount.into(),
            "as in the shop".into(),
        ];
        visit.work.change(ORDER_LINE, &values).await?;
    }
    Ok(())
}

/// Takes what was sold from the stock. Conflicting changes are locked out from here to the commit.
async fn take(visit: &mut Visit<'_>, lines: &[Line]) -> Result<(), StoreError> {
    visit.work.change_items().await;
    for line in lines {
        let sold: Value = line.quantity.into();
        let values = [sold.clone(), sold.clone(), sold, line.item.into()];
        visit.work.change(TAKE, &values).await?;
    }
    Ok(())
}

fn listed<'a>(text: &'a str, list: &[&str], field: &'static str) -> Result<&'a str, PageError> {
    let want = "one of the form's choices";
    list.contains(&text)
        .then_some(text)
        .ok_or(PageError::Field { field, want })
}

fn fit<'a>(text: &'a str, bytes_max: usize, field: &'static str) -> Result<&'a str, PageError> {
    let want = "ASCII text, not longer than its column";
    (text.is_ascii() && text.len() <= bytes_max)
        .then_some(text)
        .ok_or(PageError::Field { field, want })
}
