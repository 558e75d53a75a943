//! What all pages share: head, buttons, links that carry the session, lists of books.

use maud::{DOCTYPE, Markup, html};

use crate::images::{BUTTON_BYTES, THUMBNAIL_BYTES};
use crate::interaction::Interaction;
use crate::request::Session;

/// A whole page. The hidden fields name the session; the buttons lead to other pages.
pub(crate) fn page(session: Session, interaction: Interaction, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "Bookstore: " (interaction) }
            }
            body {
                (image(BUTTON_BYTES, 0, "logo"))
                h1 { (interaction) }
                @if let Some(customer) = session.customer {
                    input type="hidden" name="c_id" value=(customer);
                }
                @if let Some(cart) = session.cart {
                    input type="hidden" name="shopping_id" value=(cart);
                }
                (content)
                p {
                    (button(session, Interaction::Home, 1))
                    (button(session, Interaction::SearchRequest, 2))
                    (button(session, Interaction::ShoppingCart, 3))
                    (button(session, Interaction::OrderInquiry, 4))
                }
            }
        }
    }
}

/// A list of books, each a link to its details.
pub(crate) fn books(session: Session, books: &[Book]) -> Markup {
    html! {
        table {
            @for book in books {
                tr {
                    td { (book.author) }
                    td { a href=(item_link(session, book.id)) { (book.title) } }
                }
            }
        }
    }
}

/// The five promoted books at the head of some pages.
pub(crate) fn promotion(session: Session, promoted: &[Promoted]) -> Markup {
    html! {
        p {
            @for item in promoted {
                a href=(item_link(session, item.id)) {
                    (image(THUMBNAIL_BYTES, item.id, "book"))
                }
            }
        }
    }
}

/// A picture of `bytes` for the item `number`.
pub(crate) fn image(bytes: u32, number: i64, what: &str) -> Markup {
    html! { img src=(format!("/images/{bytes}/{number}.gif")) alt=(what); }
}

/// The link to the details of an item.
pub(crate) fn item_link(session: Session, item: i64) -> String {
    format!("{}&i_id={item}", link(session, Interaction::ProductDetail))
}

/// The link to a page, for this session.
pub(crate) fn link(session: Session, to: Interaction) -> String {
    let number = |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
    format!(
        "/{to}?c_id={}&shopping_id={}",
        number(session.customer),
        number(session.cart)
    )
}

/// Cents as dollars.
pub(crate) fn dollars(cents: i64) -> String {
    format!("${}.{:02}", cents / 100, cents % 100)
}

fn button(session: Session, to: Interaction, number: i64) -> Markup {
    html! {
        @if to.writes() {
            form method="post" action=(format!("/{to}")) {
                button { (image(BUTTON_BYTES, number, to.name())) }
            }
        } @else {
            a href=(link(session, to)) { (image(BUTTON_BYTES, number, to.name())) }
        }
    }
}

/// A line of a list of books.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    pub id: i64,
    pub title: String,
    pub author: String,
}

/// A book among the five promoted ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promoted {
    pub id: i64,
}
