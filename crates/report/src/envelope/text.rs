//! The envelope for a terminal.

mod questions;
#[cfg(test)]
mod tests;

use linerate_model::{Ceiling, Limit};
use linerate_theory::envelope::{Acknowledgements, Congestion, Envelope, EnvelopeAnswer, LossModels};
use linerate_units::{Bitrate, Bytes, Ratio, Span};

use super::sheet::{BINDING, BINDS, Sheet, Shown};
use crate::page::{Page, TextStyle};

/// The loss above which models without timeouts do not apply.
const MAX_MODEL_LOSS: f64 = 0.02;

/// The whole answer, or several that are merged to ranges.
#[must_use]
pub fn text(mut page: Page, answers: &[EnvelopeAnswer]) -> String {
    let sheets: Vec<Sheet> = answers.iter().map(sheet).collect();
    let Some(first) = answers.first() else { return page.into_text() };
    page.remark(0, TextStyle::Plain, &described(first, answers));
    Sheet::merged(&sheets).onto(&mut page);
    if answers.len() > 1 {
        page.heading("Ranges");
        let all = format!(
            "Ranges of values: computed from {} combinations of the ends of the given ranges.",
            answers.len()
        );
        page.remark(2, TextStyle::Plain, &all);
    }
    page.into_text()
}

fn sheet(answer: &EnvelopeAnswer) -> Sheet {
    let envelope = &answer.envelope;
    let mut page = Sheet::default();
    ceilings(&mut page, envelope);
    rates(&mut page, envelope);
    answer.acknowledgements.iter().for_each(|found| acknowledgements(&mut page, found));
    windows(&mut page, envelope);
    start(&mut page, envelope);
    loss(&mut page, envelope);
    questions::asked(&mut page, answer);
    if !answer.has_rtt && !envelope.path.udp {
        page.heading("Not asked");
        page.remark(
            2,
            "Windows, slow start and loss depend on the round trip: give it, for example with \
                        --rtt 20ms.",
        );
    }
    page
}

/// The path in one line.
fn described(first: &EnvelopeAnswer, answers: &[EnvelopeAnswer]) -> String {
    let over = |value: fn(&EnvelopeAnswer) -> Shown| Shown::over(answers.iter().map(value));
    let path = &first.envelope.path;
    let mut parts = vec![format!("Link of {}", over(|answer| rate(answer.envelope.path.link_bps)))];
    let round = over(|answer| time(answer.envelope.path.rtt_s));
    parts.extend(first.has_rtt.then(|| format!("round trip {round}")));
    parts.push(match (path.udp, path.streams) {
        (true, 1) => "one UDP flow".to_owned(),
        (true, streams) => format!("{streams} UDP flows"),
        (false, 1) => format!("one connection with {}", path.congestion.name()),
        (false, streams) => format!("{streams} connections with {}", path.congestion.name()),
    });
    format!("{}.", parts.join(", "))
}

fn ceilings(page: &mut Sheet, envelope: &Envelope) {
    page.heading("Ceilings, lowest first");
    for ceiling in &envelope.ceilings {
        let binds = *ceiling == envelope.binding;
        let name = format!("{}{}", if binds { BINDS } else { "  " }, ceiling.limit.words());
        let because = if binds && envelope.ceilings.len() > 1 {
            format!("{}{BINDING}", ceiling.because)
        } else {
            ceiling.because.to_string()
        };
        let ink = if binds { TextStyle::Good } else { TextStyle::Plain };
        page.marked(ink, &name, rate(ceiling.bitrate_bps), &because);
    }
    if let Some(next) = &envelope.after_remedy {
        let if_not = match &envelope.binding.limit {
            Limit::Application => "If more were offered".to_owned(),
            limit => format!("Without the {}", limit.words()),
        };
        let sentence = format!("{if_not} the limit would be {}: {}.", rate(next.bitrate_bps), reason(next));
        page.remark(2, &sentence);
    }
}

fn reason(ceiling: &Ceiling) -> String {
    format!("{}, {}", ceiling.limit.words(), ceiling.because)
}

fn rates(page: &mut Sheet, envelope: &Envelope) {
    let (rates, frames) = (&envelope.rates, &envelope.frames);
    page.heading("The full link, by layer");
    let whole = |bytes: f64| format!("{bytes:.0} B");
    page.row("L1 wire", rate(rates.wire_bps), &format!("{} with preamble and gap", whole(frames.wire_bytes)));
    page.row("L2 frames", rate(rates.frame_bps), &format!("{} with FCS", whole(frames.frame_bytes)));
    page.row("L3 packets", rate(rates.packet_bps), &whole(frames.packet_bytes));
    page.row("L4 payload", rate(rates.payload_bps), &whole(frames.payload_bytes));
    let interval = format!(
        "one every {}, with an idle gap of {} between frames",
        time(frames.interval_s),
        time(frames.gap_s)
    );
    page.row("frames per second", number(frames.per_second, 0), &interval);
}

fn acknowledgements(page: &mut Sheet, found: &Acknowledgements) {
    let rate_of = "per second, one per two segments; kernels that merge received segments send fewer";
    page.row("acknowledgements", number(found.per_second, 0), rate_of);
    page.row("reverse path", rate(found.bitrate_bps), "at most for acknowledgements, L1");
    let both = "payload in each direction when both directions are full";
    found.both_ways_bps.iter().for_each(|bps| page.row("both ways", rate(*bps), both));
}

fn windows(page: &mut Sheet, envelope: &Envelope) {
    let Some(needs) = &envelope.needs else { return };
    page.heading("Windows to fill it");
    let exact = |bytes: f64| format!("{:.0} B", bytes.ceil());
    page.row("BDP on the wire", size(needs.bdp_wire_bytes), &exact(needs.bdp_wire_bytes));
    page.row("BDP of payload", size(needs.bdp_payload_bytes), &exact(needs.bdp_payload_bytes));
    let each = if envelope.path.streams > 1 { " for each connection" } else { "" };
    let room = format!("{}{each}, including room for bursts of acknowledgements", exact(needs.window_bytes));
    page.row("window", size(needs.window_bytes), &room);
    match needs.window_shift {
        Some(shift) => {
            page.row("window shift", number(f64::from(shift), 0), "of both ends, fixed at connection setup")
        }
        None => page.row(
            "window shift",
            Shown::new(f64::INFINITY, "none"),
            "TCP windows cannot be that large: use more streams",
        ),
    }
    let command =
        |name: &str, end: &str, bytes: f64| format!("last value of {name} at the {end}: {:.0}", bytes.ceil());
    page.row(
        "receive buffer",
        size(needs.rmem_bytes),
        &command("net.ipv4.tcp_rmem", "receiver", needs.rmem_bytes),
    );
    page.row(
        "send buffer",
        size(needs.wmem_bytes),
        &command("net.ipv4.tcp_wmem", "sender", needs.wmem_bytes),
    );
}

fn start(page: &mut Sheet, envelope: &Envelope) {
    let Some(startup) = &envelope.startup else { return };
    page.heading("Slow start");
    page.row("to", rate(envelope.binding.bitrate_bps), "what binds");
    let rounds = format!("{:.0} round trips, from 10 segments", startup.rounds);
    page.row("duration", time(startup.duration_s), &rounds);
    page.row("time lost", time(startup.lost_s), "compared with the full rate from the start");
    page.row("to be omitted", time(startup.omit_s), "-O, so that the result is the steady rate");
    let length = "-t, with which slow start costs 1 % if nothing is omitted";
    page.row("test length", time(startup.length_for_one_percent_s), length);
}

fn loss(page: &mut Sheet, envelope: &Envelope) {
    let Some(budget) = &envelope.loss else { return };
    let congestion = envelope.path.congestion;
    page.heading("Loss");
    let between = if budget.allowed >= MAX_MODEL_LOSS && congestion != Congestion::Bbr {
        format!("or more: the full link needs a few segments in flight, with {}", congestion.name())
    } else {
        format!("one in {:.0} packets, for the full link with {}", budget.packets_between, congestion.name())
    };
    page.row("loss allowed", share(budget.allowed), &between);
    let marked = |control: Congestion, text: &str| {
        if control == congestion { format!("{text} (this one)") } else { text.to_owned() }
    };
    let reno = marked(Congestion::Reno, "until the rate recovers from one loss, without a buffer");
    page.row("recovery of reno", time(budget.reno_recovery_s), &reno);
    page.row("recovery of cubic", time(budget.cubic_recovery_s), &marked(Congestion::Cubic, "the same"));
    match budget.buffer_bytes {
        Some(bytes) => page.row(
            "buffer",
            size(bytes),
            "in front of the link, which keeps the link full during \
                                             recovery from one loss",
        ),
        None => page.row(
            "recovery of bbr",
            Shown::new(f64::INFINITY, "none"),
            "not applicable: bbr does not react to a single loss",
        ),
    }
    if let Some(found) = &envelope.loss_models {
        models(page, envelope, found);
    }
}

fn models(page: &mut Sheet, envelope: &Envelope, models: &LossModels) {
    let given = envelope.path.loss.map_or_else(String::new, |loss| share(loss).to_string());
    let model = |page: &mut Sheet, name: &str, bps: Option<f64>, text: &str| {
        let Some(bps) = bps else { return };
        let used = if envelope.path.congestion == Congestion::Bbr { "; not applicable to bbr" } else { "" };
        // Loss models do not know the link rate.
        let more = if bps > envelope.rates.payload_bps { ", more than the link carries" } else { "" };
        page.row(name, rate(bps), &format!("{text} at a loss of {given}{more}{used}"));
    };
    model(page, "Mathis", models.mathis_bps, "one connection of reno");
    model(page, "PFTK", models.pftk_bps, "the same with delayed acknowledgements and timeouts");
    model(page, "CUBIC", models.cubic_bps, "one connection of cubic");
    if models.mathis_bps.is_none() {
        page.remark(
            2,
            "The models of Mathis and CUBIC do not include timeouts, which dominate above 2 % \
                        loss.",
        );
    }
}

/// A bit rate.
pub(super) fn rate(bps: f64) -> Shown {
    let text = match Bitrate::from_bps(bps) {
        // Rounded to whole bits, the layers of a slow link would look the same.
        Some(_) if bps > 0.0 && bps < 1000.0 => format!("{} b/s", four_digits(bps)),
        Some(rate) => rate.to_string(),
        None => "-".to_owned(),
    };
    Shown::new(bps, text)
}

/// A time.
pub(super) fn time(seconds: f64) -> Shown {
    let text = match Span::from_secs_f64(seconds) {
        // On a fast link, the gap between frames is shorter than a nanosecond.
        Some(_) if seconds > 0.0 && seconds < 100e-9 => match seconds {
            of if of < 1e-12 => format!("{} fs", four_digits(of * 1e15)),
            of if of < 1e-9 => format!("{} ps", four_digits(of * 1e12)),
            of => format!("{} ns", four_digits(of * 1e9)),
        },
        Some(span) => span.to_string(),
        None => "centuries".to_owned(),
    };
    Shown::new(seconds, text)
}

/// A number below a thousand with four digits, without trailing zeros.
fn four_digits(value: f64) -> String {
    let whole = value.max(f64::MIN_POSITIVE).log10().floor().max(-9.0);
    let text = format!("{value:.*}", (3.0 - whole).max(0.0) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A number of bytes.
pub(super) fn size(bytes: f64) -> Shown {
    Shown::new(bytes, Bytes::new(bytes.ceil() as u64).to_string())
}

/// A ratio.
pub(super) fn share(ratio: f64) -> Shown {
    Shown::new(ratio, Ratio::new(ratio).map_or_else(|| "-".to_owned(), |ratio| ratio.to_string()))
}

/// A plain number.
pub(super) fn number(value: f64, decimals: usize) -> Shown {
    Shown::new(value, format!("{value:.decimals$}"))
}
