//! Which addresses have HTTP/3.

use shortline_daemon::file::spot::{KeyError, Spot};
use shortline_link::LinkMode;

use crate::file::Listen;

/// Decides for each address; the spot is that of all of them. `--http3` is for all that speak TLS.
///
/// # Errors
/// One line: HTTP/3 is asked for where it cannot be.
pub fn resolve(
    by_flag: bool,
    listen: &mut [Listen],
    mode: LinkMode,
    spot: &Spot,
) -> Result<(), String> {
    for (index, listen) in listen.iter_mut().enumerate() {
        let is_udp = listen.address.tcp().is_some();
        let may = is_udp && listen.speaks_tls() && listen.proxy_from.is_none();
        if listen.http3 == Some(true) && !may {
            let why = if !listen.speaks_tls() {
                "needs TLS: add tls = true, or tls-cert and tls-key"
            } else if !is_udp {
                "a socket in the file system has no UDP port: leave it out"
            } else {
                "who connects over UDP is not announced by a proxy: leave out http3 or proxy-from"
            };
            let name = format!("listen {}", listen.address);
            return Err(spot
                .item(index)
                .refused(&name, &KeyError::new("http3", why)));
        }
        listen.http3 = Some(listen.http3.unwrap_or(by_flag && may));
    }
    let is_any = listen.iter().any(|listen| listen.http3 == Some(true));
    match is_any {
        false if by_flag => Err(
            "--http3: no address speaks TLS: add --tls-cert and --tls-key, or --tls-auto NAME".to_owned(),
        ),
        true if mode == LinkMode::Bands => Err(
            "http3: the interface's bands order the packets of TCP alone: leave out http3 or link-mode bands".to_owned(),
        ),
        true if !cfg!(feature = "http3") => Err(
            "http3: this program is built without it: build it with the cargo feature http3".to_owned(),
        ),
        _ => Ok(()),
    }
}
