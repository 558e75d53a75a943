//! Parameters of a simulation in words: sizes and clients.

use shortline_sim::ClientClass;
use shortline_sim::dist::Distribution;

/// Distributions of sizes. The mean must lie between the least size and the largest.
pub fn distribution(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match text.parse::<Distribution>() {
        Ok(sizes) => {
            let (low, high) = sizes.range();
            let mean = sizes.mean();
            // A mean is rounded, so it may leave a very narrow range.
            let slack = 1e-6 * mean.abs();
            assert!(
                low - slack <= mean && mean <= high + slack,
                "{text}: mean {mean} outside {low} to {high}"
            );
        }
        Err(error) => crate::assert_one_line(&error),
    }
}

/// Classes of clients. Their shares must allow drawing.
pub fn client_class(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match text.parse::<ClientClass>() {
        Ok(class) => assert!(class.share.is_finite() && class.share > 0.0),
        Err(error) => crate::assert_one_line(&error),
    }
}
