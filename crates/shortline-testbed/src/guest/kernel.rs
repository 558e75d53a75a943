//! The guest's kernel: Debian's `user-mode-linux`, or one built here that can also run in
//! virtual time.
//!
//! Debian's has everything but virtual time (`CONFIG_UML_TIME_TRAVEL_SUPPORT`). It also cannot start
//! on processors with AMX: it sets the registers of its processes by `PTRACE_SETREGSET` with a buffer
//! of 2696 bytes, and the host accepts only its whole set (11008 bytes there).
//!
//! [`build`] makes a kernel from Debian's `linux-source-6.1`, with the options of `kernel.config` and
//! five patches. `register_set.patch` mends the registers. `initial_rto.patch` makes the first timeout
//! of a SYN or SYN-ACK a parameter of each network namespace, `net.ipv4.tcp_timeout_init_ms`. In Linux
//! it is a constant (1 s, RFC 6298) that only a BPF program can change. `vdso_clock.patch` has processes
//! read their clocks without a system call: more than half of all system calls were that, and each is two
//! switches between processes of the host. In virtual time the clock stands still between two events, so the
//! kernel writes it beside the vDSO whenever it changes. One reading in 64 is a system call as before, which
//! lets a little time pass, so that a loop that waits for time to pass ends. `fine_clock.patch` makes that 8 ns instead of
//! 256, and so is a system call that fails (1 us), and the least time of a timer (500 ns): at 10 Gbit/s a packet takes 1.2 us.
//! `busy_softirqs.patch` lets 10 us pass where ten rounds of softirqs leave more to do. Where the uplink's queue is full, each packet
//! that is dropped wakes its socket to send the next, and so on, until time passes.
//! The kernel is kept in the user's cache and serves both beds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{TestbedError, command};

/// Debian's source of the kernel, unpacked from its package.
const SOURCE: &str = "linux-source-6.1";
const SOURCE_ARCHIVE: &str = "/usr/src/linux-source-6.1.tar.xz";
/// The built kernel's file in the cache. Every change of patches or options gives it a new name, so
/// that a kernel of an earlier version is not mistaken for it.
const BUILT: &str = "linux-6.1-time-travel-busy-softirqs";
/// The parameter of a kernel whose clock stands still while something computes.
pub const TIME_TRAVEL: &str = "time-travel=inf-cpu";
/// The files that earlier versions built.
const EARLIER: [&str; 4] = [
    "linux-6.1-time-travel",
    "linux-6.1-time-travel-initial-rto",
    "linux-6.1-time-travel-vdso-clock",
    "linux-6.1-time-travel-fine-clock",
];
const CONFIG: &str = include_str!("kernel.config");
const PATCHES: [(&str, &str); 5] = [
    ("register_set.patch", include_str!("register_set.patch")),
    ("initial_rto.patch", include_str!("initial_rto.patch")),
    ("vdso_clock.patch", include_str!("vdso_clock.patch")),
    ("fine_clock.patch", include_str!("fine_clock.patch")),
    ("busy_softirqs.patch", include_str!("busy_softirqs.patch")),
];

/// The guest's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// The host's clock.
    Real,
    /// Stands still while something computes, and jumps to the next timer when nothing does.
    Virtual,
}

/// A kernel that starts on this machine.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its file.
    pub program: PathBuf,
    time: Time,
    /// Whether it was built here.
    own: bool,
}

impl Kernel {
    /// The kernel for guests with that clock.
    ///
    /// # Errors
    /// Names the package or command that provides one.
    pub fn find(time: Time) -> Result<Self, TestbedError> {
        let cache = cache_folder()?;
        let built = cache.join(BUILT);
        let own = built.is_file();
        let program = if own {
            built
        } else if time == Time::Virtual {
            let is_there = |name: &&str| cache.join(name).is_file();
            return Err(TestbedError::NoKernel(if EARLIER.iter().any(is_there) {
                "the kernel in the cache is of an earlier version"
            } else {
                "a guest in virtual time needs a kernel of its own"
            }));
        } else if has_amx() {
            return Err(TestbedError::NoKernel(
                "Debian's user-mode-linux cannot start on a processor with AMX",
            ));
        } else {
            command::find("linux.uml", "user-mode-linux")?
        };
        Ok(Self { program, time, own })
    }

    /// Whether TCP's first timeout can be set in it.
    pub fn sets_initial_rto(&self) -> bool {
        self.own
    }

    /// The words of its command line about time.
    pub fn time_argument(&self) -> Option<&'static str> {
        (self.time == Time::Virtual).then_some(TIME_TRAVEL)
    }
}

/// Builds the kernel into the cache, unless it is there, and returns its file.
///
/// # Errors
/// A missing tool or source, with its Debian package; or a step that failed, with the last line that
/// it wrote.
pub fn build() -> Result<PathBuf, TestbedError> {
    let cache = cache_folder()?;
    let built = cache.join(BUILT);
    if built.is_file() {
        return Ok(built);
    }
    for (program, package) in [
        ("make", "make"),
        ("gcc", "gcc"),
        ("flex", "flex"),
        ("bison", "bison"),
        ("bc", "bc"),
        ("xz", "xz-utils"),
        ("patch", "patch"),
    ] {
        command::find(program, package)?;
    }
    if !Path::new(SOURCE_ARCHIVE).is_file() {
        return Err(TestbedError::ToolMissing {
            program: SOURCE_ARCHIVE,
            package: SOURCE,
        });
    }
    fs::create_dir_all(&cache).map_err(TestbedError::file(&cache))?;
    let folder = cache.join("build");
    // The rest of an interrupted build.
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).map_err(TestbedError::file(&folder))?;
    let result = build_in(&folder, &built);
    if result.is_ok() {
        fs::remove_dir_all(&folder).map_err(TestbedError::file(&folder))?;
    }
    result.map(|()| built)
}

fn build_in(folder: &Path, built: &Path) -> Result<(), TestbedError> {
    let source = folder.join(SOURCE);
    let log = folder.join("build.log");
    let step = |what: &str, folder: &Path, words: &[&str]| step(what, folder, &log, words);
    step(
        "unpacking",
        folder,
        &["tar", "--extract", "--file", SOURCE_ARCHIVE],
    )?;
    for (name, text) in PATCHES {
        let patch = folder.join(name);
        fs::write(&patch, text).map_err(TestbedError::file(&patch))?;
        let patch = patch.display().to_string();
        let words = ["patch", "--strip=1", "--input", &patch];
        step(&format!("patching ({name})"), &source, &words)?;
    }
    step("configuring", &source, &["make", "ARCH=um", "defconfig"])?;
    add_options(&source)?;
    step("configuring", &source, &["make", "ARCH=um", "olddefconfig"])?;
    expect_options(&source)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = format!("--jobs={processors}");
    step(
        "building (about 5 minutes)",
        &source,
        &["make", "ARCH=um", &jobs, "linux"],
    )?;
    // Renamed when it is whole, because half a file would look like a kernel.
    let ready = folder.join(BUILT);
    fs::copy(source.join("linux"), &ready)
        .and_then(|_| fs::rename(&ready, built))
        .map_err(TestbedError::file(built))
}

fn step(what: &str, folder: &Path, log: &Path, words: &[&str]) -> Result<(), TestbedError> {
    tracing::info!("kernel: {what}");
    let file = fs::File::create(log).map_err(TestbedError::file(log))?;
    let errors = file.try_clone().map_err(TestbedError::file(log))?;
    let failed = |problem: String| TestbedError::Command {
        command: words.join(" "),
        problem,
    };
    let status = Command::new(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .status()
        .map_err(|error| failed(error.to_string()))?;
    if status.success() {
        return Ok(());
    }
    Err(failed(format!(
        "{status}: {} (all of it in {})",
        command::last_line(log),
        log.display()
    )))
}

/// The options of `kernel.config`, as `.config` writes them.
fn options() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = CONFIG.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('='))
}

/// The last line about an option counts, so ours follow the defaults.
fn add_options(source: &Path) -> Result<(), TestbedError> {
    let path = source.join(".config");
    let mut text = fs::read_to_string(&path).map_err(TestbedError::file(&path))?;
    for (name, value) in options() {
        text += &match value {
            "n" => format!("# CONFIG_{name} is not set\n"),
            value => format!("CONFIG_{name}={value}\n"),
        };
    }
    fs::write(&path, text).map_err(TestbedError::file(&path))
}

/// Checks the options, because one whose condition does not hold vanishes silently.
fn expect_options(source: &Path) -> Result<(), TestbedError> {
    let path = source.join(".config");
    let text = fs::read_to_string(&path).map_err(TestbedError::file(&path))?;
    let there = |(name, value): &(&str, &str)| {
        let set = text
            .lines()
            .any(|line| line == format!("CONFIG_{name}={value}"));
        set || (*value == "n" && !text.contains(&format!("CONFIG_{name}=y\n")))
    };
    match options().find(|option| !there(option)) {
        None => Ok(()),
        Some((name, value)) => Err(TestbedError::Command {
            command: "make olddefconfig".into(),
            problem: format!("this source has no CONFIG_{name}={value}"),
        }),
    }
}

/// The user's cache: `$XDG_CACHE_HOME/shortline`, else `~/.cache/shortline`.
pub fn cache_folder() -> Result<PathBuf, TestbedError> {
    let set = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    cache
        .map(|cache| cache.join("shortline"))
        .ok_or(TestbedError::NoKernel(
            "neither XDG_CACHE_HOME nor HOME says where a cache is",
        ))
}

fn has_amx() -> bool {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    processors.split_whitespace().any(|word| word == "amx_tile")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_line_of_the_configuration_is_an_option() {
        let lines = CONFIG.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(options().count(), lines);
        for (name, value) in options() {
            let written = |letter: char| {
                letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_'
            };
            assert!(name.chars().all(written), "{name}");
            assert!(
                matches!(value, "y" | "n") || value.parse::<u32>().is_ok(),
                "{name}={value}"
            );
        }
    }

    #[test]
    fn an_option_that_the_source_does_not_have_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".config"), "CONFIG_SOUND=y\n").unwrap();
        add_options(folder.path()).unwrap();
        let error = expect_options(folder.path()).unwrap_err().to_string();
        assert!(error.contains("CONFIG_SOUND=n"), "{error}");
        let path = folder.path().join(".config");
        let text = fs::read_to_string(&path)
            .unwrap()
            .replace("CONFIG_SOUND=y\n", "");
        fs::write(&path, text.replace("CONFIG_TUN=y\n", "")).unwrap();
        let error = expect_options(folder.path()).unwrap_err().to_string();
        assert!(error.contains("CONFIG_TUN=y"), "{error}");
    }
}
