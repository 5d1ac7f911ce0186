//! What a test has measured, as far as the client prints it.

use super::confidence::{NetperfIteration, Widths};
use super::latencies::Latencies;
use super::options::{NetperfClientOptions, NetperfFamily, Pair, Unit};
use super::wire::{HostCpu, NetperfResults, Response};

/// A socket buffer before and after a test, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Buffer {
    pub(super) initial: u64,
    pub(super) last: u64,
}

/// Bytes and buffers of this host's calls; 0 for what it does not do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CallSizes {
    /// Bytes of a write and of a read.
    pub(super) send: u32,
    pub(super) receive: u32,
    /// Number of buffers.
    pub(super) send_width: u32,
    pub(super) receive_width: u32,
}

/// The figures of a test. Those that iterations average are means.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NetperfFigures {
    /// Seconds.
    pub(super) elapsed: f64,
    pub(super) throughput: f64,
    /// CPU time, percent, and for each unit of data, microseconds; -1 if it was not measured.
    pub(super) utilization: Pair<f64>,
    pub(super) demand: Pair<f64>,
    pub(super) confidence: Widths,
    /// CPU time of the last iteration; absent if it was not measured.
    pub(super) cpu: Pair<Option<HostCpu>>,
    /// Number of this host's cores; 0 if it was not read.
    pub(super) cores: u32,
    pub(super) sizes: CallSizes,
    pub(super) send_buffer: Buffer,
    pub(super) receive_buffer: Buffer,
    /// The version of IP of the data.
    pub(super) family: NetperfFamily,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) send_calls: u64,
    pub(super) receive_calls: u64,
    pub(super) transactions: u64,
    /// Transactions per second; 1 in a stream, as netperf has it.
    pub(super) transaction_rate: f64,
    /// Round-trip time, microseconds; -1 in a stream.
    pub(super) round_trip: f64,
    pub(super) latencies: Option<Latencies>,
    pub(super) retransmits: Option<u32>,
    pub(super) mss: Option<u32>,
    /// Algorithm for congestion control; empty if there is none.
    pub(super) congestion: String,
    /// The server's agreement and its counts.
    pub(super) response: Response,
    pub(super) results: NetperfResults,
}

impl Default for NetperfFigures {
    fn default() -> Self {
        let none = Pair { local: -1.0, remote: -1.0 };
        Self {
            elapsed: 0.0,
            throughput: 0.0,
            utilization: none,
            demand: none,
            confidence: Widths::default(),
            cpu: Pair::default(),
            cores: 0,
            sizes: CallSizes::default(),
            send_buffer: Buffer::default(),
            receive_buffer: Buffer::default(),
            family: NetperfFamily::Any,
            sent: 0,
            received: 0,
            send_calls: 0,
            receive_calls: 0,
            transactions: 0,
            transaction_rate: 1.0,
            round_trip: -1.0,
            latencies: None,
            retransmits: None,
            mss: None,
            congestion: String::new(),
            response: Response::default(),
            results: NetperfResults::default(),
        }
    }
}

/// Bytes for each call; 0 without calls.
pub(super) fn per_call(bytes: u64, calls: u64) -> f64 {
    if calls == 0 { 0.0 } else { bytes as f64 / calls as f64 }
}

impl NetperfFigures {
    /// Derives rates, CPU time and times of transactions from the counts of one iteration.
    pub(super) fn derive(&mut self, options: &NetperfClientOptions) -> NetperfIteration {
        let (elapsed, unit) = (self.elapsed, options.unit);
        let transactions = self.transactions as f64;
        let moved = self.sent.saturating_add(self.received) as f64;
        let delivered = self.results.sent.saturating_add(self.results.received) as f64;
        self.throughput = match unit {
            Unit::Transactions => transactions / elapsed,
            _ if options.roles.receives && !options.roles.sends => unit.per_second(moved, elapsed),
            // What a sender's peer has received, not what was sent.
            _ => unit.per_second(delivered, elapsed),
        };
        if options.transactions() {
            let at_once = if options.connects_each_time { 0 } else { options.burst };
            self.transaction_rate = transactions / elapsed;
            self.round_trip = elapsed / transactions * 1e6 * (1.0 + f64::from(at_once));
        }
        let units = if unit == Unit::Transactions { transactions } else { moved / 1024.0 };
        let own = self.cores;
        let demand = |cpu: f64, cores: u32| {
            let cores = if cores == 0 { own } else { cores };
            cpu * 10_000.0 / (units / elapsed) * f64::from(cores)
        };
        if let Some(cpu) = self.cpu.local {
            self.utilization.local = f64::from(cpu.busy);
            self.demand.local = demand(f64::from(cpu.busy), own);
        }
        if let Some(cpu) = self.cpu.remote {
            self.utilization.remote = f64::from(cpu.busy);
            self.demand.remote = demand(f64::from(cpu.busy), self.results.cores);
        }
        NetperfIteration {
            elapsed,
            throughput: self.throughput,
            utilization: self.utilization,
            demand: self.demand,
        }
    }

    /// Replaces what iterations average by their means.
    pub(super) fn average(&mut self, means: &NetperfIteration, widths: Widths) {
        self.elapsed = means.elapsed;
        self.throughput = means.throughput;
        (self.utilization, self.demand) = (means.utilization, means.demand);
        self.confidence = widths;
    }
}

/// Figures with the options that they are printed for.
#[derive(Debug, Clone, Copy)]
pub(super) struct NetperfReport<'a> {
    pub(super) options: &'a NetperfClientOptions,
    pub(super) figures: &'a NetperfFigures,
}

impl NetperfReport<'_> {
    /// The rate of these bytes. In transactions it is in 10^6 bit/s.
    pub(super) fn rate(&self, bytes: u64) -> f64 {
        let unit = match self.options.unit {
            Unit::Transactions => Unit::Bits(6),
            unit => unit,
        };
        unit.per_second(bytes as f64, self.figures.elapsed)
    }

    /// How CPU time was measured: from /proc/stat, or not.
    pub(super) fn method(&self, cpu: Option<HostCpu>) -> &'static str {
        if cpu.is_some() { "S" } else { "U" }
    }

    pub(super) fn demand_unit(&self) -> &'static str {
        if self.options.unit == Unit::Transactions { "usec/Tran" } else { "usec/KB" }
    }

    /// Share and number of the busiest core of this host: we do not know them, netperf only with `-c`.
    pub(super) fn peak_of_this_host(&self) -> (&'static str, &'static str) {
        if self.figures.cpu.local.is_some() { ("-1.00", "-1") } else { ("0.00", "0") }
    }

    /// The local address of the data, as typed or assumed.
    pub(super) fn source_address(&self) -> String {
        self.options.source_address(self.figures.family)
    }

    pub(super) fn destination(&self) -> &str {
        self.options.data.host.as_deref().unwrap_or(self.options.host())
    }
}
