//! The live page of a gate.

/// The page.
pub fn html() -> String {
    crate::page::html(
        "Shortline gate",
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
