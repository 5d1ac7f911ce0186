//! Handles connections and datagrams before the engine uses them, and requests permission to measure.

use std::net::SocketAddr;

use linerate_units::Timestamp;

use super::{LATE_MARK_WINDOW, MAIN_LINK, MAX_TESTS, SECOND, Ttcp};
use crate::stand_in::{FlowId, Link, Opened, Output, RunId, Stop};
use crate::ttcp::settings::{TtcpSettings, TtcpVariant};
use crate::ttcp::transfer::{TtcpTransfer, TtcpTransferState};
use crate::ttcp::{MARK_BYTES, report};

impl Ttcp {
    pub(super) fn accepted(&mut self, now: Timestamp, listener: Link, link: Link, opened: &Opened) {
        let peer = opened.remote.unwrap_or(opened.local);
        let adopting = self.transfers.iter_mut().find(|(_, transfer)| {
            transfer.stage == TtcpTransferState::Adopting && transfer.peer == peer && transfer.udp
        });
        if let Some((run, transfer)) = adopting {
            transfer.link = Some(link);
            transfer.stage = TtcpTransferState::Asking;
            let plan = transfer.plan(&self.settings, *run);
            self.put(Output::Ask(Box::new(plan)));
            return;
        }
        let full =
            self.over || (!self.settings.forever && (self.pipe.is_some() || !self.transfers.is_empty()));
        if full || listener == SECOND || self.settings.udp {
            self.put(Output::Reset { link });
            return;
        }
        self.print_error(report::accepted(&self.settings, peer));
        if !self.settings.forever {
            self.put(Output::Close { link: listener });
        }
        if self.settings.stdio {
            self.start_pipe(link);
            return;
        }
        let run = self.add(now, false, Some(link), peer);
        match run.and_then(|run| Some((run, self.transfers.get(&run)?))) {
            Some((run, transfer)) => {
                let plan = transfer.plan(&self.settings, run);
                self.put(Output::Ask(Box::new(plan)));
            }
            None => self.put(Output::Reset { link }),
        }
    }

    /// A datagram on a socket without a flow: the listener's, or one that was just adopted.
    pub(super) fn datagram(&mut self, now: Timestamp, link: Link, from: SocketAddr, bytes: &[u8]) {
        if self.pipe.is_some() {
            self.pipe_datagram(now, bytes);
            return;
        }
        let known = self.transfers.values_mut().find(|transfer| transfer.udp && transfer.peer == from);
        if let Some(transfer) = known {
            if !matches!(transfer.stage, TtcpTransferState::Measured | TtcpTransferState::Sparing)
                && !transfer.closed
            {
                transfer.early.add_datagram(now, bytes.len());
                transfer.closed = transfer.early.marks >= 2;
                if transfer.closed && transfer.stage == TtcpTransferState::Running {
                    transfer.cut = true;
                    let flow = transfer.flow;
                    self.put(Output::Stop { flow, how: Stop::AtOnce });
                }
            }
            return;
        }
        while self.gone.front().is_some_and(|(_, at)| now.since(*at) > LATE_MARK_WINDOW) {
            self.gone.pop_front();
        }
        let spare = bytes.len() <= MARK_BYTES && self.gone.iter().any(|(peer, _)| *peer == from);
        let listens = link == MAIN_LINK && self.settings.udp || link == SECOND;
        let full = !self.settings.forever && !self.transfers.is_empty();
        if spare || !listens || full || self.over || self.settings.transmit {
            return;
        }
        if let Some(run) = self.add(now, true, None, from) {
            if let Some(transfer) = self.transfers.get_mut(&run) {
                transfer.early.add_datagram(now, bytes.len());
            }
            if self.settings.line == TtcpVariant::Pcattcp {
                let settings = TtcpSettings { udp: true, ..self.settings.clone() };
                self.print_error(report::accepted(&settings, from));
            }
            let options = self.options(true);
            self.put(Output::Adopt { listener: link, peer: from, options });
        }
    }

    /// Counts bytes of a connection before the engine uses it.
    pub(in crate::ttcp) fn early_bytes(&mut self, now: Timestamp, link: Link, bytes: usize) {
        let found = self.transfers.values_mut().find(|transfer| transfer.link == Some(link));
        if let Some(transfer) = found.filter(|transfer| transfer.stage == TtcpTransferState::Asking) {
            transfer.early.add(now, bytes);
        }
    }

    pub(super) fn refused(&mut self, run: RunId, why: &str) {
        let Some(transfer) = self.transfers.remove(&run) else { return };
        self.print_error(Some(report::failed(&self.settings, "accept", 0, why)));
        if let Some(link) = transfer.link {
            self.put(if transfer.udp { Output::Close { link } } else { Output::Reset { link } });
        }
        if !self.settings.forever {
            self.exit(1);
        }
    }

    /// Adds a new test; absent if there are too many.
    pub(super) fn add(
        &mut self,
        now: Timestamp,
        udp: bool,
        link: Option<Link>,
        peer: SocketAddr,
    ) -> Option<RunId> {
        if self.transfers.len() >= MAX_TESTS {
            return None;
        }
        let used = |flow: FlowId| self.transfers.values().any(|transfer| transfer.flow == flow);
        let flow = (0..u16::MAX).map(FlowId).find(|flow| !used(*flow))?;
        while self.transfers.contains_key(&self.next_run) {
            self.next_run = self.next_run.next();
        }
        let run = self.next_run;
        self.next_run = run.next();
        self.transfers.insert(run, TtcpTransfer::new(now, flow, udp, link, peer));
        Some(run)
    }
}
