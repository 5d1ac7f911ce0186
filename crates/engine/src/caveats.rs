//! What weakens the result of a side, found while it ran.

use linerate_model::{Caveat, CaveatKind, Side, SideSettings, Tally, Transport};
use linerate_units::{Bitrate, Bytes};

use crate::flow::Flow;
use crate::pump::datagram_recv::BUFFER;
use crate::sampler::Sampled;

fn caveat(kind: CaveatKind, text: String) -> Caveat {
    Caveat { kind, text }
}

/// The kernel copied although MSG_ZEROCOPY asked it not to.
pub(crate) fn zerocopy_copied() -> Caveat {
    let text = "zero-copy sending by msg had no effect: the kernel copied the bytes after all, as it does on \
                loopback and on interfaces without scatter-gather";
    caveat(CaveatKind::SettingIneffective, text.to_owned())
}

/// The pumps had to copy although a way without copying was asked for.
pub(crate) fn zerocopy_refused(asked: &str, why: &str) -> Caveat {
    let text = format!("zero-copy sending by {asked} was not possible ({why}); the sender copied");
    caveat(CaveatKind::SettingIneffective, text)
}

/// The kernel gave less buffer than was asked for, or than a receiver of datagrams needs.
pub(crate) fn clamped_buffer(flow: &Flow, settings: &SideSettings) -> Option<Caveat> {
    let own = (flow.sockets.udp(0).is_some() && !flow.writes()).then_some(Bytes::new(BUFFER));
    let asked = flow.setup.socket.window.or(own)?;
    clamped(asked, settings, flow.writes())
}

/// The kernel gave less buffer than was asked for, at an end of a stream that sends and receives.
#[must_use]
pub fn clamped_buffers(settings: &SideSettings) -> Vec<Caveat> {
    let asked = settings.window.into_iter();
    asked
        .flat_map(|asked| [true, false].into_iter().filter_map(move |sends| clamped(asked, settings, sends)))
        .collect()
}

fn clamped(asked: Bytes, settings: &SideSettings, sends: bool) -> Option<Caveat> {
    let (granted, kind, name, sysctl) = if sends {
        (settings.snd_buf?, CaveatKind::SndBufClamped, "send", "net.core.wmem_max")
    } else {
        (settings.rcv_buf?, CaveatKind::RcvBufClamped, "receive", "net.core.rmem_max")
    };
    // The kernel doubles what it grants, to make room for its own bookkeeping.
    (granted.get() < asked.get().saturating_mul(2)).then(|| {
        let got = Bytes::new(granted.get() / 2);
        let text =
            format!("the kernel gave {got} of {asked} asked as {name} buffer; raise {sysctl} on this host");
        caveat(kind, text)
    })
}

/// What is known once every thread has ended.
pub(crate) fn at_end(flow: &Flow, tally: &Tally, sampled: &Sampled, unpinned: bool) -> Vec<Caveat> {
    let mut found = Vec::new();
    let setup = &flow.setup;
    if setup.side == Side::Receiver && setup.socket.skip_rx_copy && setup.transport != Transport::Udp {
        let text = "the receiving kernel discarded the bytes (MSG_TRUNC) instead of copying them to the program: this \
                    measures the stack and is no full transfer";
        found.push(caveat(CaveatKind::RxCopySkipped, text.to_owned()));
    }
    if let Some(cpu) = setup.affinity.filter(|_| unpinned) {
        let text =
            format!("CPU {cpu} is not there or not allowed: the data threads ran on any CPU; see --affinity");
        found.push(caveat(CaveatKind::SettingIneffective, text));
    }
    if let Some(late) = sampled.late {
        let text = format!(
            "the interval sampler was up to {late} late: this host was paused or overloaded, and single intervals are \
             not reliable"
        );
        found.push(caveat(CaveatKind::TimerLate, text));
    }
    if let Some(step) = sampled.stepped_ns {
        let text = format!(
            "the wall clock of this host jumped by {:+.3} s during the flow; rates use the monotonic clock and are not \
             affected, times of day are",
            step as f64 / 1e9
        );
        found.push(caveat(CaveatKind::ClockStepped, text));
    }
    found.extend(missed_pace(flow, tally));
    found.extend(receiver_drops(tally));
    found
}

/// A datagram sender that offered less than 99 % of what was asked.
fn missed_pace(flow: &Flow, tally: &Tally) -> Option<Caveat> {
    let udp = tally.udp.as_ref().filter(|_| flow.writes())?;
    let asked = flow.setup.offered?.bps() * flow.plan.streams as f64;
    let offered = tally.bitrate.bps();
    (udp.packets > 1 && offered < 0.99 * asked).then(|| {
        let text = format!(
            "the sender offered {} of {} asked ({:.1} %): this host or its link could not keep the pace; ask for less or for larger \
             datagrams (-l)",
            tally.bitrate,
            Bitrate::from_bps(asked).unwrap_or_default(),
            offered / asked * 100.0
        );
        caveat(CaveatKind::PacingMissed, text)
    })
}

/// Datagrams that reached the receiving host and not its program.
fn receiver_drops(tally: &Tally) -> Option<Caveat> {
    let drops = tally.udp.as_ref()?.socket_drops.filter(|&drops| drops > 0)?;
    let text = format!(
        "{drops} datagrams reached this host and were dropped at the socket because the program was too slow or the \
         receive buffer too small; they are in the loss and the network did not lose them"
    );
    Some(caveat(CaveatKind::ReceiverDrops, text))
}
