//! The end of a client's test: its output, and the server's counts for the archive.

use linerate_model::Tally;
use linerate_units::{Bitrate, Bytes, Span, Timestamp};

use super::{CONTROL, FLOW, NuttcpClient, SERVER_TIMEOUT};
use crate::nuttcp::options::Verbosity;
use crate::nuttcp::report::{Counted, count_lines, mbps, megabytes};
use crate::nuttcp::summary::{Brief, loss_line};
use crate::stand_in::Output;

impl NuttcpClient {
    /// Our own counts are final.
    pub(super) fn over(&mut self, now: Timestamp) {
        if self.classic {
            return self.classic_end();
        }
        if self.control_open {
            if self.options.udp && self.options.transmit {
                self.out.push_back(Output::FinishWriting { link: CONTROL });
            }
            self.due = Some(now + SERVER_TIMEOUT);
        }
        self.finish_if_complete();
    }

    /// Prints the results when both our counts and the server's report are complete.
    pub(super) fn finish_if_complete(&mut self) {
        let Some(transfer) = self.transfer.as_ref().filter(|transfer| transfer.is_over()) else { return };
        if self.control_open {
            return;
        }
        let own = transfer.counted.clone();
        let trouble = transfer.trouble.as_ref().map(|reason| reason.text.clone());
        if self.results.seconds.is_none() {
            return self.fail("Error: not receiving server info");
        }
        self.report_to_archive();
        let drops = self.drops(&own);
        if self.options.verbosity == Verbosity::Brief {
            self.print_brief(&own, drops);
        } else {
            self.print_reports(&own, drops);
        }
        // A peer that closes after its own end while we still send breaks connections, which is not an error of
        // the test.
        let trouble = trouble.filter(|_| !self.options.transmit);
        self.exit(0, trouble);
    }

    /// Datagrams: lost and sent, from the byte counts of both ends.
    fn drops(&self, own: &Counted) -> Option<(u64, u64)> {
        let theirs = self.results.bytes().filter(|_| self.options.udp)?;
        let (sent, received) = if self.options.transmit { (own.bytes, theirs) } else { (theirs, own.bytes) };
        let length = self.request.buflen.max(1) as f64;
        let lost = sent.saturating_sub(received) as f64 / length;
        Some((lost.round() as u64, (sent as f64 / length).round() as u64))
    }

    fn report_to_archive(&mut self) {
        let (Some(bytes), Some(seconds)) = (self.results.bytes(), self.results.seconds) else { return };
        if !self.planned {
            return;
        }
        let bytes = Bytes::new(bytes);
        let elapsed = Span::from_secs_f64(seconds).unwrap_or_default();
        let printed_rate = self.results.mbps.and_then(|mbps| Bitrate::from_bps(mbps * 1e6));
        let tally = Tally {
            bytes,
            total_bytes: bytes,
            elapsed,
            bitrate: printed_rate.or_else(|| Bitrate::of(bytes, elapsed)).unwrap_or_default(),
            retransmits: self.results.retrans.filter(|_| !self.results.host_retrans),
            complete: true,
            ..Tally::default()
        };
        self.out.push_back(Output::PeerCounted { flow: FLOW, tally: Box::new(tally) });
    }

    fn print_brief(&mut self, own: &Counted, drops: Option<(u64, u64)>) {
        if self.intervals {
            self.print("\n".to_owned());
        }
        let results = &self.results;
        let transmit = self.options.transmit;
        let theirs = results.megabytes.zip(results.seconds).zip(results.mbps);
        let receiver = match theirs {
            Some(((megabytes, seconds), mbps)) if transmit => (megabytes, seconds, mbps),
            _ => (megabytes(own.bytes), own.span.as_secs_f64(), mbps(own.bytes, own.span)),
        };
        let own_rtt = self.transfer.as_ref().and_then(|transfer| {
            transfer.opened.as_ref()?.handshake.filter(|_| transfer.terms.connects() && !self.options.udp)
        });
        let own_cpu = Some(own.cpu_percent());
        let sent = if transmit { Some(megabytes(own.bytes)) } else { results.megabytes };
        let (each_retrans, each_cwnd) = if transmit {
            (&own.stream_retrans, &own.stream_cwnd)
        } else {
            (&results.stream_retrans, &results.stream_cwnd)
        };
        let line = Brief {
            megabytes: receiver.0,
            seconds: receiver.1,
            mbps: receiver.2,
            tx_cpu: if transmit { own_cpu } else { results.cpu_percent },
            rx_cpu: if transmit { results.cpu_percent } else { own_cpu },
            retrans: if transmit { own.retrans } else { results.retrans },
            host_retrans: !transmit && results.host_retrans,
            cwnd: if transmit { own.cwnd } else { results.cwnd },
            rtt_ms: own_rtt.map(|rtt| rtt.as_secs_f64() * 1e3).or(results.rtt_ms),
            drops,
            sent_megabytes: sent.filter(|_| self.options.udp),
            jitter_ms: if transmit { results.jitter_ms } else { own.jitter.and_then(|values| values.ms()) },
            jitter: self.options.jitter,
            one_way_ms: if transmit {
                results.one_way_ms
            } else {
                own.one_way.and_then(|values| values.ms())
            },
            one_way: self.options.one_way_delay,
            stream_retrans: if self.options.stream_retrans { each_retrans.clone() } else { Vec::new() },
            stream_cwnd: if self.options.stream_cwnd { each_cwnd.clone() } else { Vec::new() },
        };
        self.print_line(&line.line(self.options.format));
    }

    /// Prints our report, an empty line, and the server's report.
    fn print_reports(&mut self, own: &Counted, drops: Option<(u64, u64)>) {
        let transmit = self.options.transmit;
        let cpu = self.options.verbosity == Verbosity::VeryVerbose;
        let parse = self.parse();
        let ours = self.prefix(transmit);
        let mut text = String::new();
        for (number, line) in count_lines(own, transmit, &ours, parse, cpu).iter().enumerate() {
            text += line;
            if let Some((lost, sent)) = drops.filter(|_| number == 0 && !transmit) {
                text += &format!("{ours}{}\n", loss_line(lost, sent, parse));
            }
        }
        text += "\n";
        let theirs = self.prefix(!transmit);
        for line in std::mem::take(&mut self.server_lines) {
            if !cpu && line.contains("KB/cpu sec") {
                continue;
            }
            text += &line;
            text += "\n";
            let rate = line.contains(" real seconds = ") || line.contains("real_seconds=");
            if let Some((lost, sent)) = drops.filter(|_| rate && transmit) {
                text += &format!("{theirs}{}\n", loss_line(lost, sent, parse));
            }
        }
        self.print(text);
    }

    /// Without a server's report: prints the transmitter's own figures.
    fn classic_end(&mut self) {
        let Some(transfer) = &self.transfer else { return };
        let own = transfer.counted.clone();
        let line = Brief {
            megabytes: megabytes(own.bytes),
            seconds: own.span.as_secs_f64(),
            mbps: mbps(own.bytes, own.span),
            tx_cpu: Some(own.cpu_percent()),
            ..Brief::default()
        };
        if self.options.verbosity == Verbosity::Brief {
            self.print_line(&line.line(self.options.format));
        } else {
            let before = self.prefix(true);
            let cpu = self.options.verbosity == Verbosity::VeryVerbose;
            let text = count_lines(&own, true, &before, self.parse(), cpu).concat();
            self.print(text);
        }
        self.exit(0, None);
    }
}
