//! The backend behind the server, if users and attacker get a backend's responses.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use shortline_testbed::Testbed;
use shortline_testbed::bed::NativeBed;
use shortline_testbed::server::{OursMode, Running, Server, ServerSetup};

use crate::LabError;
use crate::study::adversary::Surface;

/// The backend's port.
const BACKEND_PORT: u16 = 9080;

/// Starts the backend, if there is one, and returns it with its address.
///
/// # Errors
/// If it does not start.
pub fn start(
    surface: Surface,
    testbed: &Testbed,
    bed: &NativeBed,
    root: &Path,
) -> Result<Option<(Running, SocketAddr)>, LabError> {
    if surface != Surface::Route {
        return Ok(None);
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, BACKEND_PORT));
    let setup = ServerSetup {
        address: address.ip().to_string(),
        speech: surface.speech(),
        ..ServerSetup::new(bed.server_place(), address.port(), root)
    };
    let running = Running::start(testbed, Server::Ours(OursMode::Off), &setup)?;
    Ok(Some((running, address)))
}
