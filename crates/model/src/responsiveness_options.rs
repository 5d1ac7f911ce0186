//! The options of a test of responsiveness.

use std::path::PathBuf;

use linerate_units::Span;

use crate::{Fingerprint, SpecError, TlsOptions};

/// What to measure, with which server, and where the result goes.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ResponsivenessOptions {
    /// The server: a name or an address, with or without :PORT, or the address of its configuration, such as
    /// https://HOST/.well-known/nq
    #[cfg_attr(feature = "clap", arg(value_name = "HOST|URL"))]
    pub server: String,
    /// Port of the server [default: 5202]
    #[cfg_attr(feature = "clap", arg(short, long, value_parser = clap::value_parser!(u16).range(1..)))]
    pub port: Option<u16>,
    /// Load the download first and the upload after it, instead of both at once: this tells which of them has the queue
    #[cfg_attr(
        feature = "clap",
        arg(short, long, conflicts_with_all = ["download", "upload"], help_heading = "Traffic")
    )]
    pub sequential: bool,
    /// Load only the path from the server to here
    #[cfg_attr(
        feature = "clap",
        arg(short = 'R', long, conflicts_with = "upload", help_heading = "Traffic")
    )]
    pub download: bool,
    /// Load only the path from here to the server
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Traffic"))]
    pub upload: bool,
    /// Longest time under load, for each direction with --sequential: 1s to 10m. The test ends earlier when rate and
    /// responsiveness are stable
    #[cfg_attr(
        feature = "clap",
        arg(short = 't', long, value_name = "SECONDS", default_value = "20", value_parser = load_time, help_heading = "Traffic")
    )]
    pub time: Span,
    /// How often another connection is added, and stability is judged: 0.5s to 10s. The draft of the method has had 1s,
    /// and has 5s since its version 09
    #[cfg_attr(
        feature = "clap",
        arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval, help_heading = "Traffic")
    )]
    pub interval: Span,
    /// Congestion control of the uploads, for example cubic or bbr
    #[cfg_attr(feature = "clap", arg(short = 'C', long, value_name = "NAME", help_heading = "Sockets"))]
    pub congestion: Option<String>,
    /// Use IPv4 only
    #[cfg_attr(
        feature = "clap",
        arg(short = '4', long = "version4", conflicts_with = "ipv6", help_heading = "Sockets")
    )]
    pub ipv4: bool,
    /// Use IPv6 only
    #[cfg_attr(feature = "clap", arg(short = '6', long = "version6", help_heading = "Sockets"))]
    pub ipv6: bool,
    /// The server is the one whose certificate has this SHA-256 fingerprint; without this option, the certificate of a new
    /// server is remembered, and another one of the same server is refused
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "SHA256", conflicts_with = "tls_ca", help_heading = "Encryption")
    )]
    pub tls_fingerprint: Option<Fingerprint>,
    /// The server's certificate was issued by an authority in this PEM file, such as
    /// /etc/ssl/certs/ca-certificates.crt
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", help_heading = "Encryption"))]
    pub tls_ca: Option<PathBuf>,
    /// Print the result as one JSON document
    #[cfg_attr(feature = "clap", arg(short = 'J', long, help_heading = "Output"))]
    pub json: bool,
    /// Print only the result, and nothing while the test runs
    #[cfg_attr(feature = "clap", arg(short, long, help_heading = "Output"))]
    pub quiet: bool,
    /// Also write a report to this file; its extension selects the format: .html, .json, .csv, .md, .txt, .svg
    /// or .parquet (every sample)
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub report: Option<PathBuf>,
}

impl ResponsivenessOptions {
    /// How the server is recognised, if the connections are encrypted.
    #[must_use]
    pub fn tls(&self, is_encrypted: bool) -> TlsOptions {
        TlsOptions { tls: is_encrypted, tls_fingerprint: self.tls_fingerprint, tls_ca: self.tls_ca.clone() }
    }

    /// Checks what options do not know of each other.
    ///
    /// # Errors
    /// Two of them contradict each other.
    pub fn check(&self, is_encrypted: bool) -> Result<(), SpecError> {
        if self.interval > self.time {
            return Err(SpecError {
                knob: "--interval",
                trouble: format!("{} is longer than the {} of --time", self.interval, self.time),
                remedy: "give more time, or a shorter interval".to_owned(),
            });
        }
        let given =
            [(self.tls_fingerprint.is_some(), "--tls-fingerprint"), (self.tls_ca.is_some(), "--tls-ca")];
        match given.into_iter().find(|(is_given, _)| *is_given && !is_encrypted) {
            Some((_, knob)) => Err(SpecError {
                knob,
                trouble: "a server whose address begins with http:// has no certificate".to_owned(),
                remedy: "leave it out, or give an address with https://".to_owned(),
            }),
            None => Ok(()),
        }
    }
}

#[cfg(feature = "clap")]
fn load_time(typed: &str) -> Result<Span, String> {
    between(typed, Span::from_secs(1), Span::from_secs(600))
}

#[cfg(feature = "clap")]
fn interval(typed: &str) -> Result<Span, String> {
    between(typed, Span::from_ms(500), Span::from_secs(10))
}

#[cfg(feature = "clap")]
fn between(typed: &str, least: Span, most: Span) -> Result<Span, String> {
    let span: Span = typed.parse().map_err(|error: linerate_units::ParseError| error.to_string())?;
    if span < least || span > most {
        return Err(format!("it is {span}, and has to be between {least} and {most}"));
    }
    Ok(span)
}
