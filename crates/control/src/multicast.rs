//! The sender of datagrams to a multicast group. The group has several receivers, with a run each, and so several runs
//! share it.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use linerate_engine::{FlowHandle, FlowProgress, FlowReport, FlowSetup, Sockets, arm};
use linerate_model::{CheckedSpec, Sample, SideSettings};
use linerate_proto::native;
use linerate_sock::multicast::MulticastPath;
use linerate_sock::poll::EventFd;
use linerate_sock::thread::locked;
use linerate_sock::{Mono, SocketOptions, iface};

use crate::error::ControlError;

/// How much the planned starts of runs that share a sender may differ: each is an estimate on this host's clock.
const START_TOLERANCE: Duration = Duration::from_millis(100);

/// The path of datagrams from `source` to the group, or from there to `here`, on the interface of that local address.
/// Absent for tests without a group.
pub(crate) fn path(
    spec: &CheckedSpec,
    source: IpAddr,
    here: IpAddr,
) -> Result<Option<MulticastPath>, ControlError> {
    let Some(group) = spec.traffic.multicast else { return Ok(None) };
    let source = source.to_canonical();
    if source.is_ipv4() != group.is_ipv4() {
        let text = format!(
            "the group {group} has receivers at {} addresses only, but the control connection uses {source}",
            if group.is_ipv4() { "IPv4" } else { "IPv6" }
        );
        return Err(ControlError::Local(text));
    }
    let interface = iface::of_local_address(here)?.index;
    Ok(Some(MulticastPath { group, source, interface }))
}

/// What takes the place of the cookie of a run in datagrams to a group, from and to these ports.
pub(crate) fn cookie(path: &MulticastPath, ports: &[u16]) -> [u8; 16] {
    native::multicast_cookie(path.group, ports.first().copied().unwrap_or_default())
}

/// The sockets of a receiver: each gets what one of these, which the client opened, would have got.
///
/// # Errors
/// Another program uses the port, or the host is in as many groups as it may be.
pub(crate) fn receivers(
    spec: &CheckedSpec,
    opened: &[UdpSocket],
    here: IpAddr,
    options: &SocketOptions,
) -> Result<Option<MulticastReceivers>, ControlError> {
    let local = |error: io::Error| ControlError::Local(format!("the data socket: {error}"));
    let Some(first) = opened.first() else { return Ok(None) };
    let Some(path) = path(spec, first.peer_addr().map_err(local)?.ip(), here)? else { return Ok(None) };
    let ports = opened.iter().map(|socket| socket.peer_addr().map(|peer| peer.port()));
    let ports = ports.collect::<Result<Vec<u16>, _>>().map_err(local)?;
    let sockets = ports
        .iter()
        .map(|port| path.receiver(*port, options).map(|bound| bound.socket))
        .collect::<Result<_, _>>()?;
    Ok(Some(MulticastReceivers { sockets, cookie: cookie(&path, &ports) }))
}

/// The sockets of a receiver, and what distinguishes the datagrams that they are for.
#[derive(Debug)]
pub(crate) struct MulticastReceivers {
    pub(crate) sockets: Vec<UdpSocket>,
    pub(crate) cookie: [u8; 16],
}

/// The senders for the runs of one coordinator.
#[derive(Debug, Default)]
pub(crate) struct MulticastSenders {
    senders: Mutex<Vec<Weak<MulticastSender>>>,
}

impl MulticastSenders {
    /// A share in the sender that other runs of the same test are about to start, or in a new one.
    ///
    /// # Errors
    /// No socket can be opened, or the datagrams would have to leave from two addresses.
    pub(crate) fn join(
        &self,
        spec: &CheckedSpec,
        path: MulticastPath,
        options: &SocketOptions,
    ) -> Result<SenderShare, ControlError> {
        let mut senders = locked(&self.senders);
        senders.retain(|sender| sender.strong_count() > 0);
        let same = senders
            .iter()
            .filter_map(Weak::upgrade)
            .find(|sender| sender.spec == *spec && locked(&sender.flow).begins.is_none());
        let sender = match same {
            Some(sender) if sender.path != path => {
                return Err(ControlError::Local(format!(
                    "datagrams to {} leave from {}, but this receiver is reached from {}; give the address that \
                     all receivers can be reached from (-B)",
                    path.group, sender.path.source, path.source
                )));
            }
            Some(sender) => sender,
            None => {
                let sender = Arc::new(MulticastSender::open(spec, path, options)?);
                senders.push(Arc::downgrade(&sender));
                sender
            }
        };
        let waker = Arc::new(EventFd::new()?);
        locked(&sender.flow).shares += 1;
        Ok(SenderShare { sender, waker, samples_seen: Cell::new(0), has_left: Cell::new(false) })
    }
}

/// A sender to a group.
#[derive(Debug)]
struct MulticastSender {
    spec: CheckedSpec,
    path: MulticastPath,
    /// The ports of the streams, at both ends.
    ports: Vec<u16>,
    flow: Mutex<SharedFlow>,
}

#[derive(Debug, Default)]
struct SharedFlow {
    /// Number of runs that need it.
    shares: usize,
    /// The sockets until the flow is armed.
    sockets: Vec<UdpSocket>,
    handle: Option<FlowHandle>,
    settings: SideSettings,
    /// The planned start, once a run has passed its gate.
    begins: Option<Mono>,
    began: Option<Mono>,
    samples: Vec<Sample>,
    progress: FlowProgress,
    report: Option<FlowReport>,
}

impl MulticastSender {
    fn open(spec: &CheckedSpec, path: MulticastPath, options: &SocketOptions) -> Result<Self, ControlError> {
        let first = spec.socket.source_port;
        let port_of = |stream: u32| first.map(|first| first.saturating_add(stream as u16));
        let opened = (0..spec.traffic.streams)
            .map(|stream| path.sender(port_of(stream), spec.traffic.ttl, options))
            .collect::<Result<Vec<_>, _>>()?;
        let ports = opened.iter().map(|bound| bound.local.port()).collect();
        let sockets = opened.into_iter().map(|bound| bound.socket).collect();
        let flow = Mutex::new(SharedFlow { sockets, ..SharedFlow::default() });
        Ok(Self { spec: spec.clone(), path, ports, flow })
    }
}

/// The part of one run in a sender. The flow ends with its last share.
#[derive(Debug)]
pub(crate) struct SenderShare {
    sender: Arc<MulticastSender>,
    waker: Arc<EventFd>,
    samples_seen: Cell<usize>,
    /// Whether it is counted no more among the shares.
    has_left: Cell<bool>,
}

impl SenderShare {
    /// The address from which the datagrams leave.
    pub(crate) fn source(&self) -> IpAddr {
        self.sender.path.source
    }

    /// What distinguishes the datagrams of this sender, see [`cookie`].
    pub(crate) fn cookie(&self) -> [u8; 16] {
        cookie(&self.sender.path, &self.sender.ports)
    }

    /// The ports of the streams, at both ends.
    pub(crate) fn ports(&self) -> &[u16] {
        &self.sender.ports
    }

    /// Creates the threads of the flow unless another run has.
    ///
    /// # Errors
    /// A socket option or a thread is refused.
    pub(crate) fn arm(&self, setup: FlowSetup, epoch: Mono) -> Result<(), ControlError> {
        let mut flow = locked(&self.sender.flow);
        if flow.handle.is_none() && flow.report.is_none() {
            let sockets = std::mem::take(&mut flow.sockets);
            let handle = arm(setup, Sockets::Udp(sockets), epoch)?;
            flow.settings = handle.settings().clone();
            flow.handle = Some(handle);
        }
        if let Some(handle) = &flow.handle {
            handle.wake_also(Arc::clone(&self.waker));
        }
        Ok(())
    }

    /// The flow will begin at `at`, which is the same for all its runs.
    ///
    /// # Errors
    /// It begins at another time for other runs, so that this receiver would miss datagrams.
    pub(crate) fn plan_start(&self, at: Mono) -> Result<(), ControlError> {
        let mut flow = locked(&self.sender.flow);
        let begins = *flow.begins.get_or_insert(at);
        if at.since(begins).max(begins.since(at)) > START_TOLERANCE {
            return Err(ControlError::Local(format!(
                "the flows to the group {} share one sender, so they must start at the same time",
                self.sender.path.group
            )));
        }
        Ok(())
    }

    /// Lets the flow begin. Only the first call counts.
    pub(crate) fn begin_at(&self, at: Mono) {
        if let Some(handle) = &locked(&self.sender.flow).handle {
            handle.begin_at(at);
        }
    }

    pub(crate) fn began(&self) -> Option<Mono> {
        let flow = locked(&self.sender.flow);
        flow.began.or_else(|| flow.handle.as_ref()?.began())
    }

    pub(crate) fn settings(&self) -> SideSettings {
        locked(&self.sender.flow).settings.clone()
    }

    /// Progress of the flow. When it is over, the first run that notices collects its counts for all.
    pub(crate) fn progress(&self) -> FlowProgress {
        let flow = &mut *locked(&self.sender.flow);
        if let Some(handle) = &flow.handle {
            flow.progress = handle.progress();
            if flow.progress.ended {
                flow.finish();
            }
        }
        flow.progress
    }

    /// Whether a stream of the flow has failed.
    pub(crate) fn has_failed(&self) -> bool {
        let flow = locked(&self.sender.flow);
        let failed = flow.handle.as_ref().is_some_and(FlowHandle::has_failed);
        failed || flow.report.as_ref().is_some_and(|report| !report.tally.complete)
    }

    /// The samples taken since the last call for this run.
    pub(crate) fn new_samples(&self) -> Vec<Sample> {
        let flow = &mut *locked(&self.sender.flow);
        flow.collect_samples();
        let seen = self.samples_seen.replace(flow.samples.len());
        flow.samples[seen..].to_vec()
    }

    pub(crate) fn waker(&self) -> &EventFd {
        &self.waker
    }

    /// Stops the sender, for all runs.
    pub(crate) fn stop_writing(&self) {
        if let Some(handle) = &locked(&self.sender.flow).handle {
            handle.stop_writing();
        }
    }

    /// Ends the flow at once if no other run needs it.
    pub(crate) fn abort(&self) {
        let flow = locked(&self.sender.flow);
        if flow.shares <= 1
            && let Some(handle) = &flow.handle
        {
            handle.abort();
        }
    }

    /// The counts of the flow; absent if it continues for other runs.
    pub(crate) fn finish(self) -> Option<FlowReport> {
        let flow = &mut *locked(&self.sender.flow);
        // Of shares that end at the same moment, one is the last.
        flow.shares -= 1;
        self.has_left.set(true);
        if flow.shares == 0 {
            // Others may have left since this run aborted its part. Has no effect on a flow that has ended.
            flow.handle.iter().for_each(FlowHandle::abort);
            flow.finish();
        }
        flow.report.clone()
    }
}

impl Drop for SenderShare {
    fn drop(&mut self) {
        if !self.has_left.get() {
            locked(&self.sender.flow).shares -= 1;
        }
    }
}

impl SharedFlow {
    fn collect_samples(&mut self) {
        if let Some(handle) = &self.handle {
            self.samples.extend(handle.new_samples());
        }
    }

    fn finish(&mut self) {
        self.collect_samples();
        if let Some(handle) = self.handle.take() {
            self.began = handle.began();
            self.report = Some(handle.finish());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use linerate_model::flow::FlowId;
    use linerate_model::{Side, TestSpec, Transport};
    use linerate_units::{Bitrate, Bytes, Span};

    use super::*;

    fn spec() -> CheckedSpec {
        let mut spec = TestSpec::default();
        spec.traffic.udp = true;
        spec.traffic.multicast = "239.7.7.7".parse().ok();
        spec.checked().unwrap()
    }

    /// Two shares in a sender over loopback that would send for an hour.
    fn two_shares() -> [SenderShare; 2] {
        let (spec, here) = (spec(), Ipv4Addr::LOCALHOST.into());
        let path = path(&spec, here, here).unwrap().unwrap();
        let senders = MulticastSenders::default();
        let setup = FlowSetup {
            transport: Transport::Udp,
            length: Some(Bytes::new(100)),
            offered: Bitrate::from_bps(1e5),
            stamp: native::STAMP,
            ..FlowSetup::new(FlowId(0), Side::Sender, Span::from_secs(3600))
        };
        [0, 1].map(|_| {
            let share = senders.join(&spec, path, &SocketOptions::default()).unwrap();
            share.arm(setup.clone(), Mono::default()).unwrap();
            share
        })
    }

    #[test]
    fn the_runs_of_a_group_share_one_sender_and_the_last_one_ends_it() {
        let [first, last] = two_shares();
        assert_eq!(first.ports(), last.ports());
        for share in [&first, &last] {
            share.plan_start(Mono(1)).unwrap();
            share.begin_at(Mono(1));
        }
        assert!(first.plan_start(Mono(1_000_000_000)).is_err(), "another start");
        first.abort();
        assert_eq!(first.finish(), None, "the other one continues");
        assert!(!last.progress().ended);
        last.abort();
        assert!(last.finish().unwrap().tally.udp.is_some());
    }

    #[test]
    fn when_both_fail_at_once_the_sender_still_ends_and_its_counts_are_kept() {
        let [first, last] = two_shares();
        last.begin_at(Mono(1));
        // Neither is the last one yet.
        first.abort();
        last.abort();
        assert!(!last.progress().ended);
        assert_eq!(first.finish(), None);
        assert!(last.finish().is_some());
    }
}
