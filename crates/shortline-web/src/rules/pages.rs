//! Pages in the place of this server's own error texts. The status stays, and so do the fields that belong to it (`Allow`, `Retry-After`,
//! `WWW-Authenticate`). A backend's own answer stays as it is; where none comes (502, 503, 504) the page is sent.
//!
//! A page is a file of the site, or a text. It is looked up as a file, whatever the rules say of its path, so no page leads to
//! another. If there is no such file, the short text is sent.

use bytes::Bytes;
use http::StatusCode;

/// The pages by status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pages(Vec<(Errors, Page)>);

/// Which errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Errors {
    /// One status.
    Status(u16),
    /// All whose status begins with this digit.
    Class(u16),
}

/// A page.
#[derive(Clone, Debug, PartialEq)]
pub enum Page {
    /// The target of a file.
    File(String),
    /// A plain text.
    Text(Bytes),
}

impl Pages {
    /// The pages in any order; that of a status goes before that of its class.
    pub fn new(mut pages: Vec<(Errors, Page)>) -> Self {
        pages.sort_by_key(|page| page.0);
        Self(pages)
    }

    /// The page for a status.
    pub fn find(&self, status: StatusCode) -> Option<&Page> {
        let code = status.as_u16();
        let is_meant = |errors: &Errors| match errors {
            Errors::Status(status) => *status == code,
            Errors::Class(digit) => *digit == code / 100,
        };
        self.0
            .iter()
            .find(|(errors, _)| is_meant(errors))
            .map(|(_, page)| page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_goes_before_its_class() {
        let text = |text: &'static str| Page::Text(text.into());
        let pages = Pages::new(vec![
            (Errors::Class(4), text("class")),
            (Errors::Status(404), text("status")),
        ]);
        assert_eq!(pages.find(StatusCode::NOT_FOUND), Some(&text("status")));
        assert_eq!(pages.find(StatusCode::FORBIDDEN), Some(&text("class")));
        assert_eq!(pages.find(StatusCode::BAD_GATEWAY), None);
    }
}
