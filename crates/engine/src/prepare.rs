//! Work before the first thread starts: checks, socket options, buffers.

use linerate_model::{Caveat, SideSettings};
use linerate_sock::{SockError, sockopt};

use crate::caveats;
use crate::error::EngineError;
use crate::flow::FlowSide;
use crate::pacer;
use crate::pump::feed::Feed;
use crate::pump::{PumpJob, datagram_recv, datagram_send, epoll, stream, transactions};
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
    let smooths = flow.sockets.tcp(0).is_some() && !flow.setup.lent;
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
    let mut refused = None;
    for _ in 0..flow.plan.pumps {
        jobs.push(match PumpJob::prepare(flow) {
            Err(error) if flow.writes() && flow.setup.socket.zerocopy.is_some() => {
                refused = Some(format!("{error}: {}", error.source));
                PumpJob::write_one(flow, Feed::copying(flow)?)
            }
            other => other?,
        });
    }
    if let Some(PumpJob::Datagrams(parcel)) = jobs.first() {
        settings.datagrams_per_call = Some(parcel.per_call());
    }
    caveats.extend(caveats::cannot_spin(flow));
    if flow.plan.shared() {
        refused = Some(format!("{} streams share {} threads", flow.plan.streams, flow.plan.pumps));
    }
    if let Some(method) = flow.setup.socket.zerocopy.filter(|_| flow.writes()) {
        let asked = settings::name(method);
        settings.zerocopy.effective = Some(if refused.is_some() { "copy" } else { asked }.into());
        caveats.extend(refused.map(|why| caveats::zerocopy_refused(asked, &why)));
    }
    Ok(Prepared { jobs, settings, caveats })
}
