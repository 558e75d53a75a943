//! Why theory has no answer.

use super::form::Form;

/// A question that the model cannot answer; the text is one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// There is no steady state, or nothing to wait for.
    #[error("load {load}: want above 0 and below 1, else there is no steady state")]
    Load {
        /// What was given.
        load: f64,
    },
    /// The sizes have no mean, so no arrival rate makes the load.
    #[error("sizes {sizes}: their mean is infinite; want a distribution with a finite mean")]
    NoMean {
        /// The distribution.
        sizes: String,
    },
    /// The wait under the policy has no mean.
    #[error(
        "sizes {sizes}: their second moment is infinite, and so is the mean time under `{policy}`; \
         want a bounded tail, or a policy that lets small jobs pass"
    )]
    NoSecondMoment {
        /// The distribution.
        sizes: String,
        /// Who needs the moment.
        policy: Form,
    },
    /// The tail of the times has no exponential decay.
    #[error(
        "sizes {sizes}: their tail is not light, so times under fifo and boost have no exponential tail; \
         want sizes such as exp:1 or a bounded tail"
    )]
    HeavyTail {
        /// The distribution.
        sizes: String,
    },
    /// No job has such a size.
    #[error("size {size}: want finite and above 0")]
    Size {
        /// What was given.
        size: f64,
    },
    /// No formula is known.
    #[error(
        "policy `{policy}`: no closed form is known; want one of {}",
        Form::names()
    )]
    NoForm {
        /// What was asked for.
        policy: String,
    },
    /// No approximation under alternating load.
    #[error("policy `{policy}` under alternating load: not approximated; want srpt or fair")]
    NotAlternating {
        /// What was asked for.
        policy: Form,
    },
}
