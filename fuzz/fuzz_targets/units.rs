//! Rates, sizes, times: never a panic, and what is printed reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shortline_sched::units::{Rate, Size, Span};

fuzz_target!(|text: &str| {
    if let Ok(rate) = text.parse::<Rate>() {
        assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
    }
    if let Ok(size) = text.parse::<Size>() {
        assert_eq!(size.to_string().parse::<Size>(), Ok(size));
    }
    if let Ok(span) = text.parse::<Span>() {
        assert_eq!(span.to_string().parse::<Span>(), Ok(span));
    }
});
