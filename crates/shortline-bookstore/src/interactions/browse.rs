//! The pages that only show: home, new products, best sellers, product detail, search.

use maud::{Markup, html};

use super::Visit;
use super::promotion::promoted;
use crate::interaction::Interaction;
use crate::page::{Book, books, dollars, image, link, promotion};
use crate::request::PageError;
use crate::store::{Row, StoreError, Value};
use crate::words::SUBJECTS;

const CUSTOMER_NAME: &str = "SELECT c_fname, c_lname FROM customer WHERE c_id = ?";
const NEW_PRODUCTS: &str = "SELECT i_id, i_title, a_fname, a_lname FROM item, author \
    WHERE i_a_id = a_id AND i_subject = ? ORDER BY i_pub_date DESC, i_title LIMIT 50";
/// The 50 that sold best among the last 3,333 orders (clause 2.6.3).
const BEST_SELLERS: &str = "SELECT i_id, i_title, a_fname, a_lname FROM item, author, order_line \
    WHERE i_id = ol_i_id AND i_a_id = a_id \
    AND ol_o_id > (SELECT MAX(o_id) - 3333 FROM orders) AND i_subject = ? \
    GROUP BY i_id, i_title, a_fname, a_lname ORDER BY SUM(ol_qty) DESC LIMIT 50";
const PRODUCT: &str = "SELECT i_title, a_fname, a_lname, i_subject, i_desc, i_image, i_srp, i_cost, \
    i_backing, i_page, i_publisher, i_isbn, i_dimensions, i_stock FROM item, author \
    WHERE i_a_id = a_id AND i_id = ?";
const BY_AUTHOR: &str = "SELECT i_id, i_title, a_fname, a_lname FROM item, author \
    WHERE i_a_id = a_id AND a_lname LIKE ? ORDER BY i_title LIMIT 50";
const BY_TITLE: &str = "SELECT i_id, i_title, a_fname, a_lname FROM item, author \
    WHERE i_a_id = a_id AND i_title LIKE ? ORDER BY i_title LIMIT 50";
const BY_SUBJECT: &str = "SELECT i_id, i_title, a_fname, a_lname FROM item, author \
    WHERE i_a_id = a_id AND i_subject = ? ORDER BY i_title LIMIT 50";

pub(super) async fn home(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    let name = match visit.session.customer {
        Some(id) => visit.work.row(CUSTOMER_NAME, &[id.into()]).await?,
        None => None,
    };
    let promoted = promoted(visit).await?;
    let session = visit.session;
    Ok(html! {
        @if let Some(name) = name { p { "Hello " (name.text(0)?) " " (name.text(1)?) } }
        (promotion(session, &promoted))
        table {
            @for subject in SUBJECTS {
                tr {
                    td { a href=(subject_link(visit, Interaction::NewProducts, subject)) { (subject) } }
                    td { a href=(subject_link(visit, Interaction::BestSellers, subject)) { (subject) } }
                }
            }
        }
    })
}

pub(super) async fn new_products(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    by_subject(visit, NEW_PRODUCTS).await
}

pub(super) async fn best_sellers(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    by_subject(visit, BEST_SELLERS).await
}

async fn by_subject(visit: &mut Visit<'_>, statement: &str) -> Result<Markup, PageError> {
    let subject = visit.fields.text("subject")?;
    let found = list(visit, statement, subject.into()).await?;
    Ok(html! {
        h2 { (subject) }
        (books(visit.session, &found))
    })
}

pub(super) async fn product_detail(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    let id: i64 = visit.fields.number("i_id")?;
    let row = visit.work.row(PRODUCT, &[id.into()]).await?;
    let row = row.ok_or(PageError::NotFound("book"))?;
    let image_bytes = u32::try_from(row.integer(5)?).unwrap_or(0);
    Ok(html! {
        h2 { (row.text(0)?) }
        p { "By " (row.text(1)?) " " (row.text(2)?) ", subject " (row.text(3)?) }
        (image(image_bytes, id, "cover"))
        p { (row.text(4)?) }
        p { "Suggested " (dollars(row.integer(6)?)) ", ours " (dollars(row.integer(7)?)) }
        p {
            (row.text(8)?) ", " (row.integer(9)?) " pages, " (row.text(10)?) ", ISBN " (row.text(11)?)
            ", " (row.text(12)?) ", " (row.integer(13)?) " in stock"
        }
        form method="post" action="/shopping_cart" {
            input type="hidden" name="i_id" value=(id);
            button { "Add to cart" }
        }
        a href=(format!("{}&i_id={id}", link(visit.session, Interaction::AdminRequest))) { "Edit" }
    })
}

pub(super) async fn search_request(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    let promoted = promoted(visit).await?;
    Ok(html! {
        (promotion(visit.session, &promoted))
        form action="/search_results" {
            select name="search_type" {
                option { "author" } option { "title" } option { "subject" }
            }
            input name="search_string";
            button { "Search" }
        }
    })
}

pub(super) async fn search_results(visit: &mut Visit<'_>) -> Result<Markup, PageError> {
    let sought = visit.fields.text("search_string")?;
    let part: Value = format!("%{}%", sought.replace(['%', '_', '\\'], "")).into();
    let found = match visit.fields.text("search_type")? {
        "author" => list(visit, BY_AUTHOR, part).await?,
        "title" => list(visit, BY_TITLE, part).await?,
        "subject" => list(visit, BY_SUBJECT, sought.into()).await?,
        _ => {
            let (field, want) = ("search_type", "author, title or subject");
            return Err(PageError::Field { field, want });
        }
    };
    Ok(html! {
        h2 { (sought) }
        (books(visit.session, &found))
    })
}

async fn list(
    visit: &mut Visit<'_>,
    statement: &str,
    value: Value,
) -> Result<Vec<Book>, StoreError> {
    let rows = visit.work.rows(statement, &[value]).await?;
    rows.iter().map(book).collect()
}

fn book(row: &Row) -> Result<Book, StoreError> {
    Ok(Book {
        id: row.integer(0)?,
        title: row.text(1)?.to_owned(),
        author: format!("{} {}", row.text(2)?, row.text(3)?),
    })
}

fn subject_link(visit: &Visit<'_>, to: Interaction, subject: &str) -> String {
    format!("{}&subject={subject}", link(visit.session, to))
}
