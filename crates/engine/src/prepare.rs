//! Work before the first thread starts: checks, socket options, buffers.

use linerate_model::{Caveat, SendMethod, SideSettings};
use linerate_sock::{SockError, iface, sockopt};

use crate::caveats;
use crate::error::EngineError;
use crate::flow::FlowSide;
use crate::pacer;
use crate::pump::feed::Feed;
use crate::pump::{PumpJob, datagram_recv, datagram_send, epoll, stream, transactions};
use crate::send_method;
use crate::settings;
use crate::setup::{FlowSetup, Sockets};

/// Input of the pumps.
pub(crate) struct Prepared {
    /// One for each pump.
    pub(crate) jobs: Vec<PumpJob>,
    pub(crate) settings: SideSettings,
    pub(crate) caveats: Vec<Caveat>,
}

/// Rejects setups that cannot work.
pub(crate) fn check(setup: &FlowSetup, sockets: &Sockets) -> Result<(), EngineError> {
    if sockets.is_empty() {
        return Err(EngineError::NoSockets);
    }
    let (length, needed) = (setup.datagram_length(), setup.stamp.length);
    if matches!(sockets, Sockets::Udp(_)) && length < needed {
        return Err(EngineError::DatagramTooShort { length, needed });
    }
    Ok(())
}

/// Sets the required options on every socket before a pump uses it. Returns, for a receiver of datagrams,
/// whether the kernel may merge them (GRO).
pub(crate) fn sockets(flow: &FlowSide) -> Result<Option<bool>, SockError> {
    if let Some(transactions) = &flow.setup.transactions {
        return transactions::prepare(flow, transactions).map(|()| None);
    }
    let mut merging = None;
    match &flow.sockets {
        Sockets::Tcp(streams) => {
            for socket in streams {
                if flow.plan.shared() {
                    epoll::prepare(socket)?;
                } else {
                    stream::prepare(socket, flow.control.max_wait())?;
                }
            }
        }
        Sockets::Udp(sockets) if flow.writes() => {
            for socket in sockets {
                datagram_send::prepare(socket, flow.control.max_wait())?;
            }
        }
        Sockets::Udp(sockets) => {
            for socket in sockets {
                merging = Some(datagram_recv::prepare(flow, socket)? && merging.unwrap_or(true));
            }
        }
    }
    let exact = flow.setup.fq_rate.map(|rate| (rate.bps() / 8.0) as u64);
    let smooths = flow.sockets.tcp(0).is_some() && !flow.setup.lent && flow.setup.pacing_tick.is_none();
    let smooth = flow.setup.offered.filter(|_| smooths).map(pacer::smoothing_rate);
    if let Some(rate) = exact.or(smooth).filter(|_| flow.writes()) {
        for socket in flow.sockets.iter() {
            sockopt::set_max_pacing_rate(&socket, rate)?;
        }
    }
    Ok(merging)
}

/// Allocates what the pumps need and reads the effective socket settings back.
pub(crate) fn jobs(flow: &FlowSide) -> Result<Prepared, SockError> {
    let mut settings = settings::read(flow);
    let mut caveats = Vec::from_iter(caveats::clamped_buffer(flow, &settings));
    if flow.writes() {
        caveats.extend(caveats::ineffective(&settings));
    }
    let mut jobs = Vec::with_capacity(flow.plan.pumps);
    let (method, mut refused) = send_method(flow);
    for _ in 0..flow.plan.pumps {
        jobs.push(match PumpJob::prepare(flow, method) {
            Err(error) if flow.writes() && method != SendMethod::Copy => {
                refused = Some(format!("{error}: {}", error.source));
                PumpJob::write(flow, Feed::copying(flow)?)
            }
            other => other?,
        });
    }
    if let Some(PumpJob::Datagrams(parcel)) = jobs.first() {
        settings.datagrams_per_call = Some(parcel.per_call());
    }
    caveats.extend(caveats::cannot_spin(flow));
    if let Some(asked) = settings.io.asked.as_deref().filter(|_| flow.writes()) {
        let used = if refused.is_some() { SendMethod::Copy } else { method };
        caveats.extend(refused.map(|why| caveats::send_method_refused(asked, &why)));
        settings.io.effective = Some(used.name().into());
    }
    Ok(Prepared { jobs, settings, caveats })
}

/// Whether the way to the peer begins with an interface on which copying is at least as fast: without segmentation, each
/// packet is cut from the references one by one; and a packet of BIG TCP has room for fewer references than bytes.
fn prefers_copying(interface: &str) -> bool {
    let Ok(link) = iface::link(interface) else { return false };
    link.offloads.gso == Some(false) || link.largest_gso() > iface::USUAL_MAX_PACKET
}

/// The method that the sender uses, and why it copies if it could not find the fastest.
fn send_method(flow: &FlowSide) -> (SendMethod, Option<String>) {
    let knobs = &flow.setup.socket;
    if !flow.writes() || flow.sockets.tcp(0).is_none() {
        return (SendMethod::Copy, None);
    }
    let Some(may_copy) = knobs.chooses() else { return (knobs.io.unwrap_or(SendMethod::Copy), None) };
    if may_copy && flow.setup.interface.as_deref().is_some_and(prefers_copying) {
        return (SendMethod::Copy, None);
    }
    if let Some(known) = flow.setup.fastest_method {
        return (known, None);
    }
    match send_method::fastest(flow, may_copy) {
        Ok(method) => (method, None),
        Err(error) => (SendMethod::Copy, Some(format!("{error}: {}", error.source))),
    }
}
