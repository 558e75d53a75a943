//! Runs small tools (`ip`, `tc`) to their end, and finds programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TestbedError;

/// Runs `program` with `arguments` to its end and returns what it printed.
///
/// # Errors
/// If it fails: the command line, and the last line that it printed.
pub fn run(program: &str, arguments: &[&str]) -> Result<String, TestbedError> {
    let failed = |problem: String| TestbedError::Command {
        command: format!("{program} {}", arguments.join(" ")),
        problem,
    };
    let output = installed(program)
        .args(arguments)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.trim().lines().last().unwrap_or("no message");
        return Err(failed(format!("{}: {last}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The full path of `program`, from the PATH or from Debian's folders for root's programs.
///
/// # Errors
/// Says which Debian `package` has it.
pub fn find(program: &'static str, package: &'static str) -> Result<PathBuf, TestbedError> {
    look_for(program).ok_or(TestbedError::ToolMissing { program, package })
}

/// A command that runs `program` from where [`find`] finds it, because `su` leaves root with a user's
/// PATH, which lacks the folder of `tc`. If it is not found, starting it fails.
pub fn installed(program: &str) -> Command {
    Command::new(look_for(program).unwrap_or_else(|| program.into()))
}

fn look_for(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/bin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// The last line of a log that is not empty, for error messages.
pub fn last_line(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    last.unwrap_or("(none)").to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let error = find("no-such-tool", "its-package").unwrap_err().to_string();
        assert_eq!(
            error,
            "`no-such-tool` is not installed: apt-get install its-package"
        );
    }

    #[test]
    fn a_failing_command_gives_its_line_and_its_complaint() {
        let error = run("ls", &["/no/such/place"]).unwrap_err().to_string();
        assert!(error.starts_with("`ls /no/such/place` failed: exit status: 2"));
        assert!(error.contains("No such file"));
    }
}
