//! Distributions as text, `bp:1,1000,1.5`: read and printed.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use shortline_sched::units::excerpt;

use super::error::FORMS;
use super::lognormal_pareto::LogNormalPareto;
use super::{DistError, Distribution, Family};

impl Distribution {
    /// All forms of a distribution's text, for messages and help.
    pub const FORMS: &str = FORMS;
}

const SURGE_001: &str = "surge-001";
const WORLD_CUP: &str = "world-cup";

impl FromStr for Distribution {
    type Err = DistError;

    fn from_str(text: &str) -> Result<Self, DistError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match (name, rest) {
            (SURGE_001, "") => Ok(surge_001()),
            (WORLD_CUP, "") => Ok(world_cup()),
            ("exp", _) => {
                let [mean] = numbers(text, rest, "exp:MEAN")?;
                Self::exponential(mean)
            }
            ("bp", _) => {
                let [low, high, alpha] = numbers(text, rest, "bp:LOW,HIGH,ALPHA")?;
                Self::bounded_pareto(low, high, alpha)
            }
            ("det", _) => {
                let [size] = numbers(text, rest, "det:SIZE")?;
                Self::deterministic(size)
            }
            ("weibull", _) => {
                let [shape, mean] = numbers(text, rest, "weibull:SHAPE,MEAN")?;
                Self::weibull(shape, mean)
            }
            ("uniform", _) => {
                let [low, high] = numbers(text, rest, "uniform:LOW,HIGH")?;
                Self::uniform(low, high)
            }
            ("lognormal-pareto", _) => {
                let form = "lognormal-pareto:MU,SIGMA,CUT,HIGH,ALPHA";
                let [mu, sigma, cut, high, alpha] = numbers(text, rest, form)?;
                Self::lognormal_pareto(mu, sigma, cut, high, alpha)
            }
            _ => Err(DistError::Unknown {
                text: excerpt(text),
            }),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match &self.0 {
            Family::Exponential(law) => format!("exp:{}", brief(law.mean())),
            Family::Pareto(law) => {
                let (low, high, alpha) = law.parameters();
                format!("bp:{},{},{}", brief(low), brief(high), brief(alpha))
            }
            Family::Deterministic(_) => format!("det:{}", brief(self.mean())),
            Family::Weibull(law) => format!("weibull:{},{}", brief(law.shape()), brief(law.mean())),
            Family::Uniform(_) => {
                let (low, high) = self.range();
                format!("uniform:{},{}", brief(low), brief(high))
            }
            Family::LogNormalPareto(_) if *self == surge_001() => SURGE_001.into(),
            Family::LogNormalPareto(_) if *self == world_cup() => WORLD_CUP.into(),
            Family::LogNormalPareto(law) => {
                let (mu, sigma) = law.body();
                let (cut, high, alpha) = law.tail();
                let numbers = [mu, sigma, cut, high, alpha].map(brief);
                format!("lognormal-pareto:{}", numbers.join(","))
            }
            Family::Empirical(law) => format!("{} sizes of a list", law.count()),
        };
        f.pad(&text)
    }
}

/// The number in full, or with an exponent where that is shorter.
fn brief(number: f64) -> String {
    let (plain, with_exponent) = (number.to_string(), format!("{number:e}"));
    if plain.len() > 6 && with_exponent.len() < plain.len() {
        with_exponent
    } else {
        plain
    }
}

/// As the text that names it.
impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Paper 001, Table 1: sizes in bytes, mean 11108.
fn surge_001() -> Distribution {
    let law = LogNormalPareto::new(7.630, 1.001, 9020.0, 1e10, 1.0);
    Distribution(Family::LogNormalPareto(law))
}

/// Paper 000, 2.1: sizes in bytes, half under 1 KB, 90 % under 9.3 KB, at most 2.02 MB; alpha makes
/// the mean 5 KB. The files that `shortline load` makes up have the same quantiles, but none under
/// 41 B; here 3 % are.
fn world_cup() -> Distribution {
    let law = LogNormalPareto::new(6.907_755, 1.740_089, 9300.0, 2.02e6, 1.231);
    Distribution(Family::LogNormalPareto(law))
}

fn numbers<const COUNT: usize>(
    text: &str,
    rest: &str,
    form: &'static str,
) -> Result<[f64; COUNT], DistError> {
    let values = rest
        .split(',')
        .filter(|value| !value.is_empty())
        .map(|value| number(text, value, form))
        .collect::<Result<Vec<f64>, DistError>>()?;
    let found = values.len();
    values.try_into().map_err(|_| DistError::Count {
        text: excerpt(text),
        form,
        found,
        wanted: COUNT,
    })
}

fn number(text: &str, value: &str, form: &'static str) -> Result<f64, DistError> {
    value
        .trim()
        .parse()
        .ok()
        .filter(|number: &f64| !number.is_nan())
        .ok_or_else(|| DistError::NoNumber {
            text: excerpt(text),
            value: excerpt(value),
            form,
        })
}
