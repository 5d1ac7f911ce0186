//! Brings together what both ends say of the flows of one phase.

use std::collections::BTreeMap;

use linerate_engine::settle_udp;
use linerate_model::{Body, Books, CaveatKind, Direction, LatencyReport, Sample, Side};
use linerate_proto::{Ended, FlowOrder, Progress};

use crate::flow_log::note_end;
use crate::log::Log;
use crate::setup::side;

/// The flows of one phase, from both ends.
#[derive(Debug)]
pub(super) struct Merge {
    flows: BTreeMap<u16, Flow>,
    udp: bool,
    latency: Option<LatencyReport>,
    cut: bool,
}

#[derive(Debug)]
struct Flow {
    direction: Direction,
    sender_progress: Option<Progress>,
    sender: Option<(u16, Ended)>,
    receiver: Option<(u16, Ended)>,
}

impl Merge {
    pub(super) fn new(orders: &[FlowOrder], udp: bool) -> Self {
        let flow = |order: &FlowOrder| Flow {
            direction: order.direction(),
            sender_progress: None,
            sender: None,
            receiver: None,
        };
        Self {
            flows: orders.iter().map(|order| (order.flow(), flow(order))).collect(),
            udp,
            latency: None,
            cut: false,
        }
    }

    pub(super) fn direction(&self, flow: u16) -> Option<Direction> {
        self.flows.get(&flow).map(|flow| flow.direction)
    }

    pub(super) fn progress(&mut self, progress: &Progress) {
        if let Some(flow) = self.flows.get_mut(&progress.flow)
            && progress.side == Side::Sender
        {
            flow.sender_progress = Some(*progress);
        }
    }

    pub(super) fn sender_progress(&self, flow: u16) -> Option<&Progress> {
        self.flows.get(&flow)?.sender_progress.as_ref()
    }

    /// Samples of host `host`. A peer's are taken only for the side that it has.
    pub(super) fn samples(&self, host: u16, flow: u16, samples: Vec<Sample>, log: &mut Log<'_>) {
        let Some(direction) = self.direction(flow) else { return };
        let own = side(direction, host == 0);
        for sample in samples.into_iter().filter(|sample| sample.side == own) {
            log.note_from(host, Body::Sample { flow, sample });
        }
    }

    pub(super) fn ended(&mut self, host: u16, ended: Ended) {
        let Some(flow) = self.flows.get_mut(&ended.flow) else { return };
        match ended.side {
            Side::Sender => flow.sender = Some((host, ended)),
            Side::Receiver => flow.receiver = Some((host, ended)),
        }
    }

    /// Whether this end has nothing more to send or receive, so that probes are no longer beside a load.
    pub(super) fn load_over(&self) -> bool {
        self.flows.values().all(|flow| flow.sender.is_some() || flow.receiver.is_some())
    }

    /// The drain was cut: that streams ended by a reset is then what was wanted.
    pub(super) fn cut(&mut self) {
        self.cut = true;
    }

    pub(super) fn latency(&mut self, report: Option<LatencyReport>) {
        self.latency = report;
    }

    /// Writes the last word of both sides, the books and the latency to the log.
    pub(super) fn finish(mut self, log: &mut Log<'_>) {
        for (number, flow) in &mut self.flows {
            if let (true, Some((_, sender)), Some((_, receiver))) =
                (self.udp, &flow.sender, &mut flow.receiver)
            {
                settle_udp(&sender.tally, &mut receiver.tally);
            }
            let books = match (&flow.sender, &flow.receiver) {
                (Some((_, sender)), Some((_, receiver))) if !self.udp => {
                    Some(Books::close(&sender.tally, &receiver.tally))
                }
                _ => None,
            };
            for (host, mut ended) in [flow.sender.take(), flow.receiver.take()].into_iter().flatten() {
                if self.cut {
                    // The reset that ended its streams was ours, and after the window: what was asked is measured.
                    ended.tally.complete = true;
                    ended.tally.trouble = None;
                }
                note_end(*number, host, ended, log);
            }
            if let Some(books) = books.filter(|books| self.cut && books.never_sent_bytes.get() > 0) {
                let text = format!(
                    "{} were still in the sender's queue when the wait for the last bytes ended; the result does not \
                     count them, a figure taken at the sender would",
                    books.never_sent_bytes
                );
                log.warn(Some(*number), CaveatKind::DrainCut, text);
            }
            if let Some(books) = books {
                log.note(Body::BooksClosed { flow: *number, books });
            }
            if let Some(report) = self.latency.clone() {
                log.note(Body::Latency { flow: Some(*number), report });
            }
        }
    }
}
