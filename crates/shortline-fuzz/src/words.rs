//! Words of flags, keys and request files. What is printed must read back.

use shortline_load::workload::Workload;
use shortline_sched::units::{Rate, Size, Span};
use shortline_sched::{Aging, Growing, Policy};

/// Rates, sizes and times.
pub fn units(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match text.parse::<Rate>() {
        Ok(rate) => assert_eq!(rate.to_string().parse(), Ok(rate)),
        Err(error) => crate::assert_one_line(&error),
    }
    match text.parse::<Size>() {
        Ok(size) => assert_eq!(size.to_string().parse(), Ok(size)),
        Err(error) => crate::assert_one_line(&error),
    }
    match text.parse::<Span>() {
        Ok(span) => assert_eq!(span.to_string().parse(), Ok(span)),
        Err(error) => crate::assert_one_line(&error),
    }
}

/// Policies with their cutoffs, alone and in lists, and the factors beside them.
pub fn policy(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Policy::list(text) {
        Ok(policies) => {
            let texts: Vec<String> = policies.iter().map(ToString::to_string).collect();
            assert_eq!(Policy::list(&texts.join(",")), Ok(policies));
        }
        Err(error) => crate::assert_one_line(&error),
    }
    if let Err(error) = text.parse::<Aging>() {
        crate::assert_one_line(&error);
    }
    if let Err(error) = text.parse::<Growing>() {
        crate::assert_one_line(&error);
    }
}

/// Workloads: sites and schedules, whose phases have a length and some load.
pub fn workload(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match text.parse::<Workload>() {
        Ok(workload) => {
            let phases = workload.schedule.phases();
            assert!(phases.iter().all(|phase| phase.length_s > 0.0));
            assert!(workload.schedule.mean_load() >= 0.0);
            assert_eq!(workload.to_string().parse(), Ok(workload));
        }
        Err(error) => crate::assert_one_line(&error),
    }
}
