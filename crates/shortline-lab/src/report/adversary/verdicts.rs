//! What each of our modes must withstand, and whether it did: a verdict on each part of a claim.

use std::fmt::Write as _;

use crate::study::adversary::attacks::{ATTACKS, DOWNLOAD, MANY_DOWNLOADS, NONE};
use crate::study::adversary::results::Results;
use crate::study::adversary::surface::Surface;
use shortline_table::time;

/// The most that an attacker may get, relative to one download.
const GOODPUT_RATIO_MAX: f64 = 1.0;

/// What a server must withstand.
struct Claims {
    server: &'static str,
    /// The users' highest mean beside an attack by pieces, relative to that beside one download.
    ratio_max: f64,
    /// The same beside other attacks.
    mean_s_max: &'static [(&'static str, f64)],
}

/// Our modes: paced at the given rate, paced at the rate found out behind a FIFO, and slots.
const CLAIMS: [Claims; 3] = [
    Claims {
        server: "shares",
        ratio_max: 1.25,
        mean_s_max: &[
            (MANY_DOWNLOADS, 0.009),
            ("h2-bytes-20x100", 0.009),
            ("never-acks-1000", 0.009),
        ],
    },
    Claims {
        server: "auto-shares",
        ratio_max: 1.25,
        mean_s_max: &[
            (MANY_DOWNLOADS, 0.025),
            ("ranges-1k-64", 0.025),
            ("ranges-1k-1000", 0.025),
        ],
    },
    Claims {
        server: "slots-shares",
        ratio_max: 2.0,
        mean_s_max: &[],
    },
];

/// A line for each claim, under a heading for each server that ran.
pub(super) fn verdicts(results: &Results) -> String {
    let mut text = String::new();
    let ran = |claims: &&Claims| results.servers().contains(&claims.server);
    for claims in CLAIMS.iter().filter(ran) {
        writeln!(text, "\n## What `{}` is to withstand\n", claims.server).ok();
        claims.judge(results, &mut text);
    }
    text
}

impl Claims {
    fn judge(&self, results: &Results, text: &mut String) {
        let of = |attack: &str| results.figures(self.server, attack);
        let download = of(DOWNLOAD);
        let mut line = |attack: &str, claim: &str, found: Option<(bool, String)>| {
            let runs = [of(attack), download];
            let is_void = runs.iter().flatten().any(|figures| figures.void > 0);
            let void = if is_void { " (of a VOID run)" } else { "" };
            let (verdict, found) = match found {
                Some((true, found)) => ("holds", found + void),
                Some((false, found)) => ("does not hold", found + void),
                None => ("not measured", "-".into()),
            };
            writeln!(text, "- {verdict}: `{attack}`: {claim}: {found}").ok();
        };
        for attack in ATTACKS.into_iter().filter(|attack| attack.is_in_pieces()) {
            let (most, both) = (self.ratio_max, of(attack.name).zip(download));
            let found = both.map(|(figures, download)| {
                let (ratio, failed) = (figures.mean_s / download.mean_s, figures.failed);
                let holds = ratio <= most && failed == 0;
                (holds, format!("{ratio:.3} times, {failed} failed"))
            });
            let claim = format!("mean at most {most} times that beside `{DOWNLOAD}`, no failure");
            line(attack.name, &claim, found);
        }
        let attacked = |name: &str| ![NONE, DOWNLOAD].contains(&name);
        for attack in ATTACKS.into_iter().filter(|attack| attacked(attack.name)) {
            let both = of(attack.name).zip(download);
            let ratio = both.and_then(|(figures, download)| figures.goodput_ratio(&download));
            let found =
                ratio.map(|ratio| (ratio <= GOODPUT_RATIO_MAX, format!("{ratio:.4} times")));
            let claim = format!(
                "the attacker gets at most {GOODPUT_RATIO_MAX:.1} times what `{DOWNLOAD}` gets"
            );
            line(attack.name, &claim, found);
        }
        // The limits are for users in the clear. Over TLS, or with a backend, they wait longer even without an attack.
        let in_the_clear = results.surface == Surface::Plain;
        for &(attack, most_s) in self.mean_s_max.iter().filter(|_| in_the_clear) {
            let found = of(attack).map(|figures| {
                let (mean_s, failed) = (figures.mean_s, figures.failed);
                let holds = mean_s <= most_s && failed == 0;
                (holds, format!("{}, {failed} failed", time(mean_s)))
            });
            let claim = format!("mean at most {}, no failure", time(most_s));
            line(attack, &claim, found);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::report::adversary::tests::{measured, results};
    use crate::study::adversary::results::Measured;

    #[test]
    fn a_verdict_is_on_every_word_of_its_claim() {
        let verdict = |run: Measured, begin: &str| {
            let runs = vec![measured(DOWNLOAD, 1, 0.020, 0, 4.0), run];
            let text = verdicts(&results(runs));
            let is_of = |line: &&str| line.contains(begin);
            let verdict = text.lines().find(is_of).unwrap();
            verdict.split(':').next().unwrap().to_owned()
        };
        let mean = "`ranges-1k-8`: mean";
        let of = |mean_s, failed, mbit_s| measured("ranges-1k-8", 1, mean_s, failed, mbit_s);
        assert_eq!(verdict(of(0.025, 0, 4.0), mean), "- holds");
        assert_eq!(verdict(of(0.026, 0, 4.0), mean), "- does not hold");
        assert_eq!(verdict(of(0.020, 1, 4.0), mean), "- does not hold");
        let gets = "`ranges-1k-8`: the attacker";
        assert_eq!(verdict(of(0.020, 0, 4.0), gets), "- holds");
        assert_eq!(verdict(of(0.020, 0, 4.1), gets), "- does not hold");
        let many = "`downloads-1000`: mean";
        assert_eq!(verdict(of(0.020, 0, 4.0), many), "- not measured");
        let run = measured(MANY_DOWNLOADS, 1, 0.009, 0, 4.0);
        assert_eq!(verdict(run, many), "- holds");
        let mut void = of(0.020, 0, 4.0);
        void.void = Some("late".into());
        let text = verdicts(&results(vec![measured(DOWNLOAD, 1, 0.020, 0, 4.0), void]));
        assert!(
            text.contains("1.000 times, 0 failed (of a VOID run)"),
            "{text}"
        );
        assert_eq!(verdicts(&Results::default()), "");
        let over_tls = Results {
            surface: Surface::Tls,
            ..results(vec![measured(DOWNLOAD, 1, 0.020, 0, 4.0)])
        };
        let text = verdicts(&over_tls);
        assert!(text.contains(mean) && !text.contains(many), "{text}");
        let with_slots = |mean_s| {
            let runs = [(DOWNLOAD, 0.020), ("ranges-1k-8", mean_s)];
            let run = |(attack, mean_s)| Measured {
                server: "slots-shares".into(),
                ..measured(attack, 1, mean_s, 0, 4.0)
            };
            verdicts(&results(runs.map(run).to_vec()))
        };
        assert!(with_slots(0.040).contains("- holds: `ranges-1k-8`: mean at most 2 times"));
        assert!(with_slots(0.041).contains("- does not hold: `ranges-1k-8`: mean at most 2"));
    }
}
