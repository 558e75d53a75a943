//! What a browser finds in a page: its customer, its cart, books to look at, pictures to fetch.

/// The most books or pictures read from a page. Pages are small and have fewer.
const FOUND_MAX: usize = 256;

/// The content of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub customer: Option<u64>,
    pub cart: Option<u64>,
    /// Books that the page links to.
    pub items: Vec<u64>,
    /// Books in the cart, if the page shows one.
    pub in_cart: Vec<u64>,
    /// Paths of pictures, in the order of the page.
    pub pictures: Vec<String>,
}

impl Reading {
    /// Reads a page of the bookstore.
    pub fn of(page: &str) -> Self {
        let hidden = |name: &str| {
            let mark = format!("name=\"{name}\" value=\"");
            after(page, &mark).find_map(number)
        };
        let mut items = Vec::new();
        for link in after(page, "href=\"/product_detail?").take(FOUND_MAX) {
            let link = link.split('"').next().unwrap_or_default();
            items.extend(after(link, "i_id=").next().and_then(number));
        }
        let pictures = after(page, "src=\"")
            .filter_map(|rest| rest.split('"').next())
            .filter(|path| path.starts_with('/'));
        Self {
            customer: hidden("c_id"),
            cart: hidden("shopping_id"),
            items,
            in_cart: after(page, "name=\"qty_")
                .filter_map(number)
                .take(FOUND_MAX)
                .collect(),
            pictures: pictures.take(FOUND_MAX).map(str::to_owned).collect(),
        }
    }
}

/// What follows each `mark`.
fn after<'a>(text: &'a str, mark: &str) -> impl Iterator<Item = &'a str> {
    let length = mark.len();
    text.match_indices(mark.to_owned().as_str())
        .map(move |(at, _)| &text[at + length..])
        .collect::<Vec<_>>()
        .into_iter()
}

/// The number at the start of a text.
fn number(text: &str) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interaction::Interaction;
    use crate::page::{Book, books, image, page};
    use crate::request::Session;
    use maud::html;
    use proptest::prelude::*;

    #[test]
    fn what_a_page_shows_is_found() {
        let session = Session {
            customer: Some(17),
            cart: Some(4),
        };
        let book = |id| Book {
            id,
            title: "A".into(),
            author: "B".into(),
        };
        let content = html! {
            (books(session, &[book(3), book(99)]))
            (image(5120, 3, "cover"))
            input name="qty_12" value="2";
        };
        let page = page(session, Interaction::Home, &content).into_string();
        let reading = Reading::of(&page);
        assert_eq!(reading.customer, Some(17));
        assert_eq!(reading.cart, Some(4));
        assert_eq!(reading.items, [3, 99]);
        assert_eq!(reading.in_cart, [12]);
        assert!(reading.pictures.contains(&"/images/5120/3.gif".to_owned()));
        assert_eq!(reading.pictures.len(), 6);
    }

    proptest! {
        #[test]
        fn no_page_harms(page in ".{0,400}") {
            Reading::of(&page);
        }
    }
}
