//! The configuration of the service.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use linerate_control::Token;
use linerate_report::html::Assets;
use linerate_runner::CertificateSource;
use linerate_runner::lab::LabPrograms;

use crate::access::Access;
use crate::allowed_target::AllowedTarget;

/// The port of the service, if the user names none.
const DEFAULT_PORT: u16 = 8080;

/// The configuration of the service.
#[derive(Debug, Clone)]
pub struct WebConfig {
    /// The address to listen on; port 0 lets the kernel choose.
    pub address: SocketAddr,
    /// Who may use it.
    pub access: Access,
    /// TLS; absent for plain HTTP.
    pub tls: Option<CertificateSource>,
    /// Further names under which browsers reach it.
    pub names: Vec<String>,
    /// The file of the key of shared links; absent for the default one of this user.
    pub share_key: Option<PathBuf>,
    /// The archive; absent for the default one of this user.
    pub archive: Option<String>,
    /// Where tests that a page starts may go, besides this host itself; empty for everywhere.
    pub targets: Vec<AllowedTarget>,
    /// What plans from a page are carried out with.
    pub plans: PlanSetup,
    /// Is told, in one line, who has started, cancelled, deleted, tagged or shared a run.
    pub notify: fn(String),
    /// The built front end.
    pub assets: WebAssets,
}

/// What plans from a page are carried out with. Without any of it, pages only describe plans.
#[derive(Debug, Clone, Default)]
pub struct PlanSetup {
    /// The token of the agents of other hosts; absent if plans must not go there.
    pub agent_token: Option<Token>,
    /// Starts the programs of emulated networks; absent if this user may not make any.
    pub lab_programs: Option<&'static (dyn LabPrograms + Sync)>,
    /// The folder with the state of emulated networks; absent for the default one of this user.
    pub run_dir: Option<PathBuf>,
}

/// The built front end.
#[derive(Debug, Clone, Copy)]
pub struct WebAssets {
    /// The script of the pages.
    pub script: &'static str,
    /// The script of their workers, which measure.
    pub worker: &'static str,
    /// Their style sheet.
    pub style: &'static str,
    /// Script and style of reports, for their export.
    pub report: Assets<'static>,
}

impl WebConfig {
    /// Names for the certificate of pages at this address, in addition to those of the host: the other `names` of the
    /// pages, and the address unless it is a loopback address or the unspecified one.
    #[must_use]
    pub fn certificate_names(address: SocketAddr, names: &[String]) -> Vec<String> {
        let ip = address.ip();
        let own = Some(ip.to_string()).filter(|_| !ip.is_unspecified() && !ip.is_loopback());
        names.iter().cloned().chain(own).collect()
    }

    /// Reads the name of a host.
    ///
    /// # Errors
    /// The text cannot be one.
    pub fn parse_name(text: &str) -> Result<String, NoHostName> {
        let is_part = |c: char| c.is_alphanumeric() || ".-_".contains(c);
        if text.is_empty() || !text.chars().all(is_part) { Err(NoHostName) } else { Ok(text.to_owned()) }
    }

    /// Reads `ADDRESS:PORT`, `ADDRESS`, `PORT` or `:PORT`. Without an address, only this host can reach the service.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse_address(text: &str) -> Result<SocketAddr, NoAddress> {
        let home = IpAddr::V4(Ipv4Addr::LOCALHOST);
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse() {
            return Ok(SocketAddr::new(ip, DEFAULT_PORT));
        }
        let port = text.strip_prefix("localhost").unwrap_or(text);
        let port = port.strip_prefix(':').unwrap_or(port).parse();
        port.map(|port| SocketAddr::new(home, port)).map_err(|_| NoAddress)
    }
}

/// A text is no name of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no name of a host; give, for example, speed.example.net")]
pub struct NoHostName;

/// A text is no address for a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not ADDRESS:PORT with an address of this host; give, for example, 127.0.0.1:8080")]
pub struct NoAddress;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_the_address_of_the_pages_if_others_reach_them_there() {
        let names = |address: &str| {
            WebConfig::certificate_names(address.parse().unwrap(), &["speed.example.net".to_owned()])
        };
        assert_eq!(names("192.0.2.1:8443"), ["speed.example.net", "192.0.2.1"]);
        for address in ["127.0.0.1:8443", "0.0.0.0:8443", "[::]:8443", "[::1]:8443"] {
            assert_eq!(names(address), ["speed.example.net"], "{address}");
        }
    }

    #[test]
    fn an_address_may_lack_its_port_or_be_a_port_alone() {
        let parsed = |text: &str| WebConfig::parse_address(text).map(|address| address.to_string());
        assert_eq!(parsed("192.0.2.1:80").as_deref(), Ok("192.0.2.1:80"));
        assert_eq!(parsed("192.0.2.1").as_deref(), Ok("192.0.2.1:8080"));
        assert_eq!(parsed("[2001:db8::1]:80").as_deref(), Ok("[2001:db8::1]:80"));
        assert_eq!(parsed("[::]").as_deref(), Ok("[::]:8080"));
        assert_eq!(parsed("9000").as_deref(), Ok("127.0.0.1:9000"));
        assert_eq!(parsed(":9000").as_deref(), Ok("127.0.0.1:9000"));
        assert_eq!(parsed("localhost:9000").as_deref(), Ok("127.0.0.1:9000"));
        for wrong in ["", "example.net:80", "192.0.2.1:", "70000", "http://127.0.0.1/"] {
            assert_eq!(parsed(wrong), Err(NoAddress), "{wrong}");
        }
    }
}
