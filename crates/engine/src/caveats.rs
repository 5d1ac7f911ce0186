//! Caveats of one side: conditions found during the run that weaken its result.

use linerate_model::{Caveat, CaveatKind, Effective, Side, SideSettings, Tally, Transport};
use linerate_units::{Bitrate, Bytes, Span};

use crate::flow::FlowSide;
use crate::pump::datagram_recv::BUFFER;
use crate::sampler::Sampled;
use crate::transactions::TransactionCounts;

/// Largest share of due requests that may be left out without a caveat.
const MAX_UNSENT_SHARE: f64 = 0.01;

fn caveat(kind: CaveatKind, text: String) -> Caveat {
    Caveat { kind, text: text.into() }
}

/// The kernel copied although MSG_ZEROCOPY asked it not to.
pub(crate) fn zerocopy_copied() -> Caveat {
    let text = "sending with MSG_ZEROCOPY had no effect: the kernel copied the bytes, as it does on \
                loopback and on interfaces without scatter-gather";
    caveat(CaveatKind::SettingIneffective, text.to_owned())
}

/// The sender used another method than the requested one, or could not find out which is the best.
pub(crate) fn other_send_method(asked: &str, used: &str, why: &str) -> Caveat {
    let text = format!("the sender used {used} ({asked} was requested): {why}");
    caveat(CaveatKind::SettingIneffective, text)
}

/// Calls do not poll the device for as long as requested.
pub(crate) fn not_polling(settings: &SideSettings) -> Option<Caveat> {
    let (asked, got) = differs(&settings.busy_poll, |asked, got| asked != got)?;
    let text = format!(
        "waiting calls poll the device for {got} instead of the requested {asked}: raise net.core.busy_read, or give \
         the program CAP_NET_ADMIN"
    );
    Some(caveat(CaveatKind::SettingIneffective, text))
}

/// No queue keeps the departure times of datagrams, so that this program does.
pub(crate) fn no_departure_times(why: &str) -> Caveat {
    let text = format!("--txtime had no effect, and the program itself paced the datagrams: {why}");
    caveat(CaveatKind::SettingIneffective, text)
}

/// The kernel has no quick acknowledgements for this kind of connection.
pub(crate) fn no_quick_ack() -> Caveat {
    let text = "--quick-ack had no effect: the kernel refuses TCP_QUICKACK for these connections";
    caveat(CaveatKind::SettingIneffective, text.to_owned())
}

/// The kernel granted a smaller buffer than requested, or than a datagram receiver needs.
pub(crate) fn clamped_buffer(flow: &FlowSide, settings: &SideSettings) -> Option<Caveat> {
    // Of requests, few are under way.
    let streams = flow.sockets.udp(0).is_some() && !flow.writes() && flow.setup.transactions.is_none();
    let own = streams.then_some(Bytes::new(BUFFER));
    let asked = flow.setup.socket.window.or(own)?;
    clamped(asked, settings, flow.writes())
}

/// The kernel granted smaller buffers than requested, at an end that both sends and receives.
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
    // SO_SNDBUF and SO_RCVBUF read back twice the granted size: the kernel doubles it for its own bookkeeping
    // (socket(7)).
    (granted.get() < asked.get().saturating_mul(2)).then(|| {
        let got = Bytes::new(granted.get() / 2);
        let text = format!(
            "the kernel granted a {name} buffer of {got} instead of {asked}; raise {sysctl} on this \
                     host"
        );
        caveat(kind, text)
    })
}

/// Most bytes of TCP options in a segment (RFC 9293 §3.1). A requested MSS excludes them, the MSS read back
/// includes them.
const MOST_OPTIONS: u32 = 40;

/// Settings of a sender that the kernel accepted without an error and did not apply.
pub(crate) fn ineffective(settings: &SideSettings) -> Vec<Caveat> {
    let mss = differs(&settings.mss, |asked, got| !(*got..=got.saturating_add(MOST_OPTIONS)).contains(asked));
    let mss = mss.map(|(asked, got)| {
        let path = settings.pmtu.map(|pmtu| format!(", with a path MTU of {pmtu}")).unwrap_or_default();
        format!("segments carry {got} bytes instead of the requested {asked}{path}")
    });
    let tos = differs(&settings.tos, |asked, got| asked != got).map(|(asked, got)| {
        let ecn = if asked & 3 == got & 3 { "" } else { ": its last two bits are the ECN field" };
        format!("packets carry the type-of-service byte {got} instead of the requested {asked}{ecn}")
    });
    let congestion = differs(&settings.congestion, |asked, got| asked != got)
        .map(|(asked, got)| format!("the congestion control is {got} instead of the requested {asked}"));
    let fast_open = differs(&settings.fast_open, |asked, got| asked != got).map(|_| {
        "no data travelled with the SYN: TCP Fast Open needs net.ipv4.tcp_fastopen=3 on both hosts, and an earlier \
         connection between them"
            .to_owned()
    });
    let found = [mss, tos, congestion, fast_open].into_iter().flatten();
    found.map(|text| caveat(CaveatKind::SettingIneffective, text)).collect()
}

fn differs<T: Clone>(setting: &Effective<T>, wrong: impl Fn(&T, &T) -> bool) -> Option<(T, T)> {
    let (asked, effective) = (setting.asked.as_ref()?, setting.effective.as_ref()?);
    wrong(asked, effective).then(|| (asked.clone(), effective.clone()))
}

/// The sender exceeded SO_MAX_PACING_RATE: for UDP only the qdisc fq enforces it.
fn unpaced(flow: &FlowSide, tally: &Tally, settings: &SideSettings) -> Option<Caveat> {
    let pace = flow.setup.fq_rate.filter(|_| flow.writes() && flow.sockets.udp(0).is_some())?;
    let streams = flow.plan.streams as f64;
    // What the socket buffers take at once has not been paced yet.
    let buffers = settings.snd_buf.map_or(0.0, |bytes| bytes.get() as f64) * streams;
    let paced = pace.bps() * streams * tally.elapsed.as_secs_f64() / 8.0;
    (tally.bytes.get() as f64 > 1.05 * paced + buffers).then(|| {
        let text = format!(
            "--fq-rate {pace} had no effect: {} left this host. Only the queueing discipline fq (tc qdisc \
             replace dev INTERFACE root fq) or -b paces datagrams",
            tally.bitrate
        );
        caveat(CaveatKind::SettingIneffective, text)
    })
}

/// Everything arrived within the omitted time, so nothing is left to measure.
fn all_omitted(flow: &FlowSide, tally: &Tally) -> Option<Caveat> {
    let omitted = tally.omitted_bytes;
    let nothing = !flow.writes() && flow.setup.omit > Span::ZERO && tally.bytes.get() == 0;
    (nothing && omitted.get() > 0).then(|| {
        let text = format!(
            "-O {} left nothing to measure: all {omitted} arrived within that time; give a shorter -O, or \
             send more",
            flow.setup.omit
        );
        caveat(CaveatKind::Partial, text)
    })
}

/// Caveats that are known when every thread has ended. `pace` is the rate over whole slots of a sender at a rate.
pub(crate) fn at_end(
    flow: &FlowSide,
    tally: &Tally,
    pace: Option<Bitrate>,
    settings: &SideSettings,
    sampled: &Sampled,
    unpinned: bool,
) -> Vec<Caveat> {
    let mut found = Vec::new();
    found.extend(unpaced(flow, tally, settings));
    found.extend(all_omitted(flow, tally));
    let setup = &flow.setup;
    if setup.side == Side::Receiver && setup.socket.skip_rx_copy && setup.transport != Transport::Udp {
        let text = "the receiving kernel discarded the bytes (MSG_TRUNC) instead of copying them to the \
                    program: this measures the network stack, not a full transfer";
        found.push(caveat(CaveatKind::RxCopySkipped, text.to_owned()));
    }
    if let Some(cpu) = setup.affinity.filter(|_| unpinned) {
        let text = format!(
            "CPU {cpu} does not exist or is not allowed, so the data threads ran on any CPU; \
                     correct --affinity, or --server-affinity if this is the server"
        );
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
            "the wall clock of this host jumped by {:+.3} s during the flow; rates use the monotonic clock \
             and are not affected, but times of day are",
            step as f64 / 1e9
        );
        found.push(caveat(CaveatKind::ClockStepped, text));
    }
    found.extend(missed_pace(flow, tally, pace));
    found.extend(unsent_requests(flow));
    found.extend(receiver_drops(tally));
    found
}

/// Threads that should spin on a single core.
pub(crate) fn cannot_spin(flow: &FlowSide) -> Option<Caveat> {
    let asked =
        flow.setup.transactions.as_ref().filter(|transactions| transactions.spin && !transactions.spins());
    let text = "this host has a single core, on which --spin would keep the other end from running: its threads waited \
                in the kernel";
    asked.map(|_| caveat(CaveatKind::SettingIneffective, text.to_owned()))
}

/// Requests that were due at the requested rate and could not be sent before the end.
fn unsent_requests(flow: &FlowSide) -> Option<Caveat> {
    let counts = TransactionCounts::of(&flow.transactions);
    let due = counts.completed + counts.failed + counts.unsent;
    // The last requests may be due while the thread wakes up.
    let share = counts.unsent as f64 / due.max(1) as f64;
    (share > MAX_UNSENT_SHARE).then(|| {
        let text = format!(
            "{} of {due} requests that were due could not be sent in time, and are not in the result: the responses \
             or this host cannot keep up with --request-rate",
            counts.unsent
        );
        caveat(CaveatKind::PacingMissed, text)
    })
}

/// A datagram sender that offered less than 99 % of the requested rate.
fn missed_pace(flow: &FlowSide, tally: &Tally, pace: Option<Bitrate>) -> Option<Caveat> {
    let udp = tally.udp.as_ref().filter(|_| flow.writes())?;
    let asked = flow.setup.offered?.bps() * flow.plan.streams as f64;
    let offered = pace.unwrap_or(tally.bitrate);
    (udp.packets > 1 && offered.bps() < 0.99 * asked).then(|| {
        let text = format!(
            "the sender offered {offered} instead of the requested {} ({:.1} %): this host or its link is too \
             slow; request a lower rate or larger datagrams (-l)",
            Bitrate::from_bps(asked).unwrap_or_default(),
            offered.bps() / asked * 100.0
        );
        caveat(CaveatKind::PacingMissed, text)
    })
}

/// Datagrams that reached the receiving host but were dropped at its socket.
fn receiver_drops(tally: &Tally) -> Option<Caveat> {
    let drops = tally.udp.as_ref()?.socket_drops.filter(|&drops| drops > 0)?;
    let text = format!(
        "{drops} datagrams reached this host and were dropped at the socket because the program was too \
         slow or the receive buffer too small; they count as lost, although the network did not lose them"
    );
    Some(caveat(CaveatKind::ReceiverDrops, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts_of(settings: &SideSettings) -> Vec<String> {
        ineffective(settings).into_iter().map(|caveat| caveat.text.into_string()).collect()
    }

    #[test]
    fn a_setting_that_reads_back_otherwise_is_reported_to_have_no_effect() {
        let mut settings = SideSettings { pmtu: Some(1500), ..SideSettings::default() };
        // Timestamps take 12 bytes of a segment (RFC 7323), SACK and others up to 40 in all.
        settings.mss = Effective { asked: Some(1460), effective: Some(1448) };
        settings.tos = Effective { asked: Some(184), effective: Some(184) };
        settings.congestion = Effective { asked: Some("reno".into()), effective: Some("reno".into()) };
        assert_eq!(texts_of(&settings), Vec::<String>::new());
        settings.mss = Effective { asked: Some(8960), effective: Some(1448) };
        settings.tos = Effective { asked: Some(3), effective: Some(0) };
        settings.congestion.effective = Some("cubic".into());
        let texts = texts_of(&settings);
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[0].contains("8960") && texts[0].contains("path MTU of 1500"), "{}", texts[0]);
        assert!(texts[1].contains("ECN field"), "{}", texts[1]);
        // A segment larger than requested has no effect either.
        settings.mss = Effective { asked: Some(500), effective: Some(1448) };
        assert_eq!(texts_of(&settings).len(), 3);
    }

    #[test]
    fn what_was_not_requested_or_cannot_be_read_causes_no_caveat() {
        let settings = SideSettings {
            mss: Effective { asked: None, effective: Some(1448) },
            tos: Effective { asked: Some(184), effective: None },
            ..SideSettings::default()
        };
        assert!(ineffective(&settings).is_empty());
    }
}
