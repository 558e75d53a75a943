//! The heads of responses that a cache keeps in a folder.

use shortline_web::response_cache::folder::entry::{Head, with_first_line};

/// A head, and one without the line that says what it must be. What is a head is read back as it is written.
pub fn head(bytes: &[u8]) {
    for bytes in [bytes, &with_first_line(bytes)] {
        let Ok(head) = Head::parse(bytes) else {
            continue;
        };
        assert!(head.variant.starts_with(&head.name));
        if let Some(written) = head.render() {
            assert_eq!(Head::parse(&written), Ok(head));
        }
    }
}
