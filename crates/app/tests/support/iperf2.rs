//! iperf 2, the real one and ours, on a host of the test.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;

use super::{Done, Netns, Process, TIMEOUT, eventually, signal};

/// The implementation of iperf 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Iperf2 {
    /// The real program.
    Real,
    /// `linerate iperf`.
    Ours,
}

impl Iperf2 {
    /// Its default port, which is free in every [`Netns`].
    pub(crate) const PORT: u16 = 5001;

    /// Its command line.
    pub(crate) fn command(self, on: &Netns, args: &[&str]) -> Command {
        match self {
            // It buffers its lines if stdout is not a terminal.
            Self::Real => on.exec("stdbuf", &[&["-oL", "iperf"], args].concat()),
            Self::Ours => on.exec(env!("CARGO_BIN_EXE_linerate"), &[&["iperf"], args].concat()),
        }
    }

    /// Starts a server, with `-s`, and waits until it listens.
    pub(crate) fn serve(self, on: &Netns, args: &[&str]) -> Process {
        let server = Process::start(self.command(on, &[&["-s"], args].concat()));
        await_server(on, args.contains(&"-u"));
        server
    }

    /// Starts a client of 127.0.0.1, with `-c`.
    pub(crate) fn start(self, on: &Netns, args: &[&str]) -> Process {
        Process::start(self.command(on, &[&["-c", "127.0.0.1"], args].concat()))
    }

    /// Runs a client to its end.
    pub(crate) fn ask(self, on: &Netns, args: &[&str]) -> Done {
        self.start(on, args).finish(TIMEOUT)
    }
}

/// Waits until the port is in use.
pub(crate) fn await_server(on: &Netns, udp: bool) {
    if !udp {
        return on.await_listener(Iperf2::PORT);
    }
    let taken = || UdpSocket::bind((Ipv4Addr::LOCALHOST, Iperf2::PORT)).is_err();
    eventually("somebody receives", || on.inside(taken).then_some(()));
}

/// A line of a report, printed with `-f b`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Iperf2OutputLine {
    /// The connection: `1`, `*1` for the reverse direction, `SUM`.
    pub(crate) label: String,
    /// Seconds.
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) bytes: u64,
    pub(crate) bits_per_second: f64,
    /// Lost and total datagrams, if the line has them.
    pub(crate) lost: Option<(u64, u64)>,
    /// The text after the rate.
    pub(crate) rest: String,
}

impl Iperf2OutputLine {
    fn parse(line: &str) -> Option<Self> {
        let (label, rest) = line.strip_prefix('[')?.split_once(']')?;
        let (interval, rest) = rest.split_once(" sec ")?;
        let (bytes, rest) = rest.split_once(" Bytes ")?;
        let (rate, rest) = rest.split_once(" bits/sec")?;
        let (from, to) = interval.trim().split_once('-')?;
        let lost = rest.split_whitespace().find_map(|word| {
            let (lost, all) = word.split_once('/')?;
            Some((lost.parse().ok()?, all.parse().ok()?))
        });
        Some(Self {
            label: label.trim().to_owned(),
            from: from.trim().parse().ok()?,
            to: to.trim().parse().ok()?,
            bytes: bytes.trim().parse().ok()?,
            bits_per_second: rate.trim().parse().ok()?,
            lost,
            rest: rest.trim().to_owned(),
        })
    }

    /// Whether the line is about a whole test.
    pub(crate) fn is_whole(&self) -> bool {
        self.from == 0.0 && (self.to - 1.0).abs() > 1e-9
    }
}

/// The lines of a report, printed with `-f b`.
pub(crate) fn rows(text: &str) -> Vec<Iperf2OutputLine> {
    text.lines().filter_map(Iperf2OutputLine::parse).collect()
}

/// Output of both ends of one test.
#[derive(Debug)]
pub(crate) struct Iperf2Outputs {
    pub(crate) client: Done,
    pub(crate) server: Done,
}

impl Iperf2Outputs {
    /// The line about a whole direction at each end, the client's first.
    pub(crate) fn whole(&self, near: &str, far: &str) -> (Iperf2OutputLine, Iperf2OutputLine) {
        let find = |done: &Done, label: &str| {
            let found = rows(&done.stdout).into_iter().rfind(|row| row.label == label && row.is_whole());
            found.unwrap_or_else(|| panic!("no line [{label}]: {self:?}"))
        };
        (find(&self.client, near), find(&self.server, far))
    }

    /// The mean rate of a direction over its first `seconds` at each end, from the lines of `-i 1`.
    pub(crate) fn steady(&self, near: &str, far: &str, seconds: usize) -> (f64, f64) {
        let mean = |done: &Done, label: &str| {
            let rows: Vec<Iperf2OutputLine> = rows(&done.stdout)
                .into_iter()
                .filter(|row| row.label == label && (row.to - row.from - 1.0).abs() < 1e-9)
                .take(seconds)
                .collect();
            assert_eq!(rows.len(), seconds, "lines [{label}] of a second each: {self:?}");
            rows.iter().map(|row| row.bits_per_second).sum::<f64>() / seconds as f64
        };
        (mean(&self.client, near), mean(&self.server, far))
    }
}

/// Runs one test between a client and a server, and interrupts the server after `expected` lines of whole
/// tests. Both must end with 0.
pub(crate) fn pair(
    client: Iperf2,
    args: &[&str],
    server: (Iperf2, &[&str]),
    expected: usize,
) -> Iperf2Outputs {
    pair_on(&Netns::new(), client, args, server, expected)
}

/// The same on an existing host.
pub(crate) fn pair_on(
    netns: &Netns,
    client: Iperf2,
    args: &[&str],
    server: (Iperf2, &[&str]),
    expected: usize,
) -> Iperf2Outputs {
    let transport: &[&str] = if args.contains(&"-u") { &["-u"] } else { &[] };
    let serving = server.0.serve(netns, &[transport, server.1, &["-f", "b"]].concat());
    let client = client.ask(netns, &[args, &["-f", "b"]].concat());
    assert_eq!(client.code, Some(0), "{client:?}");
    eventually("the server has reported the test", || {
        let whole = rows(&serving.stdout()).iter().filter(|row| row.is_whole()).count();
        (whole >= expected).then_some(())
    });
    signal(serving.pid(), "INT");
    let server = serving.finish(TIMEOUT);
    assert_eq!(server.code, Some(0), "{server:?}");
    Iperf2Outputs { client, server }
}
