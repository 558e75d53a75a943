//! Which addresses have HTTP/3.

use shortline_link::LinkMode;

use crate::file::Listen;

/// Decides for each address. `--http3` is for all that speak TLS.
///
/// # Errors
/// One line: HTTP/3 is asked for where it cannot be.
pub fn resolve(by_flag: bool, listen: &mut [Listen], mode: LinkMode) -> Result<(), String> {
    for listen in listen.iter_mut() {
        let place = format!("listen {}", listen.address);
        let asked = listen.http3;
        if asked == Some(true) && !listen.speaks_tls() {
            return Err(format!(
                "{place}: http3: needs TLS: add tls = true, or tls-cert and tls-key"
            ));
        }
        let is_udp = listen.address.tcp().is_some();
        if asked == Some(true) && !is_udp {
            return Err(format!(
                "{place}: http3: a socket in the file system has no UDP port: leave it out"
            ));
        }
        let may = is_udp && listen.speaks_tls() && listen.proxy_from.is_none();
        if asked == Some(true) && !may {
            return Err(format!(
                "{place}: http3: who connects over UDP is not announced by a proxy: leave out http3 or proxy-from"
            ));
        }
        listen.http3 = Some(asked.unwrap_or(by_flag && may));
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
