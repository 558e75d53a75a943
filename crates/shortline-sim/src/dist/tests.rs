//! What the distributions know of themselves, their text and their samples.
#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;

const ALL: [&str; 13] = [
    "exp:3",
    "bp:1,1000,1.5",
    "bp:512,1e10,1",
    "bp:332,1e10,1.1",
    "bp:1,inf,2.5",
    "det:7",
    "weibull:0.4,20",
    "weibull:2,1e-6",
    "uniform:0,4",
    "uniform:3,4",
    "lognormal-pareto:9,1.3,1000,1e7,1.2",
    "surge-001",
    "world-cup",
];

fn parse(text: &str) -> Distribution {
    text.parse().unwrap()
}

fn all() -> impl Iterator<Item = Distribution> {
    let listed = Distribution::empirical([5.0, 1.0, 2.0, 2.0, 9.0, 1e6]).unwrap();
    ALL.into_iter().map(parse).chain([listed])
}

fn close(a: f64, b: f64, relative: f64) -> bool {
    a == b || (a - b).abs() <= relative * a.abs().max(b.abs())
}

#[test]
fn a_distribution_reads_back_as_it_is_printed() {
    for text in ALL {
        let distribution = parse(text);
        assert_eq!(parse(&distribution.to_string()), distribution, "{text}");
    }
    assert_eq!(parse("surge-001").to_string(), "surge-001");
    assert_eq!(parse("bp:1,inf,2.5").to_string(), "bp:1,inf,2.5");
}

#[test]
fn moments_are_as_known() {
    for (text, power, known) in [
        ("exp:3", 1, 3.0),
        ("exp:3", 2, 18.0),
        ("exp:3", -1, f64::INFINITY),
        ("weibull:2,1", 2, 4.0 / std::f64::consts::PI),
        ("det:7", 3, 343.0),
        ("uniform:0,4", 2, 16.0 / 3.0),
        ("uniform:0,4", -1, f64::INFINITY),
        ("uniform:1,4", -1, 4f64.ln() / 3.0),
        ("bp:1,inf,2.5", 1, 2.5 / 1.5),
        ("bp:1,inf,2.5", 3, f64::INFINITY),
        ("bp:1,10,1", 1, 10f64.ln() / 0.9),
        ("bp:1,10,2", 2, 2.0 * 10f64.ln() / 0.99),
    ] {
        let moment = parse(text).moment(power);
        assert!(close(moment, known, 1e-13), "{text}^{power}: {moment}");
    }
    let listed = Distribution::empirical([1.0, 3.0, 3.0, 5.0]).unwrap();
    assert_eq!((listed.mean(), listed.moment(2)), (3.0, 11.0));
}

/// Paper 001, 4.1: mean 11108; the tail's scale of 631.44 makes its share 0.0700.
#[test]
fn the_papers_model_has_the_papers_mean() {
    let surge = parse("surge-001");
    assert!(close(surge.mean(), 11108.0, 1e-4), "{}", surge.mean());
    assert!((surge.share_above(9020.0) - 631.44 / 9020.0).abs() < 1e-4);
}

/// Paper 000, 2.1: mean 5 KB, half under 1 KB, 90 % under 9.3 KB, the largest 3 % over half.
#[test]
fn the_log_of_the_other_papers_is_met() {
    let log = parse("world-cup");
    assert!(close(log.mean(), 5000.0, 1e-3), "{}", log.mean());
    assert!((log.cdf(1000.0) - 0.5).abs() < 1e-4);
    assert!((log.cdf(9300.0) - 0.9).abs() < 1e-4);
    let largest = log.size_exceeded_by(0.03);
    assert!(log.partial_moment(1, largest) < 0.5 * log.mean());
}

#[test]
fn the_quantile_inverts_the_distribution_function() {
    for distribution in all().filter(|distribution| distribution.atoms().is_none()) {
        for share in [1e-12, 1e-6, 0.01, 0.07, 0.3, 0.5, 0.9, 0.999_999] {
            let size = distribution.size_exceeded_by(share);
            let back = distribution.share_above(size);
            // The distribution does not resolve sizes next to the largest better than that.
            let exact = close(back, share, 1e-7) || (back - share).abs() < 1e-15;
            assert!(exact, "{distribution}: {share} {back}");
        }
    }
}

#[test]
fn the_quantile_of_a_list_is_one_of_its_sizes() {
    let listed = Distribution::empirical([1.0, 2.0, 2.0, 10.0]).unwrap();
    let quantiles = [0.0, 0.25, 0.26, 0.75, 0.76, 1.0].map(|share| listed.quantile(share));
    assert_eq!(quantiles, [1.0, 1.0, 2.0, 2.0, 10.0, 10.0]);
    let shares: Vec<_> = listed.atoms().unwrap().collect();
    assert_eq!(shares, [(1.0, 0.25), (2.0, 0.5), (10.0, 0.25)]);
    assert_eq!(listed.share_above(2.0), 0.25);
    assert_eq!(listed.partial_moment(1, 2.0), 1.25);
    assert_eq!(listed.partial_moment(1, 1.9), 0.25);
}

#[test]
fn partial_moments_grow_to_the_moment() {
    for distribution in all() {
        let (low, high) = distribution.range();
        for power in 0..=2 {
            let whole = distribution.partial_moment(power, high);
            assert!(
                close(whole, distribution.moment(power), 1e-12),
                "{distribution}"
            );
            let mut last = 0.0;
            for share in (1..100).map(|percent| f64::from(percent) / 100.0) {
                let part = distribution.partial_moment(power, distribution.quantile(share));
                assert!(
                    part >= last && part <= whole * (1.0 + 1e-12),
                    "{distribution}"
                );
                last = part;
            }
            assert_eq!(distribution.partial_moment(power, low * 0.99), 0.0);
        }
    }
}

/// The share below a size, once as an integral and once from the tail's side.
#[test]
fn both_ways_to_the_share_below_agree() {
    for distribution in all() {
        for share in [0.001, 0.2, 0.5, 0.8, 0.95, 0.9999] {
            let size = distribution.quantile(share);
            let (cdf, integral) = (distribution.cdf(size), distribution.partial_moment(0, size));
            assert!(
                (cdf - integral).abs() < 1e-12,
                "{distribution}: {cdf} {integral}"
            );
        }
    }
}

#[test]
fn samples_have_the_mean_and_the_quartiles() {
    for distribution in all().filter(|distribution| distribution.moment(2).is_finite()) {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let count = 40_000;
        let samples: Vec<f64> = (0..count).map(|_| distribution.sample(&mut rng)).collect();
        let capped = distribution.quantile(0.99);
        // Of sizes cut at the 99th percentile, so that heavy tails settle too.
        let known =
            distribution.partial_moment(1, capped) + capped * distribution.share_above(capped);
        let mean = samples.iter().map(|size| size.min(capped)).sum::<f64>() / f64::from(count);
        assert!(close(mean, known, 0.03), "{distribution}: {mean} {known}");
        for share in [0.25, 0.5, 0.75] {
            let size = distribution.quantile(share);
            let below = samples.iter().filter(|sample| **sample <= size).count();
            let found = below as f64 / f64::from(count);
            assert!(
                (found - distribution.cdf(size)).abs() < 0.01,
                "{distribution}: {found}"
            );
        }
    }
}

#[test]
fn a_seed_gives_the_same_sizes_everywhere() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let surge = parse("surge-001");
    let sizes = [(); 3].map(|()| surge.sample(&mut rng).floor());
    assert_eq!(sizes, [5622.0, 5394.0, 1203.0]);
}

#[test]
fn bad_input_is_told_in_one_line() {
    for (text, part) in [
        ("", "unknown"),
        ("pareto:1,2", "unknown"),
        ("exp", "0 numbers where exp:MEAN has 1"),
        ("exp:1,2", "2 numbers"),
        ("exp:one", "`one` is no number"),
        ("exp:nan", "`nan` is no number"),
        ("exp:-1", "MEAN -1"),
        ("exp:inf", "MEAN inf"),
        ("det:0", "SIZE 0"),
        ("bp:0,10,1.1", "LOW 0"),
        (
            "bp:10,1,1.1",
            "HIGH 1 of a distribution: want more than LOW, 10",
        ),
        ("bp:1,10,0", "ALPHA 0"),
        (
            "weibull:0.01,1",
            "SHAPE 0.01 of a distribution: want 0.1 to 100",
        ),
        ("uniform:-1,1", "LOW -1"),
        ("lognormal-pareto:7,1,1e60,inf,1", "CUT"),
        ("surge-001:1", "unknown"),
        ("exp:1\n2", "is no number"),
    ] {
        let told = text.parse::<Distribution>().unwrap_err().to_string();
        assert!(told.contains(part), "{text}: {told}");
        assert!(!told.contains('\n'), "{text}: {told}");
    }
    let told = |sizes: &[f64]| {
        Distribution::empirical(sizes.iter().copied())
            .unwrap_err()
            .to_string()
    };
    assert!(told(&[]).contains("no sizes"));
    assert!(told(&[1.0, f64::NAN]).contains("size NaN at place 2"));
    assert!(told(&[1.0, 2.0, -3.0]).contains("size -3 at place 3"));
}

proptest! {
    #[test]
    fn every_sample_is_a_size_within_the_range(seed: u64, which in 0..ALL.len()) {
        let distribution = parse(ALL[which]);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let size = distribution.sample(&mut rng);
        let (low, high) = distribution.range();
        prop_assert!(size > 0.0 && size.is_finite() && (low..=high).contains(&size));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text: String) {
        let _ = text.parse::<Distribution>();
    }
}
