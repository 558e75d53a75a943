//! Admin request and admin confirm (clauses 2.15 and 2.16): change a book's price and pictures, and
//! compute anew which five books are related to it.

use maud::{Markup, html};

use super::Visit;
use crate::images::{IMAGE_BYTES_MAX, picture};
use crate::page::{dollars, image};
use crate::request::PageError;
use crate::store::{StoreError, Value};

const ITEM: &str = "SELECT i_title, a_fname, a_lname, i_cost, i_image, i_thumbnail, i_subject \
    FROM item, author WHERE i_a_id = a_id AND i_id = ?";
/// The books bought most, over all their orders, by the customers who bought this book in the last
/// 10,000 orders.
const BOUGHT_WITH: &str = "SELECT ol_i_id FROM orders, order_line \
    WHERE o_id = ol_o_id AND ol_i_id <> ? AND o_c_id IN \
    (SELECT their_order.o_c_id FROM orders their_order, order_line their_line \
    WHERE their_order.o_id = their_line.ol_o_id \
    AND their_order.o_id > (SELECT MAX(newest.o_id) - 10000 FROM orders newest) \
    AND their_line.ol_i_id = ?) \
    GROUP BY ol_i_id ORDER BY SUM(ol_qty) DESC LIMIT 5";
const CHANGE: &str = "UPDATE item SET i_cost = ?, i_image = ?, i_thumbnail = ?, \
    i_pub_date = CURRENT_DATE, i_related1 = ?, i_related2 = ?, i_related3 = ?, i_related4 = ?, \
    i_related5 = ? WHERE i_id = ?";

pub(super) async fn request(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    let id: i64 = visit.fields.number("i_id")?;
    let shown = show(visit, id).await?;
    Ok(html! {
        (shown)
        form method="post" action="/admin_confirm" {
            input type="hidden" name="i_id" value=(id);
            input name="cost"; input name="image"; input name="thumbnail";
            button { "Change" }
        }
    })
}

pub(super) async fn confirm(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    let id: i64 = visit.fields.number("i_id")?;
    let cost: i64 = visit.fields.number("cost")?;
    if !(0..=i64::from(i32::MAX)).contains(&cost) {
        let (field, want) = ("cost", "a price in cents");
        return Err(PageError::Field { field, want });
    }
    let cover = picture_size(visit, "image")?;
    let thumbnail = picture_size(visit, "thumbnail")?;
    let related = related(visit, id).await?;
    let mut values: Vec<Value> = vec![cost.into(), cover.into(), thumbnail.into()];
    values.extend(related.map(Value::from));
    values.push(id.into());
    visit.work.change_items().await;
    if visit.work.change(CHANGE, &values).await? == 0 {
        return Err(PageError::NotFound("book"));
    }
    show(visit, id).await
}

/// Five books. If fewer were bought with this one, its neighbours by number fill up.
async fn related(visit: &mut Visit<'_>, id: i64) -> Result<[i64; 5], StoreError> {
    let rows = visit
        .work
        .rows(BOUGHT_WITH, &[id.into(), id.into()])
        .await?;
    let items = i64::try_from(visit.items).unwrap_or(i64::MAX);
    let mut related = std::array::from_fn(|place| {
        let next = i64::try_from(place).unwrap_or(0) + 1;
        (id - 1 + next) % items + 1
    });
    for (place, row) in related.iter_mut().zip(&rows) {
        *place = row.integer(0)?;
    }
    Ok(related)
}

async fn show(visit: &mut Visit<'_>, id: i64) -> Result<Markup, PageError> {
    let row = visit.work.row(ITEM, &[id.into()]).await?;
    let row = row.ok_or(PageError::NotFound("book"))?;
    let bytes = |column| {
        row.integer(column)
            .map(|bytes| u32::try_from(bytes).unwrap_or(0))
    };
    Ok(html! {
        h2 { (row.text(0)?) }
        p { "By " (row.text(1)?) " " (row.text(2)?) ", subject " (row.text(6)?) }
        (image(bytes(4)?, id, "cover"))
        (image(bytes(5)?, id, "thumbnail"))
        p { "Price " (dollars(row.integer(3)?)) }
    })
}

fn picture_size(visit: &Visit<'_>, field: &'static str) -> Result<i64, PageError> {
    let bytes: u32 = visit.fields.number(field)?;
    let want = "the size of a picture, in bytes";
    if bytes > IMAGE_BYTES_MAX || picture(bytes).is_none() {
        return Err(PageError::Field { field, want });
    }
    Ok(bytes.into())
}
