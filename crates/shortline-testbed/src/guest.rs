//! The user-mode kernel beds: an experiment inside a Linux kernel that runs as a process.
//!
//! The guest has what the host's kernel may lack (prio with 16 bands, netem, fq_codel, fq and cake),
//! and needs no root. It boots on the host's own file system (`hostfs`). Its first process, `init.sh`,
//! runs the same experiment on the guest's native bed and powers off. In virtual time
//! (`time-travel=inf-cpu`) the guest's clock stands still while something computes, and jumps to the
//! next timer when nothing does. So the results do not depend on how busy the machine is.
//!
//! Guest and host share a folder: `command` (one word per line), `status` (its exit status) and
//! `console.log` (everything that the guest printed).

pub mod kernel;
mod processor;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shortline_load::summary::VOID_EXIT_CODE;

use crate::place::Place;
use crate::process::{Log, Process};
use crate::testbed::Testbed;
use crate::{TestbedError, command};
pub use kernel::Time;
use kernel::{Kernel, cache_folder};
use processor::Processor;

/// The memory of most guests, in MiB: enough for the site, a server and the generator.
pub const MEMORY_MIB: u32 = 2048;
/// The longest time a guest may run, by the host's clock.
const GUEST_MAX: Duration = Duration::from_secs(4 * 3600);
/// How often the guest's output is passed on.
const CONSOLE_EVERY: Duration = Duration::from_millis(200);
/// What the guest's kernel prints where a process of it has more pieces of memory than the host allows.
const NO_MAPPINGS: &str = "vm.max_map_count has been reached";
/// The mark that `init.sh` puts before the command's lines.
const MARK: &str = "lab: ";

/// Boots a guest that runs `words` (a program and its arguments), and waits until it has powered off.
/// The command's lines go to standard error in the meantime. Of `memory_mib` it takes what it uses.
///
/// # Errors
/// If there is no kernel, it does not boot, or the command fails.
pub fn run(
    testbed: &Testbed,
    time: Time,
    memory_mib: u32,
    words: &[String],
) -> Result<(), TestbedError> {
    let kernel = Kernel::find(time)?;
    let folder = testbed.scratch().join("guest");
    prepare(&folder, words)?;
    let console = folder.join("console.log");
    let arguments = arguments(&kernel, memory_mib, &folder);
    let log = Log::File(console.clone());
    let start = || Process::start(testbed, &Place::Here, &kernel.program, &arguments, &log);
    let processor = processor()?;
    let guest = match &processor {
        Some(processor) => {
            let failed = |error: std::io::Error| TestbedError::Command {
                command: kernel.program.display().to_string(),
                problem: error.to_string(),
            };
            processor.start(start).map_err(failed)??
        }
        None => start()?,
    };
    let ended = AtomicBool::new(false);
    let waited = std::thread::scope(|scope| {
        scope.spawn(|| forward_lines(&console, &ended));
        let waited = guest.finish("the guest kernel", GUEST_MAX);
        ended.store(true, Ordering::Release);
        waited
    });
    let kept = testbed.out().join("console.log");
    fs::copy(&console, &kept).map_err(TestbedError::file(&kept))?;
    waited?;
    judge(&folder, &kept)
}

/// A processor for the guest, if one is free.
fn processor() -> Result<Option<Processor>, TestbedError> {
    let locks = cache_folder()?;
    fs::create_dir_all(&locks)
        .and_then(|()| Processor::take(&locks))
        .map_err(TestbedError::file(&locks))
}

/// The folder that host and guest share.
fn prepare(folder: &Path, words: &[String]) -> Result<(), TestbedError> {
    fs::create_dir_all(folder).map_err(TestbedError::file(folder))?;
    let init = folder.join("init");
    let executable = fs::Permissions::from_mode(0o755);
    let command = folder.join("command");
    fs::write(&init, include_str!("guest/init.sh"))
        .and_then(|()| fs::set_permissions(&init, executable))
        .map_err(TestbedError::file(&init))?;
    fs::write(&command, words.join("\n") + "\n").map_err(TestbedError::file(&command))
}

fn arguments(kernel: &Kernel, memory_mib: u32, folder: &Path) -> Vec<String> {
    let fixed = [
        "root=/dev/root",
        "rootfstype=hostfs",
        "rw",
        "quiet",
        "con=null",
        "con0=null,fd:1",
    ];
    let folder = folder.display();
    fixed
        .into_iter()
        .map(ToOwned::to_owned)
        .chain(kernel.time_argument().map(ToOwned::to_owned))
        .chain([
            format!("mem={memory_mib}M"),
            format!("init={folder}/init"),
            format!("SHORTLINE_GUEST={folder}"),
        ])
        .collect()
}

/// Passes the command's lines on to standard error until the guest has ended.
fn forward_lines(console: &Path, ended: &AtomicBool) {
    let mut passed = 0;
    loop {
        let last = ended.load(Ordering::Acquire);
        let text = fs::read(console).unwrap_or_default();
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        if whole > passed {
            let lines = String::from_utf8_lossy(&text[passed..whole]).into_owned();
            for line in lines.lines().filter_map(|line| line.strip_prefix(MARK)) {
                eprintln!("{}", line.trim_end());
            }
            passed = whole;
        }
        if last {
            return;
        }
        std::thread::sleep(CONSOLE_EVERY);
    }
}

/// How the command in the guest ended.
fn judge(folder: &Path, console: &Path) -> Result<(), TestbedError> {
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let status = status.trim();
    match status {
        "0" => Ok(()),
        // Void runs are kept, and the report says that they are void.
        void if void.parse() == Ok(VOID_EXIT_CODE) => Ok(()),
        _ if fs::read_to_string(console).is_ok_and(|text| text.contains(NO_MAPPINGS)) => {
            Err(TestbedError::Guest {
                problem: "needs more mappings of memory than this machine allows: `sysctl -w \
                          vm.max_map_count=2000000`"
                    .into(),
                console: console.into(),
                last_words: last_words(console),
            })
        }
        "" => Err(TestbedError::Guest {
            problem: "ended without a result".into(),
            console: console.into(),
            last_words: last_words(console),
        }),
        status => Err(TestbedError::Guest {
            problem: format!("ran an experiment that ended with status {status}"),
            console: console.into(),
            last_words: last_words(console),
        }),
    }
}

/// The last line of the command, or of the kernel if the command printed nothing.
fn last_words(console: &Path) -> String {
    let text = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut said = text
        .lines()
        .rev()
        .filter_map(|line| line.strip_prefix(MARK));
    let last = said.find(|line| !line.trim().is_empty());
    last.map_or_else(
        || command::last_line(console),
        |line| line.trim().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_guest_whose_run_is_void_has_not_failed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("status"), "3\n").unwrap();
        judge(folder.path(), &folder.path().join("console.log")).unwrap();
    }

    #[test]
    fn the_commands_last_line_is_told_rather_than_the_kernels() {
        let folder = tempfile::tempdir().unwrap();
        let console = folder.path().join("console.log");
        fs::write(
            &console,
            "booting\nlab: no such server\nreboot: Power down\n\n",
        )
        .unwrap();
        let error = judge(folder.path(), &console).unwrap_err().to_string();
        assert!(
            error.contains("without a result") && error.contains("no such server"),
            "{error}"
        );
        fs::write(folder.path().join("status"), "1\n").unwrap();
        let error = judge(folder.path(), &console).unwrap_err().to_string();
        assert!(error.contains("status 1"), "{error}");
        fs::write(folder.path().join("status"), "0\n").unwrap();
        judge(folder.path(), &console).unwrap();
    }

    #[test]
    fn too_few_mappings_are_told_with_what_raises_them() {
        let folder = tempfile::tempdir().unwrap();
        let console = folder.path().join("console.log");
        fs::write(&console, format!("UML: {NO_MAPPINGS}.\nlab: killed\n")).unwrap();
        fs::write(folder.path().join("status"), "1\n").unwrap();
        let error = judge(folder.path(), &console).unwrap_err().to_string();
        assert!(error.contains("sysctl -w vm.max_map_count"), "{error}");
    }

    #[test]
    fn words_with_spaces_reach_the_guest_whole() {
        let folder = tempfile::tempdir().unwrap();
        let words = ["/a b/shortline", "lab", "run", "w1"].map(ToOwned::to_owned);
        prepare(folder.path(), &words).unwrap();
        let command = fs::read_to_string(folder.path().join("command")).unwrap();
        assert_eq!(command.lines().collect::<Vec<_>>(), words);
    }
}
