//! Work before the first thread starts: checks, socket options, buffers.

use linerate_model::{Caveat, SendMethod, SideSettings};
use linerate_sock::departure::DepartureClock;
use linerate_sock::{SockError, iface, sockopt};

use crate::caveats;
use crate::error::EngineError;
use crate::flow::FlowSide;
use crate::pacer;
use crate::pump::feed::ZEROCOPY_CALL_BYTES;
use crate::pump::{PumpJob, datagram_recv, datagram_send, departures, epoll, stream, transactions};
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
    if !setup.channels.is_empty() && setup.channels.len() != sockets.len() {
        return Err(EngineError::Channels { channels: setup.channels.len(), streams: sockets.len() });
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
                } else if !flow.setup.channels.is_empty() {
                    linerate_sock::stream::set_nonblocking(socket, true)?;
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
    let smooths = flow.sockets.tcp(0).is_some() && !flow.setup.borrowed && flow.setup.pacing_tick.is_none();
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
    let (method, caveat) = send_method(flow);
    let clock = departures::clock(flow);
    if flow.setup.txtime.is_some() && flow.writes() {
        settings.txtime.effective = Some(matches!(clock, Ok(Some(_))));
    }
    let (jobs, refused) = pump_jobs(flow, method, clock.as_ref().copied().unwrap_or_default())?;
    caveats.extend(clock.err().map(|why| caveats::no_departure_times(&why)));
    if let Some(PumpJob::Datagrams(datagrams)) = jobs.first() {
        settings.datagrams_per_call = Some(datagrams.per_call());
    }
    caveats.extend(caveats::cannot_spin(flow));
    if let Some(asked) = settings.io.asked.as_deref().filter(|_| flow.writes()) {
        let used = if refused.is_some() { SendMethod::Copy } else { method };
        if let Some(why) = refused.or(caveat) {
            caveats.push(caveats::other_send_method(asked, used.name(), &why));
        }
        settings.io.effective = Some(used.name().into());
    }
    caveats.extend(caveats::not_polling(&settings));
    if flow.setup.socket.quick_ack
        && flow.sockets.tcp(0).is_some_and(|socket| sockopt::set_quick_ack(socket, true).is_err())
    {
        caveats.push(caveats::no_quick_ack());
    }
    Ok(Prepared { jobs, settings, caveats })
}

/// The job of each pump. If one cannot use the method, all copy, and the reason is returned.
fn pump_jobs(
    flow: &FlowSide,
    method: SendMethod,
    clock: Option<DepartureClock>,
) -> Result<(Vec<PumpJob>, Option<String>), SockError> {
    let each =
        |method| (0..flow.plan.pumps).map(move |pump| PumpJob::prepare(flow, pump, method, clock)).collect();
    match each(method) {
        Err(error) if flow.writes() && method != SendMethod::Copy => {
            let error: SockError = error;
            let copying: Result<Vec<_>, _> = each(SendMethod::Copy);
            Ok((copying?, Some(format!("{error}: {}", error.source))))
        }
        jobs => Ok((jobs?, None)),
    }
}

/// The method that the sender uses, and why it may not be the requested or the best one.
fn send_method(flow: &FlowSide) -> (SendMethod, Option<String>) {
    let (setup, knobs) = (&flow.setup, &flow.setup.socket);
    if !flow.writes() || flow.sockets.tcp(0).is_none() || !setup.channels.is_empty() {
        return (SendMethod::Copy, None);
    }
    let chooses = knobs.chooses();
    let named = knobs.io.filter(|_| chooses.is_none()).unwrap_or(SendMethod::Copy);
    let short = !setup.borrowed && setup.offered.is_some_and(|rate| flow.chunk(rate) < ZEROCOPY_CALL_BYTES);
    if short && (chooses == Some(false) || matches!(named, SendMethod::Splice | SendMethod::Sendfile)) {
        let why = "at this rate a call passes less than 256 KiB, which is copied";
        return (SendMethod::Copy, Some(why.to_owned()));
    }
    let Some(may_copy) = chooses else { return (named, None) };
    let short = short || setup.length.is_some_and(|length| length.get() < ZEROCOPY_CALL_BYTES as u64);
    if may_copy && (short || prefers_copying(flow)) {
        return (SendMethod::Copy, None);
    }
    if let Some(known) = setup.fastest_method {
        return (known, None);
    }
    match send_method::fastest(flow, may_copy) {
        Ok(method) => (method, None),
        Err(error) => {
            let why = format!("the methods could not be compared: {error}: {}", error.source);
            (SendMethod::candidates(may_copy)[0], Some(why))
        }
    }
}

/// Whether the way to the peer begins with an interface on which copying is at least as fast: without segmentation, each
/// packet is cut from the references one by one; and a packet of BIG TCP has room for fewer references than bytes.
fn prefers_copying(flow: &FlowSide) -> bool {
    let link = flow.setup.interface.as_deref().and_then(|name| iface::link(name).ok());
    let v4 = flow.sockets.addresses().0.is_some_and(|address| address.ip().to_canonical().is_ipv4());
    link.is_some_and(|link| {
        let largest = if v4 { link.gso_ipv4_max_bytes } else { link.gso_max_bytes };
        link.offloads.gso == Some(false) || largest.is_some_and(|bytes| bytes > iface::USUAL_MAX_PACKET)
    })
}
