//! From flags and file to what the gate is told: flags over the table `[gate]` over defaults.
//!
//! Whatever contradicts itself after that is an error that names the flag, or file, line and key.

use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use shortline_gate::GateConfig;
use shortline_gate::classify::{Classifier, ClassifierConfig, Dialect, Protocol};
use shortline_gate::relay::Limits;
use shortline_sched::Aging;
use shortline_sched::admission::{AdmissionConfig, Capacity, Order};
use shortline_sched::units::{Size, Span};

use super::options::{GateOptions, LogFormat, PolicyName, UpstreamTlsMode};
use super::{Args, Kind};
use crate::error::CommandError;
use crate::file::{self, Place, Source};
use crate::keys::Overlay;

const ADMIN_DATABASE: &str = "shortline";

/// Everything `shortline gate` was told, complete and without contradictions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// As it was told, to notice a change.
    pub options: GateOptions,
    /// What the backend speaks.
    pub kind: Kind,
    /// Where clients connect; empty if systemd hands a socket over.
    pub listen: Vec<SocketAddr>,
    /// Where the backend listens, as it was told.
    pub upstream: String,
    /// TLS towards clients.
    pub client_tls: Option<CertificateFiles>,
    /// Whether clients without TLS are turned away.
    pub is_tls_required: bool,
    /// TLS towards the backend.
    pub upstream_tls: UpstreamTlsMode,
    /// The authorities of the backend's certificate; there for `verify-full`.
    pub upstream_ca: Option<PathBuf>,
    /// Who goes first.
    pub policy: PolicyName,
    /// How far others may go before a request.
    pub aging: Option<Aging>,
    /// Admission.
    pub gate: GateConfig,
    /// What tells types.
    pub classifier: ClassifierConfig,
    /// The relay's limits.
    pub limits: Limits,
    /// Where what was learnt is kept.
    pub estimates: Option<PathBuf>,
    /// How the log is written.
    pub log_format: LogFormat,
    /// The admin endpoint.
    pub admin: Option<SocketAddr>,
    /// Open connections to it.
    pub admin_connections_max: Option<NonZeroUsize>,
    /// The database that is the gate itself; empty for none.
    pub admin_database: String,
}

/// A certificate chain and its key, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// Reads the file the flags name, if any, and lays the flags over it.
///
/// # Errors
/// [`CommandError`]: the file, or values that do not fit together.
pub fn read(args: &Args) -> Result<Settings, CommandError> {
    let (file, source) = file::read_if_named(args.config.as_deref())
        .map_err(|error| CommandError::told(error.is_usage(), error))?;
    let resolving = Resolving {
        kind: args.kind,
        flags: &args.options,
        merged: args.options.clone().over(file.gate),
        source: &source,
    };
    resolving.settings().map_err(CommandError::Usage)
}

struct Resolving<'a> {
    kind: Kind,
    flags: &'a GateOptions,
    /// The flags over the file.
    merged: GateOptions,
    source: &'a Source,
}

impl Resolving<'_> {
    fn settings(self) -> Result<Settings, String> {
        self.refuse_contradictions()?;
        if self.kind == Kind::Http {
            self.refuse_for_http()?;
        }
        let classifier = self.classifier()?;
        let gate = self.gate()?;
        let limits = self.limits()?;
        let aging = self.merged.aging;
        let merged = self.merged;
        Ok(Settings {
            options: merged.clone(),
            kind: self.kind,
            listen: merged.listen.unwrap_or_default(),
            upstream: merged.upstream.ok_or_else(|| {
                format!(
                    "gate {}: where is the backend? Add --upstream HOST:PORT, or the key \
                     gate.upstream to the file",
                    self.kind.name()
                )
            })?,
            client_tls: merged
                .tls_cert
                .zip(merged.tls_key)
                .map(|(cert, key)| CertificateFiles { cert, key }),
            is_tls_required: merged.tls_required.unwrap_or(false),
            upstream_tls: merged.upstream_tls.unwrap_or(UpstreamTlsMode::Prefer),
            upstream_ca: merged.upstream_ca,
            policy: merged.policy.unwrap_or(PolicyName::Sjf),
            aging,
            gate,
            classifier,
            limits,
            estimates: merged.estimates,
            log_format: merged.log_format.unwrap_or_default(),
            admin: merged.admin,
            admin_connections_max: merged.admin_connections_max,
            admin_database: merged
                .admin_database
                .unwrap_or_else(|| ADMIN_DATABASE.to_owned()),
        })
    }

    fn refuse_contradictions(&self) -> Result<(), String> {
        let (flags, merged) = (self.flags, &self.merged);
        if merged.tls_cert.is_some() != merged.tls_key.is_some() {
            return Err(format!(
                "{}: tls-cert and tls-key belong together: give both or neither",
                self.at(
                    flags.tls_cert.is_some() || flags.tls_key.is_some(),
                    "tls-cert"
                )
            ));
        }
        if merged.tls_required == Some(true) && merged.tls_cert.is_none() {
            return Err(format!(
                "{}: nobody can speak TLS without a certificate: add --tls-cert and --tls-key",
                self.at(flags.tls_required.is_some(), "tls-required")
            ));
        }
        let verifies = merged.upstream_tls == Some(UpstreamTlsMode::VerifyFull);
        if verifies && merged.upstream_ca.is_none() {
            return Err(format!(
                "{}: verify-full needs the authorities that sign the backend's certificate: add \
                 --upstream-ca FILE",
                self.at(flags.upstream_tls.is_some(), "upstream-tls")
            ));
        }
        if merged.upstream_ca.is_some() && !verifies {
            return Err(format!(
                "{}: is used by --upstream-tls verify-full alone: add that, or leave it out",
                self.at(flags.upstream_ca.is_some(), "upstream-ca")
            ));
        }
        if merged.aging.is_some() && merged.policy == Some(PolicyName::Fifo) {
            return Err(format!(
                "{}: contradicts policy fifo, in which nobody passes another: leave one of them \
                 out",
                self.at(flags.aging.is_some(), "aging")
            ));
        }
        Ok(())
    }

    /// What only databases' protocols have.
    fn refuse_for_http(&self) -> Result<(), String> {
        macro_rules! given {
            ($($field:ident $key:literal),* $(,)?) => {
                [$(($key, self.flags.$field.is_some(), self.merged.$field.is_some())),*]
            };
        }
        let strange = given![
            tls_required "tls-required",
            upstream_tls "upstream-tls",
            upstream_ca "upstream-ca",
            types_from "types-from",
            admin_database "admin-database",
            authentication_time_max "authentication-time-max",
            message_size_max "message-size-max",
            held_size_max "held-size-max",
            pipelined_max "pipelined-max",
            statements_max "statements-max",
            threads "threads",
        ];
        match strange.iter().find(|(_, _, is_given)| *is_given) {
            None => Ok(()),
            Some(&(key, by_flag, _)) => Err(format!(
                "{}: means nothing to gate http: leave it out",
                self.at(by_flag, key)
            )),
        }
    }

    fn classifier(&self) -> Result<ClassifierConfig, String> {
        let protocol = match self.kind {
            Kind::Http => Protocol::Http,
            Kind::Postgres => Protocol::Sql(Dialect::Postgres),
            Kind::Mysql => Protocol::Sql(Dialect::MySql),
        };
        let defaults = ClassifierConfig::new(protocol);
        let config = ClassifierConfig {
            protocol,
            rules: self.merged.rule.clone().unwrap_or_default(),
            sources: self.merged.types_from.clone().unwrap_or(defaults.sources),
        };
        // The error names the rule; the file's line is that of the first.
        Classifier::new(&config)
            .map(|_| config)
            .map_err(|error| format!("{}: {error}", self.at(false, "rule")))
    }

    fn gate(&self) -> Result<GateConfig, String> {
        let (flags, merged) = (self.flags, &self.merged);
        let defaults = GateConfig::default();
        let admission = defaults.admission;
        Ok(GateConfig {
            admission: AdmissionConfig {
                order: match (merged.policy, merged.aging) {
                    (Some(PolicyName::Fifo), _) => Order::Fifo,
                    (Some(PolicyName::Sjf) | None, None) => Order::Sjf,
                    (Some(PolicyName::Sjf) | None, Some(aging)) => Order::SjfAging(aging),
                },
                capacity: merged.capacity.unwrap_or(Capacity::Auto),
                estimator: merged.estimator.unwrap_or(admission.estimator),
                queue_max: count(merged.queue_max, admission.queue_max),
                types_max: count(merged.types_max, admission.types_max),
                shed_wait_ns: merged
                    .shed
                    .map(|shed| self.time(flags.shed.is_some(), "shed", Some(shed), Duration::ZERO))
                    .transpose()?
                    .and_then(nanoseconds),
                stall_ns: match merged.stall_max {
                    Some(stall) => nanoseconds(stall.duration()),
                    None => admission.stall_ns,
                },
                dry_run: merged.dry_run.unwrap_or(false),
                ..admission
            },
            wait_max: self.time(
                flags.wait_max.is_some(),
                "wait-max",
                merged.wait_max,
                defaults.wait_max,
            )?,
            slow_wait: merged.slow_wait.map(Span::duration),
        })
    }

    fn limits(&self) -> Result<Limits, String> {
        let (flags, merged) = (self.flags, &self.merged);
        let defaults = Limits::default();
        Ok(Limits {
            connections_max: count(merged.connections_max, defaults.connections_max),
            authentication_time_max: self.time(
                flags.authentication_time_max.is_some(),
                "authentication-time-max",
                merged.authentication_time_max,
                defaults.authentication_time_max,
            )?,
            connect_time_max: self.time(
                flags.connect_time_max.is_some(),
                "connect-time-max",
                merged.connect_time_max,
                defaults.connect_time_max,
            )?,
            drain_time_max: merged.drain.map_or(defaults.drain_time_max, Span::duration),
            message_bytes_max: self.message_bytes_max(defaults.message_bytes_max)?,
            held_bytes_max: merged
                .held_size_max
                .map_or(Ok(defaults.held_bytes_max), |size| {
                    self.held_bytes_max(size)
                })?,
            pipelined_max: count(merged.pipelined_max, defaults.pipelined_max),
            statements_max: count(merged.statements_max, defaults.statements_max),
            workers: count(merged.threads, defaults.workers),
        })
    }

    fn message_bytes_max(&self, most: u32) -> Result<u32, String> {
        const LEAST: u32 = 64 << 10;
        let Some(size) = self.merged.message_size_max else {
            return Ok(most);
        };
        let bytes = u32::try_from(size.bytes()).ok();
        bytes
            .filter(|bytes| (LEAST..=most).contains(bytes))
            .ok_or_else(|| {
                self.out_of_range(
                    self.flags.message_size_max.is_some(),
                    "message-size-max",
                    size,
                    u64::from(LEAST),
                    u64::from(most),
                )
            })
    }

    fn held_bytes_max(&self, size: Size) -> Result<usize, String> {
        const LEAST: usize = 1 << 10;
        const MOST: usize = 1 << 20;
        let bytes = usize::try_from(size.bytes()).ok();
        bytes
            .filter(|bytes| (LEAST..=MOST).contains(bytes))
            .ok_or_else(|| {
                self.out_of_range(
                    self.flags.held_size_max.is_some(),
                    "held-size-max",
                    size,
                    LEAST as u64,
                    MOST as u64,
                )
            })
    }

    fn out_of_range(&self, by_flag: bool, key: &str, size: Size, least: u64, most: u64) -> String {
        format!(
            "{}: {size} is out of range: must be from {} to {}",
            self.at(by_flag, key),
            Size::from_bytes(least),
            Size::from_bytes(most)
        )
    }

    fn time(
        &self,
        by_flag: bool,
        key: &str,
        given: Option<Span>,
        default: Duration,
    ) -> Result<Duration, String> {
        match given.map(Span::duration) {
            None => Ok(default),
            Some(Duration::ZERO) => Err(format!(
                "{}: must be more than 0, such as 20s",
                self.at(by_flag, key)
            )),
            Some(time) => Ok(time),
        }
    }

    fn at(&self, by_flag: bool, key: &str) -> String {
        let place = Place {
            source: self.source,
            table: "gate",
        };
        place.of(by_flag, key, key)
    }
}

/// Nanoseconds, if they are not 0.
fn nanoseconds(time: Duration) -> Option<NonZeroU64> {
    NonZeroU64::new(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn count(given: Option<NonZeroUsize>, default: usize) -> usize {
    given.map_or(default, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::Parser;
    use shortline_sched::admission::Estimator;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    const UPSTREAM: &str = "postgres --upstream db:5432";

    /// What flags and a file mean together, or the error, without the file's folder.
    fn settings(flags: &str, file: &str) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        std::fs::write(&path, file).unwrap();
        let words = std::iter::once("gate").chain(flags.split_whitespace());
        let mut line = Line::try_parse_from(words).unwrap();
        line.args.config = Some(path);
        read(&line.args).map_err(|error| {
            let folder = format!("{}/", folder.path().display());
            error.to_string().replace(&folder, "")
        })
    }

    fn refused(flags: &str, file: &str) -> String {
        let error = settings(flags, file).unwrap_err();
        assert!(!error.contains('\n'), "{error}");
        error
    }

    #[test]
    fn nothing_said_is_the_default_of_every_room() {
        let settings = settings(UPSTREAM, "").unwrap();
        assert_eq!(settings.limits, Limits::default());
        let admission = AdmissionConfig {
            capacity: Capacity::Auto,
            ..AdmissionConfig::default()
        };
        assert_eq!(settings.gate.admission, admission);
        assert_eq!(settings.classifier.sources.len(), 2);
        assert_eq!(settings.upstream, "db:5432");
    }

    #[test]
    fn flags_lie_over_the_file() {
        let file = "[gate]\nupstream = \"other:1\"\ncapacity = \"400ms\"\npolicy = \"fifo\"\n\
                    types-from = [\"statement\"]\nlisten = [\"[::1]:6432\"]\ndrain = \"1s\"\n";
        let settings = settings(&format!("{UPSTREAM} --policy sjf"), file).unwrap();
        assert_eq!(settings.upstream, "db:5432");
        assert_eq!(settings.gate.admission.order, Order::Sjf);
        assert_eq!(
            settings.gate.admission.capacity,
            "400ms".parse::<Capacity>().unwrap()
        );
        assert_eq!(settings.classifier.sources.len(), 1);
        assert_eq!(settings.limits.drain_time_max, Duration::from_secs(1));
    }

    #[test]
    fn how_to_admit_is_told_on() {
        let flags = "--aging 3 --shed 1s --stall-max 0s --dry-run --estimator median-of-means";
        let admission = settings(&format!("{UPSTREAM} {flags}"), "")
            .unwrap()
            .gate
            .admission;
        assert_eq!(admission.order, Order::SjfAging("3".parse().unwrap()));
        assert_eq!(admission.shed_wait_ns, NonZeroU64::new(1_000_000_000));
        assert_eq!(admission.stall_ns, None);
        assert!(admission.dry_run);
        assert_eq!(admission.estimator, Estimator::MedianOfMeans);
    }

    #[test]
    fn rules_come_from_the_file_and_a_wrong_one_is_named() {
        let file = "[gate]\n[[gate.rule]]\ntype = \"batch\"\nuser = \"night\"\n\
                    tag = { route = \"/a\" }\n";
        let settings = settings(UPSTREAM, file).unwrap();
        assert_eq!(settings.classifier.rules[0].name, "batch");
        let wrong = refused(
            UPSTREAM,
            "[gate]\n[[gate.rule]]\ntype = \"x\"\nstatement = \"(\"\n",
        );
        assert!(
            wrong.contains("rule 1 (type `x`): statement `(`"),
            "{wrong}"
        );
        let strange = refused(
            UPSTREAM,
            "[gate]\n[[gate.rule]]\ntype = \"x\"\nusr = \"(\"\n",
        );
        assert!(strange.starts_with("a.toml:4: gate.rule.usr:"), "{strange}");
    }

    #[test]
    fn contradictions_name_the_flag_or_the_line() {
        assert!(refused("postgres", "").contains("--upstream HOST:PORT"));
        let aging = refused(UPSTREAM, "[gate]\npolicy = \"fifo\"\naging = 3.0\n");
        assert!(aging.starts_with("a.toml:3: gate.aging:"), "{aging}");
        let aging = refused(&format!("{UPSTREAM} --policy fifo --aging 3"), "");
        assert!(aging.starts_with("--aging:"), "{aging}");
        let tls = refused(UPSTREAM, "[gate]\ntls-required = true\n");
        assert!(tls.starts_with("a.toml:2: gate.tls-required:"), "{tls}");
        let verify = refused(&format!("{UPSTREAM} --upstream-tls verify-full"), "");
        assert!(verify.contains("--upstream-ca"), "{verify}");
        let authorities = refused(&format!("{UPSTREAM} --upstream-ca a.pem"), "");
        assert!(authorities.contains("verify-full"), "{authorities}");
        let http = refused("http --upstream app:80 --statements-max 5", "");
        assert!(
            http.starts_with("--statements-max: means nothing"),
            "{http}"
        );
        let wait = refused(&format!("{UPSTREAM} --wait-max 0s"), "");
        assert!(
            wait.starts_with("--wait-max: must be more than 0"),
            "{wait}"
        );
        let held = refused(&format!("{UPSTREAM} --held-size-max 2MiB"), "");
        assert!(held.contains("from 1KiB to 1MiB"), "{held}");
        let shed = refused(UPSTREAM, "[gate]\nshed = \"0s\"\n");
        assert!(
            shed.starts_with("a.toml:2: gate.shed: must be more than 0"),
            "{shed}"
        );
        let capacity = refused(UPSTREAM, "[gate]\ncapacity = \"0s\"\n");
        assert!(
            capacity.starts_with("a.toml:2: gate.capacity: capacity `0ns`"),
            "{capacity}"
        );
    }
}
