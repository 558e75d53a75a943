//! Why something cannot be simulated, in one line each.

/// Arrivals or settings that cannot be simulated. Arrivals count from 1.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// There is nothing to simulate.
    #[error("no arrivals: at least one is needed")]
    NoArrivals,
    /// All arrivals are warm-up.
    #[error("warm-up of {warmup_jobs} jobs: no arrivals are left to count after it")]
    NothingCounted {
        /// The jobs that are not counted.
        warmup_jobs: u64,
    },
    /// The link would never finish a job.
    #[error("rate 0: must be above 0 bits per second")]
    ZeroRate,
    /// Arrivals are not in the order of time.
    #[error("arrival {number} at {at_ns} ns: must not be before the previous, at {previous_ns} ns")]
    Unsorted {
        /// Which arrival.
        number: u64,
        /// When it arrives.
        at_ns: u64,
        /// When the one before it arrives.
        previous_ns: u64,
    },
    /// A size that is no size.
    #[error("arrival {number}: size {bytes}: must be a finite number of bytes, 0 or more")]
    Size {
        /// Which arrival.
        number: u64,
        /// Its size.
        bytes: f64,
    },
    /// The last job would end after the end of 64-bit time.
    #[error("arrival {number}: all work until then takes more than 584 years at this rate")]
    TooMuchWork {
        /// The arrival at which it becomes too much.
        number: u64,
    },
    /// More jobs are in the system than allowed.
    #[error("arrival {number}: more than {jobs_max} jobs in the system, the limit")]
    TooManyJobs {
        /// The arrival at which there are too many.
        number: u64,
        /// The limit.
        jobs_max: usize,
    },
    /// There is no steady state.
    #[error("load {load}: must be above 0 and below 1 for a steady state")]
    Load {
        /// The load asked for.
        load: f64,
    },
    /// A quantity out of its range.
    #[error("{what} {value}: must be {want}")]
    Range {
        /// Which quantity.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What would be right.
        want: &'static str,
    },
    /// Sizes without a finite mean have no load.
    #[error("sizes {sizes}: E[S] is infinite, so there is no load; a finite mean is needed")]
    InfiniteMean {
        /// The distribution.
        sizes: String,
    },
    /// Sizes whose variance is infinite make a mean infinite.
    #[error("policy `{policy}` with sizes {sizes}: E[S^2] is infinite, and so is the mean time")]
    InfiniteVariance {
        /// The policy whose mean it is.
        policy: String,
        /// The distribution.
        sizes: String,
    },
    /// The mean service time is too close to one nanosecond, the unit of time.
    #[error("mean service of {mean_ns} ns: below {min_ns} ns rounding would tell; lower the rate")]
    TooFine {
        /// The mean.
        mean_ns: f64,
        /// What it must be at least.
        min_ns: f64,
    },
    /// The policy ranks by round trip times, and there are none.
    #[error(
        "policy `{policy}`: needs classes of clients with a round trip time, such as 10mbit/20ms"
    )]
    NoClients {
        /// The policy.
        policy: String,
    },
    /// The policy depends on what a single server would do.
    #[error(
        "policy `fsp` with {servers} servers: want 1, as its twin is processor sharing of one server"
    )]
    FspServers {
        /// How many servers there would be.
        servers: u32,
    },
    /// Servers with a queue each are simulated for jobs that are served whole, in an order.
    #[error(
        "dispatch: want policies that do one job at a time (srpt, psjf, sjf, fifo, boost ...), without clients, users \
         who give up, a greedy client, a gate, aging or growing"
    )]
    Dispatch,
    /// The gate does not have the policy.
    #[error("policy `{policy}` behind a gate: must be fifo, sjf or, without a gate, fair")]
    NoGatePolicy {
        /// The policy.
        policy: String,
    },
    /// The gate does not know slow clients.
    #[error("clients with a gate: leave one of them out, as its backend has no slow clients")]
    GateClients,
    /// Whoever watched the run gave it up.
    #[error("cancelled before its end")]
    Cancelled,
    /// The arrivals' source failed.
    #[error("{0}")]
    Source(String),
}
