//! Keeps a log readable where something happens a thousand times a second: a limited number of
//! lines a second, and the next line says how many were left out.

use std::time::Duration;

use tokio::time::Instant;

/// Lines allowed within [`WINDOW`].
const LINES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(1);

/// Recent log lines.
#[derive(Debug, Default)]
pub struct Throttle {
    /// When the present window began.
    begun: Option<Instant>,
    lines: u32,
    untold: u64,
}

impl Throttle {
    /// Whether a line may be written now, and if so, how many were left out since the last one.
    pub fn allow(&mut self, now: Instant) -> Option<u64> {
        let is_new = self
            .begun
            .is_none_or(|begun| now.saturating_duration_since(begun) >= WINDOW);
        if is_new {
            self.begun = Some(now);
            self.lines = 0;
        }
        if self.lines == LINES_MAX {
            self.untold += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_told_by_the_next_line() {
        let mut throttle = Throttle::default();
        let begun = Instant::now();
        for _ in 0..LINES_MAX {
            assert_eq!(throttle.allow(begun), Some(0));
        }
        assert_eq!(throttle.allow(begun), None);
        assert_eq!(throttle.allow(begun + WINDOW / 2), None);
        assert_eq!(throttle.allow(begun + WINDOW), Some(2));
        assert_eq!(throttle.allow(begun + WINDOW), Some(0));
    }
}
