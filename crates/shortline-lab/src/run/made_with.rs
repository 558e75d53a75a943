//! What runs are made with, so that each result can name it.

use std::fs;
use std::path::Path;

use crate::LabError;

/// The commit that this is built from (build.rs).
pub const COMMIT: &str = env!("SHORTLINE_COMMIT");

/// The release of this kernel.
///
/// # Errors
/// That of reading it.
pub fn kernel() -> Result<String, LabError> {
    read_line(Path::new("/proc/sys/kernel/osrelease"))
}

/// The congestion control of this kernel's connections, if they do not say otherwise.
///
/// # Errors
/// That of reading it.
pub fn congestion_control() -> Result<String, LabError> {
    read_line(Path::new("/proc/sys/net/ipv4/tcp_congestion_control"))
}

fn read_line(path: &Path) -> Result<String, LabError> {
    let text = fs::read_to_string(path).map_err(LabError::file(path))?;
    Ok(text.trim().to_owned())
}
