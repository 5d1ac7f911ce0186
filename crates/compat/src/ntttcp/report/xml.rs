//! The result as XML. Byte rates are decimal (1 MB/s is 10^6 bytes per second), but binary in the Windows form.

use std::fmt::Write as _;

use super::{NtttcpFigures, RETRANSMITS, parameters};

/// The document of `-x`. A figure that this system does not provide is 0, as in the original.
pub(in crate::ntttcp) fn xml(figures: &NtttcpFigures<'_>) -> String {
    let root = figures.root();
    let mut document = XmlDocument(String::new());
    let version = figures.version();
    let name = escaped(&figures.outcome.after.name);
    document.0 = format!("<{root} computername=\"{name}\" version=\"{version}\">\n\t<parameters>\n");
    for (name, _, value) in parameters(figures.options) {
        let _ = writeln!(document.0, "\t\t<{name}>{value}</{name}>");
    }
    document.0.push_str("\t</parameters>\n");
    if figures.options.verbose {
        for (index, bytes) in figures.outcome.threads.iter().enumerate() {
            document.thread(figures, index, *bytes);
        }
    }
    document.totals(figures);
    document.host(figures);
    let _ = writeln!(document.0, "</{root}>");
    document.0
}

struct XmlDocument(String);

impl XmlDocument {
    fn element(&mut self, name: &str, metric: &str, value: impl std::fmt::Display) {
        let metric = if metric.is_empty() { String::new() } else { format!(" metric=\"{metric}\"") };
        let _ = writeln!(self.0, "\t<{name}{metric}>{value}</{name}>");
    }

    fn inner(&mut self, name: &str, metric: &str, value: f64) {
        let _ = writeln!(self.0, "\t\t<{name} metric=\"{metric}\">{value:.3}</{name}>");
    }

    fn thread(&mut self, figures: &NtttcpFigures<'_>, index: usize, bytes: u64) {
        let rate = figures.outcome.rate(bytes);
        let _ = writeln!(self.0, "\t<thread index=\"{index}\">");
        self.inner("realtime", "s", figures.outcome.seconds);
        self.inner("throughput", "KB/s", rate / figures.kilo());
        self.inner("throughput", "MB/s", rate / figures.kilo().powi(2));
        self.inner("throughput", "mbps", rate * 8.0 / 1e6);
        self.inner("avg_bytes_per_compl", "B", 0.0);
        self.0.push_str("\t</thread>\n");
    }

    fn totals(&mut self, figures: &NtttcpFigures<'_>) {
        let rate = figures.rate;
        if figures.sends() {
            self.element("conns_tested", "", figures.outcome.connections);
        }
        self.element(
            "total_bytes",
            "MB",
            format_args!("{:.6}", figures.bytes as f64 / figures.kilo().powi(2)),
        );
        self.element("realtime", "s", format_args!("{:.6}", figures.outcome.seconds));
        for name in ["avg_bytes_per_compl", "threads_avg_bytes_per_compl", "avg_frame_size"] {
            self.element(name, "B", "0.000");
        }
        self.element("throughput", "MB/s", format_args!("{:.3}", rate / figures.kilo().powi(2)));
        self.element("throughput", "mbps", format_args!("{:.3}", rate * 8.0 / 1e6));
        self.element("throughput", "Bps", format_args!("{rate:.3}"));
        self.element("total_buffers", "", "0.000");
        self.element("throughput", "buffers/s", "0.000");
        let per_interrupt = figures.packets_per_interrupt().unwrap_or(0.0);
        let interrupts = figures.interrupts().unwrap_or(0);
        let (sent, received) = figures.packets().unwrap_or((0, 0));
        self.element("avg_packets_per_interrupt", "packets/interrupt", format_args!("{per_interrupt:.3}"));
        let rate = figures.outcome.rate(interrupts);
        self.element("interrupts", "count/sec", format_args!("{rate:.3}"));
        self.element("total_interrupts", "count", interrupts);
        self.element("dpcs", "count/sec", "0.000");
        self.element("avg_packets_per_dpc", "packets/dpc", "0.000");
        self.element("packets_sent", "", sent);
        self.element("packets_received", "", received);
        for name in ["packets_retransmitted", "errors", "bufferCount", "bufferLen"] {
            self.element(name, "", 0);
        }
    }

    fn host(&mut self, figures: &NtttcpFigures<'_>) {
        if figures.options.by_kind {
            self.element("tcp_retransmits", "retrans_segs", figures.retransmits().unwrap_or(0));
            for (name, count) in RETRANSMITS.iter().zip(figures.retransmits_a_second()) {
                self.element("tcp_retransmits", name, format_args!("{count:.2}"));
            }
        }
        let after = &figures.outcome.after;
        self.element("cpu_cores", "cpu cores", after.cores.unwrap_or(0));
        self.element("cpu_speed", "MHz", format_args!("{:.3}", after.mhz.unwrap_or(0.0)));
        let shares = figures.shares();
        let share = |of: fn(&super::CpuShares) -> f64| shares.as_ref().map_or(0.0, of) * 100.0;
        let states = [
            ("user", share(|shares| shares.user)),
            ("system", share(|shares| shares.system)),
            ("idle", share(|shares| shares.idle)),
            ("iowait", share(|shares| shares.iowait)),
            ("softirq", share(|shares| shares.softirq)),
        ];
        for (name, percent) in states {
            self.element(name, "%", format_args!("{percent:.2}"));
        }
        let cycles = figures.cycles_per_byte().unwrap_or(0.0);
        self.element("cycles_per_byte", "cycles/byte", format_args!("{cycles:.2}"));
        self.element("cpu_busy_all", "%", format_args!("{:.2}", figures.process_percent()));
        if figures.options.windows.is_some() {
            self.element("cycles", "cycles/byte", format_args!("{cycles:.3}"));
            let busy = shares.map_or(0.0, |shares| (1.0 - shares.idle) * 100.0);
            self.element("cpu", "%", format_args!("{busy:.3}"));
            self.element("num_processors", "", after.cores.unwrap_or(0));
        }
        self.element("io", "", 0);
        if let Some(rtt) = figures.average_rtt() {
            self.element("tcp_average_rtt", "us", rtt.as_ns() / 1000);
        }
        self.element("os", "", escaped(&after.system));
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
