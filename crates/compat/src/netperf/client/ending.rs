//! The end of an iteration: the last counts of both ends, and the result after the last one.

use linerate_model::Tally;
use linerate_units::{Bitrate, Bytes, Span, Timestamp};

use super::{
    END_DATAGRAMS, FAILED, FLOW, NetperfClient, NetperfClientCountsReason, NetperfClientPhase, SERVER_TIMEOUT,
};
use crate::errno::ECONNREFUSED;
use crate::netperf::confidence::Widths;
use crate::netperf::figures::NetperfReport;
use crate::netperf::report;
use crate::netperf::wire::NetperfResults;
use crate::stand_in::{FlowCounts, LinkOptions, Output, SystemError};

impl NetperfClient {
    /// The flow of a stream has ended, and its link is ours again.
    pub(super) fn flow_ended(&mut self, now: Timestamp, counts: &FlowCounts) {
        if !matches!(self.phase, NetperfClientPhase::Streaming | NetperfClientPhase::Stopping) {
            return;
        }
        self.next_interim = None;
        let (udp, sends) = (self.options.udp(), self.options.roles.sends);
        let (bytes, calls) = (counts.total(|stream| stream.bytes), counts.total(|stream| stream.calls));
        let figures = &mut self.iteration.figures;
        if sends {
            let calls = if udp { counts.total(|stream| stream.packets) } else { calls };
            (figures.sent, figures.send_calls) = (bytes, calls);
        } else {
            (figures.received, figures.receive_calls) = (bytes, calls);
        }
        let retransmits = counts.streams.iter().filter_map(|stream| stream.retransmits);
        figures.retransmits = retransmits
            .reduce(u64::saturating_add)
            .filter(|_| !udp)
            .and_then(|count| u32::try_from(count).ok());
        let last = counts.last_at.unwrap_or(now).min(now);
        self.interim(last.max(self.iteration.interim_end), bytes);
        self.out.push_back(Output::Forget { flow: FLOW });
        let trouble = counts.trouble.as_ref().filter(|reason| !(udp && reason.errno == ECONNREFUSED));
        if let Some(reason) = trouble {
            let call = if sends { "send" } else { "recv" };
            let text = reason.text.clone();
            self.out
                .push_back(Output::PrintError(format!("netperf: send_omni: {call}_data failed: {text}\n")));
            return self.exit(FAILED, Some(&text));
        }
        (self.phase, self.due) = (NetperfClientPhase::Ending, Some(now + SERVER_TIMEOUT));
        if udp {
            return self.end_datagrams(now);
        }
        self.read_link_again();
        if !sends {
            // Data that are under way do not count any more.
            self.out.push_back(Output::FinishWriting { link: self.data });
            self.out.push_back(Output::Discard { link: self.data });
            // A pump that waits for data notices its end a little later.
            let end = self.iteration.until.map_or(now, |until| until.max(last).min(now));
            self.data_over(end);
        }
    }

    /// Reads the buffers of the data link, which the kernel may have adapted.
    fn read_link_again(&mut self) {
        self.out.push_back(Output::Tune { link: self.data, options: LinkOptions::default() });
    }

    /// Tells the server that no datagrams follow.
    fn end_datagrams(&mut self, now: Timestamp) {
        for _ in 0..END_DATAGRAMS {
            self.out.push_back(Output::Send { link: self.data, bytes: Vec::new() });
        }
        self.data_over(now);
    }

    /// The time or the number of transactions is over, or no data link was open in time.
    pub(super) fn end_transactions(&mut self, now: Timestamp) {
        if !matches!(self.phase, NetperfClientPhase::Opening | NetperfClientPhase::Transacting) {
            return;
        }
        let units = self.transaction_units(self.iteration.complete());
        self.interim(now, units);
        let never_opened = self.phase == NetperfClientPhase::Opening;
        (self.phase, self.due) = (NetperfClientPhase::Ending, Some(now + SERVER_TIMEOUT));
        if let Some(requests) = &mut self.iteration.requests {
            requests.forget();
            let figures = &mut self.iteration.figures;
            figures.transactions = requests.complete;
            (figures.sent, figures.received) = (requests.sent, requests.received);
            figures.send_calls = requests.sent / (u64::from(self.options.request_size.unwrap_or(1)).max(1));
            figures.receive_calls = requests.calls;
            figures.latencies = requests.latencies.take();
        }
        if self.options.udp() && !never_opened {
            self.end_datagrams(now);
        } else if never_opened {
            // There is no connection that could tell the server.
            self.out.push_back(Output::Close { link: self.data });
            self.data_over(now);
        } else if self.iteration.open {
            self.read_link_again();
            self.out.push_back(Output::FinishWriting { link: self.data });
        } else {
            self.data_over(now);
        }
    }

    /// Bytes of the data link that belong to no flow.
    pub(super) fn data_bytes(&mut self, now: Timestamp, count: usize) {
        match self.phase {
            NetperfClientPhase::Transacting => self.response_bytes(now, count),
            // The response to a request that was under way ends the wait for the server, as its end would.
            NetperfClientPhase::Ending => self.data_over(now),
            _ => {}
        }
    }

    /// Both ends have finished with the data.
    pub(super) fn data_over(&mut self, now: Timestamp) {
        if self.iteration.elapsed.is_none() {
            self.iteration.elapsed = Some(now.since(self.iteration.began));
            if self.options.cpu.local {
                return self.read_host(NetperfClientCountsReason::After);
            }
        }
        self.finish_if_complete(now);
    }

    pub(super) fn control_closed(&mut self, reason: Option<&SystemError>) {
        let count = self.buffer.len();
        let text = match reason {
            Some(reason) => format!("recv_response: {}\n", reason.text),
            None => format!("recv_response: partial response received: {count} bytes\n"),
        };
        self.fail(&text);
    }

    /// Ends the iteration when both ends have reported.
    pub(super) fn finish_if_complete(&mut self, now: Timestamp) {
        if self.phase != NetperfClientPhase::Ending || self.reading.is_some() {
            return;
        }
        let Some(elapsed) = self.iteration.elapsed else { return };
        let Some(results) = self.iteration.results.take() else { return };
        self.out.push_back(Output::Close { link: self.data });
        self.report_to_archive(&results);
        self.out.push_back(Output::RunOver { run: self.run, trouble: None });
        self.planned = false;
        self.run = self.run.next();
        let figures = &mut self.iteration.figures;
        figures.elapsed = elapsed.as_secs_f64();
        figures.cpu.remote = results.cpu;
        figures.results = results;
        let measured = figures.derive(&self.options);
        self.confidence.add(&measured);
        if self.confidence.needs_another(&self.options.iterations) {
            self.next_data_link();
            return self.begin_iteration(now);
        }
        self.print_result();
        self.exit(0, None);
    }

    /// The server's counts of a stream.
    fn report_to_archive(&mut self, results: &NetperfResults) {
        if self.options.transactions() {
            return;
        }
        let bytes = Bytes::new(if self.options.roles.sends { results.received } else { results.sent });
        let elapsed = Span::from_secs_f64(f64::from(results.elapsed)).unwrap_or_default();
        let tally = Tally {
            bytes,
            total_bytes: bytes,
            elapsed,
            bitrate: Bitrate::of(bytes, elapsed).unwrap_or_default(),
            retransmits: results.retransmits.filter(|_| !self.options.roles.sends).map(u64::from),
            complete: true,
            ..Tally::default()
        };
        self.out.push_back(Output::PeerCounted { flow: FLOW, tally: Box::new(tally) });
    }

    fn print_result(&mut self) {
        let iterations = &self.options.iterations;
        let mut widths = Widths::default();
        if iterations.most > 1
            && let Some(reached) = self.confidence.widths(iterations)
        {
            widths = reached;
            if !self.confidence.is_reached(iterations) && self.options.is_classic() {
                self.out.push_back(Output::Print(report::unconfident(&widths)));
            }
        }
        let means = self.confidence.means();
        self.iteration.figures.average(&means, widths);
        let report = NetperfReport { options: &self.options, figures: &self.iteration.figures };
        self.out.push_back(Output::Print(report::result(&report)));
    }
}
