//! The points of a study: builds each from its own keys and those of `[setup]`.
//!
//! Times within a run become shares of it, and the rates of steps become factors of the point's
//! ([`Course`]). So `--seconds` and `--rate` do not change the course.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shortline_load::workload::LOAD_MAX;
use shortline_sched::units::{Rate, Span};
use toml::Spanned;

use super::error::{Source, StudyError};
use super::keys::{DownloadsKeys, GroupKeys, PointKeys, StudyKeys};
use super::names::{Traces, is_name};
use crate::study::course::{Course, Neighbour, Step};
use crate::study::point::{Arrivals, Files, Point, SECONDS_MAX, Setup};
use shortline_testbed::bed::Setup as Environment;
use shortline_testbed::bed::setup::{Abort, ClientGroup, SetupError};
use shortline_testbed::server::Speech;
use shortline_testbed::wan::path::Way;

/// The most points of a study.
const POINTS_MAX: usize = 1_000;
/// The most user equivalents, writers and downloads.
const MANY_MAX: u32 = 1_000_000;
/// The most processes of the generator.
const GENERATORS_MAX: u32 = 64;
/// The characters of a point's name.
const LABEL: &str = "a-z, 0-9, . and - only, as a folder is called so";
/// The keys that say when requests arrive.
const ARRIVALS: &str = "one of schedule = \"w1\", users = 400 or trace = \"access.log\"";

/// All points of the study called `id`.
///
/// # Errors
/// The first key that is wrong or missing.
pub fn points(
    source: Source<'_>,
    id: &str,
    keys: &StudyKeys,
    traces: Traces<'_>,
) -> Result<Vec<Point>, StudyError> {
    let none = Spanned::new(0..0, PointKeys::default());
    let setup = keys.setup.as_ref().unwrap_or(&none);
    refuse_own(source, setup.get_ref())?;
    let alone = [Spanned::new(setup.span(), PointKeys::default())];
    let own = match &keys.point[..] {
        [] => &alone[..],
        own => own,
    };
    if let Some(over) = own.get(POINTS_MAX) {
        let problem = format!("{} points", own.len());
        return Err(source.wrong(over, problem, format!("{POINTS_MAX} at most")));
    }
    let mut labels = BTreeSet::new();
    let mut points = Vec::new();
    for one in own {
        let reader = PointReader {
            source,
            keys: &one.get_ref().clone().or(setup.get_ref()),
            place: one.span(),
            traces,
        };
        let point = reader.point((own.len() == 1).then_some(id))?;
        if !labels.insert(point.label.clone()) {
            let problem = format!("label `{}` for the second time", point.label);
            return Err(source.wrong(one, problem, "a label of its own"));
        }
        points.push(point);
    }
    Ok(points)
}

/// Refuses the keys in `[setup]` that each point must have itself.
fn refuse_own(source: Source<'_>, setup: &PointKeys) -> Result<(), StudyError> {
    let want = "it in a [[point]]";
    if let Some(label) = &setup.label {
        return Err(source.wrong(label, "is the same for all points", want));
    }
    match &setup.x {
        Some(x) => Err(source.wrong(x, "is the same for all points", want)),
        None => Ok(()),
    }
}

/// A point's keys, completed by those of `[setup]`.
struct PointReader<'a> {
    source: Source<'a>,
    keys: &'a PointKeys,
    /// The place of its table in the file.
    place: Range<usize>,
    traces: Traces<'a>,
}

/// The value of an optional key.
fn of<T: Copy>(key: &Option<Spanned<T>>) -> Option<T> {
    key.as_ref().map(|value| *value.get_ref())
}

impl PointReader<'_> {
    /// The point. A single one may lack a label.
    fn point(&self, alone: Option<&str>) -> Result<Point, StudyError> {
        let Self { source, keys, .. } = self;
        let label = match (&keys.label, alone) {
            (Some(label), _) if !is_name(label.get_ref()) => {
                let problem = format!("`{}` names no folder", label.get_ref());
                return Err(source.wrong(label, problem, LABEL));
            }
            (Some(label), _) => label.get_ref().clone(),
            (None, Some(id)) => id.to_owned(),
            (None, None) => return Err(source.lacks(self.place.clone(), "label", LABEL)),
        };
        if let Some(x) = keys.x.as_ref().filter(|x| !x.get_ref().is_finite()) {
            return Err(source.wrong(x, x.get_ref(), "a number on the axis"));
        }
        let arrivals = self.arrivals()?;
        let mut point = Point::new(label, arrivals, self.seconds()?);
        point.x = of(&keys.x);
        point.files = self.files(&point.arrivals)?;
        point.rate = of(&keys.rate).unwrap_or(point.rate);
        let only = keys.only.iter().flat_map(|only| only.get_ref());
        point.only = only.map(|server| server.0.to_string()).collect();
        point.setup = self.setup()?;
        point.setup.course = self.course(&point)?;
        Ok(point)
    }

    fn arrivals(&self) -> Result<Arrivals, StudyError> {
        let keys = self.keys;
        match (&keys.schedule, &keys.users, &keys.trace) {
            (Some(schedule), None, None) => {
                let phases = schedule.get_ref().0.phases();
                if let [low, high] = phases
                    && low.load > high.load
                {
                    let problem = "the higher load first";
                    return Err(self.source.wrong(schedule, problem, "the lower load first"));
                }
                Arrivals::of_phases(phases).ok_or_else(|| {
                    let problem = format!("has {} phases", phases.len());
                    self.source.wrong(schedule, problem, "one or two")
                })
            }
            (None, Some(users), None) => {
                self.within(users, 1, MANY_MAX)?;
                Ok(Arrivals::Users(*users.get_ref()))
            }
            (None, None, Some(trace)) => {
                let path = match self.traces {
                    Traces::AsWritten => trace.get_ref().clone(),
                    Traces::Beside(folder) => self.found(trace, folder)?,
                };
                Ok(Arrivals::Trace(path))
            }
            (None, None, None) => {
                let place = self.place.clone();
                let problem = "nothing says when requests arrive";
                Err(self
                    .source
                    .error_at(place, format!("{problem}: want {ARRIVALS}")))
            }
            (Some(_), Some(users), _) => Err(self.source.wrong(users, "beside schedule", ARRIVALS)),
            (_, _, Some(trace)) => {
                let problem = "beside schedule or users";
                Err(self.source.wrong(trace, problem, ARRIVALS))
            }
        }
    }

    /// The trace's full path.
    fn found(&self, trace: &Spanned<PathBuf>, folder: &Path) -> Result<PathBuf, StudyError> {
        let path = folder.join(trace.get_ref());
        std::fs::canonicalize(&path).map_err(|error| {
            let problem = format!("{}: {error}", path.display());
            let want = "a CSV of `seconds,path,bytes` lines, an access log or a World Cup 98 trace, \
                        by its path from the study's folder";
            self.source.wrong(trace, problem, want)
        })
    }

    fn seconds(&self) -> Result<u64, StudyError> {
        let want = format!("whole seconds, 1s to {SECONDS_MAX}s");
        let Some(time) = &self.keys.time else {
            return Err(self.source.lacks(self.place.clone(), "time", want));
        };
        let seconds = whole_seconds(*time.get_ref());
        seconds
            .filter(|seconds| (1..=SECONDS_MAX).contains(seconds))
            .ok_or_else(|| self.source.wrong(time, time.get_ref(), want))
    }

    fn files(&self, arrivals: &Arrivals) -> Result<Files, StudyError> {
        let files = of(&self.keys.files).unwrap_or(Files::WorldCup);
        match (arrivals, &self.keys.files) {
            (Arrivals::Trace(_), Some(named)) => {
                let want = "none of them: a trace says what is served";
                Err(self.source.wrong(named, "files beside a trace", want))
            }
            (Arrivals::Users(_), named) if !files.is_surge() => {
                let place = named.as_ref().map_or(self.place.clone(), Spanned::span);
                let problem = format!("users of {}", files.name());
                let want = "files = \"surge-001\", \"surge-003\" or \"surge-004\"";
                Err(self
                    .source
                    .error_at(place, format!("{problem}: want {want}")))
            }
            _ => Ok(files),
        }
    }

    fn setup(&self) -> Result<Setup, StudyError> {
        let keys = self.keys;
        let http3 = of(&keys.http3).unwrap_or_default();
        let speech = Speech {
            tls: http3 || of(&keys.tls).unwrap_or_default(),
            http2: of(&keys.http2).unwrap_or_default(),
            http3,
        };
        let usual = Setup::plain();
        for (number, most) in [
            (&keys.writers, MANY_MAX),
            (&keys.generators, GENERATORS_MAX),
        ] {
            if let Some(number) = number {
                self.within(number, 1, most)?;
            }
        }
        if let Some(load) = &keys.least_load
            && !(*load.get_ref() > 0.0 && *load.get_ref() <= LOAD_MAX)
        {
            let want = format!("a load above 0 and up to {LOAD_MAX}, where 1 is the whole link");
            return Err(self.source.wrong(load, load.get_ref(), want));
        }
        Ok(Setup {
            user_rate: self.user_rate()?,
            least_load: of(&keys.least_load),
            environment: self.environment()?,
            per_request_bytes: of(&keys.per_request_bytes)
                .map_or(speech.per_request_bytes(), u64::from),
            speech,
            loopback: of(&keys.loopback).unwrap_or_default(),
            through: of(&keys.through).unwrap_or_default(),
            writers: of(&keys.writers),
            generators: of(&keys.generators).unwrap_or(usual.generators),
            course: Course::default(),
            drain_s: match &keys.drain {
                None => usual.drain_s,
                Some(drain) => whole_seconds(*drain.get_ref())
                    .filter(|seconds| *seconds <= SECONDS_MAX)
                    .ok_or_else(|| {
                        let want = format!("whole seconds, 0s to {SECONDS_MAX}s");
                        self.source.wrong(drain, drain.get_ref(), want)
                    })?,
            },
        })
    }

    fn user_rate(&self) -> Result<Option<Rate>, StudyError> {
        match &self.keys.user_rate {
            Some(rate) if self.keys.users.is_none() => {
                Err(self
                    .source
                    .wrong(rate, "without users", "users, too, such as 400"))
            }
            rate => Ok(of(rate)),
        }
    }

    fn environment(&self) -> Result<Environment, StudyError> {
        let keys = self.keys;
        let named = keys.environment.as_ref();
        let mut all = named.map_or_else(Environment::today, |name| name.get_ref().0.0.clone());
        if keys.rtt.is_some() || keys.loss.is_some() {
            let rtt = of(&keys.rtt).unwrap_or(Span::from_duration(Duration::ZERO));
            all = all.with_network(rtt, of(&keys.loss).unwrap_or_default());
        }
        if let Some(groups) = &keys.groups {
            if keys.rtt.is_some() || keys.loss.is_some() {
                let want = "an rtt and a loss in each group";
                return Err(self.source.wrong(groups, "beside rtt or loss", want));
            }
            all.groups = groups.get_ref().iter().map(client_group).collect();
        }
        all.packet_bytes = of(&keys.packet_bytes).unwrap_or(all.packet_bytes);
        all.requests_per_connection = self.requests_per_connection(&all)?;
        all.abort = self.abort(all.abort)?;
        if let Some(queue) = of(&keys.hop_queue) {
            all = all.with_hop(queue);
        }
        let system = &mut all.system;
        system.initial_rto = of(&keys.initial_rto).unwrap_or(system.initial_rto);
        system.syn_timeouts = of(&keys.syn_timeouts).unwrap_or(system.syn_timeouts);
        system.syn_cookies = of(&keys.syn_cookies).unwrap_or(system.syn_cookies);
        system.syn_queue = of(&keys.syn_queue).unwrap_or(system.syn_queue);
        system.accept_queue = of(&keys.accept_queue).unwrap_or(system.accept_queue);
        system.workers = of(&keys.workers).or(system.workers);
        let congestion_control = of(&keys.congestion_control);
        system.congestion_control = congestion_control.unwrap_or(system.congestion_control);
        all.check().map_err(|error| self.not_possible(&error))?;
        Ok(all)
    }

    /// The error of an invalid setup, at the key that causes it.
    fn not_possible(&self, error: &SetupError) -> StudyError {
        let keys = self.keys;
        let span = |key: &Option<Spanned<u32>>| key.as_ref().map(Spanned::span);
        let place = match error {
            SetupError::OutOfRange { what, .. } => match *what {
                "packet_bytes" => span(&keys.packet_bytes),
                "accept_queue" => span(&keys.accept_queue),
                "syn_queue" => span(&keys.syn_queue),
                _ => keys.groups.as_ref().map(Spanned::span),
            },
            SetupError::Path { .. } => {
                let groups = keys.groups.as_ref().map(Spanned::span);
                groups.or(keys.loss.as_ref().map(Spanned::span))
            }
        };
        let place = place.unwrap_or(self.place.clone());
        self.source.error_at(place, error.to_string())
    }

    fn requests_per_connection(&self, named: &Environment) -> Result<Option<u32>, StudyError> {
        let shared = self.keys.shared_connections.as_ref();
        match (&self.keys.requests_per_connection, shared) {
            (Some(_), Some(shared)) if *shared.get_ref() => {
                let problem = "beside requests-per-connection";
                Err(self.source.wrong(shared, problem, "one of the two"))
            }
            (Some(requests), _) => {
                self.within(requests, 1, MANY_MAX)?;
                Ok(Some(*requests.get_ref()))
            }
            (None, Some(shared)) if *shared.get_ref() => Ok(None),
            (None, _) => Ok(named.requests_per_connection),
        }
    }

    fn abort(&self, named: Option<Abort>) -> Result<Option<Abort>, StudyError> {
        let after = of(&self.keys.abort_after).or(named.map(|abort| abort.after));
        let retries = of(&self.keys.retries).or(named.map(|abort| abort.retries));
        match (after, &self.keys.retries) {
            (Some(after), _) => Ok(Some(Abort {
                after,
                retries: retries.unwrap_or_default(),
            })),
            (None, Some(retries)) => {
                let want = "abort-after, too, such as \"7s\"";
                Err(self.source.wrong(retries, "nobody gives up", want))
            }
            (None, None) => Ok(None),
        }
    }

    fn course(&self, point: &Point) -> Result<Course, StudyError> {
        let keys = self.keys;
        let mut steps: Vec<Step> = Vec::new();
        for change in keys.steps.iter().flat_map(|steps| steps.get_ref()) {
            let at = self.share(&change.at, point.seconds)?;
            if steps.last().is_some_and(|last| last.at >= at) {
                let want = "a later time than that of the step before";
                return Err(self.source.wrong(&change.at, change.at.get_ref(), want));
            }
            let factor = change.rate.bps() as f64 / point.rate.bps() as f64;
            steps.push(Step { at, factor });
        }
        let twin = keys.twin.as_ref().filter(|twin| *twin.get_ref());
        let neighbour = match (&keys.downloads, twin) {
            (None, None) => None,
            (None, Some(_)) => Some(Neighbour::Twin),
            (Some(downloads), None) => Some(self.downloads(downloads.get_ref(), point)?),
            (Some(_), Some(twin)) => {
                let problem = "beside downloads";
                return Err(self.source.wrong(twin, problem, "one neighbour"));
            }
        };
        if neighbour.is_some() && point.arrivals.is_closed() {
            let downloads = keys.downloads.as_ref().map(Spanned::span);
            let place = downloads.or(twin.map(Spanned::span));
            let problem = "a neighbour beside users: want a schedule or a trace".to_owned();
            return Err(self.source.error_at(place.unwrap_or_default(), problem));
        }
        Ok(Course { steps, neighbour })
    }

    fn downloads(&self, keys: &DownloadsKeys, point: &Point) -> Result<Neighbour, StudyError> {
        self.within(&keys.number, 1, MANY_MAX)?;
        let from = self.share(&keys.from, point.seconds)?;
        let to = self.share(&keys.to, point.seconds)?;
        if from >= to {
            let want = "a later time than `from`";
            return Err(self.source.wrong(&keys.to, keys.to.get_ref(), want));
        }
        Ok(Neighbour::Downloads {
            number: *keys.number.get_ref(),
            from,
            to,
        })
    }

    /// A time within the run, as a share of the run.
    fn share(&self, at: &Spanned<Span>, seconds: u64) -> Result<f64, StudyError> {
        let share = at.get_ref().duration().as_secs_f64() / seconds as f64;
        if share > 1.0 {
            let want = format!("at most the point's time, {seconds}s");
            return Err(self.source.wrong(at, at.get_ref(), want));
        }
        Ok(share)
    }

    fn within(&self, number: &Spanned<u32>, low: u32, high: u32) -> Result<(), StudyError> {
        if (low..=high).contains(number.get_ref()) {
            return Ok(());
        }
        let want = format!("{low} to {high}");
        Err(self.source.wrong(number, number.get_ref(), want))
    }
}

fn client_group(keys: &GroupKeys) -> ClientGroup {
    let rtt = keys.rtt.unwrap_or(Span::from_duration(Duration::ZERO));
    let group = ClientGroup::symmetric(&keys.name, rtt, keys.loss.unwrap_or_default());
    let behind = |way: Way| Way {
        rate: keys.rate,
        ..way
    };
    ClientGroup {
        share: keys.share,
        down: behind(group.down),
        up: behind(group.up),
        ..group
    }
}

fn whole_seconds(span: Span) -> Option<u64> {
    let duration = span.duration();
    (duration.subsec_nanos() == 0).then_some(duration.as_secs())
}
