//! The live page of a web server.

/// The page.
pub fn html() -> String {
    crate::page::html(
        "Shortline",
        include_str!("page/page.html"),
        include_str!("page/page.js"),
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        crate::page::testing::assert_fetches_nothing(&super::html());
    }
}
