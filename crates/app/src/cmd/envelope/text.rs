//! The envelope for a terminal.

use linerate_model::Ceiling;
use linerate_theory::envelope::{Congestion, Envelope, LossModels};
use linerate_units::{Bitrate, Bytes, Ratio, Span};

use super::super::page::{Ink, Page};
use super::answer::{Answer, Burst, Offered, Transfer};

/// Columns of the name and of the value.
const WIDTHS: [usize; 3] = [0, 22, 12];

/// The whole answer.
pub(super) fn text(mut page: Page, answer: &Answer) -> String {
    let envelope = &answer.envelope;
    page.remark(0, Ink::Plain, &described(answer));
    ladder(&mut page, envelope);
    rates(&mut page, envelope);
    windows(&mut page, envelope);
    start(&mut page, envelope);
    loss(&mut page, envelope);
    if answer.transfer.is_some() || answer.offered.is_some() || answer.burst.is_some() {
        page.heading("Asked");
        answer.transfer.iter().for_each(|asked| transfer(&mut page, asked));
        answer.offered.iter().for_each(|asked| offered(&mut page, envelope.path.udp, asked));
        answer.burst.iter().for_each(|asked| burst(&mut page, asked));
    }
    if !answer.has_rtt && !envelope.path.udp {
        page.heading("Not asked");
        page.remark(
            2,
            Ink::Plain,
            "Windows, slow start and loss follow from the round trip: give --rtt, as --rtt 20ms.",
        );
    }
    page.into_text()
}

/// The path in a line.
fn described(answer: &Answer) -> String {
    let path = &answer.envelope.path;
    let mut parts = vec![format!("Link of {}", rate(path.link_bps))];
    parts.extend(answer.has_rtt.then(|| format!("round trip {}", time(path.rtt_s))));
    parts.push(match (path.udp, path.streams) {
        (true, 1) => "one flow of UDP".to_owned(),
        (true, streams) => format!("{streams} flows of UDP"),
        (false, 1) => format!("one connection with {}", path.congestion.name()),
        (false, streams) => format!("{streams} connections with {}", path.congestion.name()),
    });
    format!("{}.", parts.join(", "))
}

/// A name, a value, and what there is to say about it.
fn row(page: &mut Page, name: &str, value: &str, note: &str) {
    page.row(&[(Ink::Plain, ""), (Ink::Plain, name), (Ink::Strong, value), (Ink::Faint, note)], &WIDTHS);
}

fn ladder(page: &mut Page, envelope: &Envelope) {
    page.heading("Ceilings, lowest first");
    for ceiling in &envelope.ceilings {
        let binds = *ceiling == envelope.binding;
        let name = format!("{} {}", if binds { ">" } else { " " }, words(&ceiling.limit));
        let because = if binds && envelope.ceilings.len() > 1 {
            format!("{} (binds)", ceiling.because)
        } else {
            ceiling.because.clone()
        };
        let ink = if binds { Ink::Good } else { Ink::Plain };
        let value = rate(ceiling.bitrate_bps);
        page.row(&[(Ink::Plain, ""), (ink, &name), (Ink::Strong, &value), (Ink::Faint, &because)], &WIDTHS);
    }
    if let Some(next) = &envelope.after_remedy {
        let if_not = match envelope.binding.limit.as_str() {
            "application" => "If more were offered".to_owned(),
            limit => format!("Without the {}", words(limit)),
        };
        let sentence = format!("{if_not} it would be {}: {}.", rate(next.bitrate_bps), reason(next));
        page.remark(2, Ink::Plain, &sentence);
    }
}

fn reason(ceiling: &Ceiling) -> String {
    format!("{}, {}", words(&ceiling.limit), ceiling.because)
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn rates(page: &mut Page, envelope: &Envelope) {
    let (rates, frames) = (&envelope.rates, &envelope.frames);
    page.heading("The full link, by layer");
    let whole = |bytes: f64| format!("{bytes:.0} B");
    row(
        page,
        "L1 wire",
        &rate(rates.wire_bps),
        &format!("{} with preamble and gap", whole(frames.wire_bytes)),
    );
    row(page, "L2 frames", &rate(rates.frame_bps), &format!("{} with FCS", whole(frames.frame_bytes)));
    row(page, "L3 packets", &rate(rates.packet_bps), &whole(frames.packet_bytes));
    row(page, "L4 payload", &rate(rates.payload_bps), &whole(frames.payload_bytes));
    let interval =
        format!("one every {}, {} of silence between", time(frames.interval_s), time(frames.gap_s));
    row(page, "frames per second", &format!("{:.0}", frames.per_second), &interval);
}

fn windows(page: &mut Page, envelope: &Envelope) {
    let Some(needs) = &envelope.needs else { return };
    page.heading("Windows to fill it");
    let exact = |bytes: f64| format!("{:.0} B", bytes.ceil());
    row(page, "BDP on the wire", &size(needs.bdp_wire_bytes), &exact(needs.bdp_wire_bytes));
    row(page, "BDP of payload", &size(needs.bdp_payload_bytes), &exact(needs.bdp_payload_bytes));
    let each = if envelope.path.streams > 1 { " for each connection" } else { "" };
    let room = format!("{}{each}, with room for bursts of acknowledgements", exact(needs.window_bytes));
    row(page, "window", &size(needs.window_bytes), &room);
    match needs.window_shift {
        Some(shift) => row(page, "window shift", &shift.to_string(), "of both ends, fixed when they connect"),
        None => row(page, "window shift", "none", "no TCP window is that large: use more streams"),
    }
    let command = |name: &str, end: &str, bytes: f64| {
        format!("last number of {name} of the {end}: {:.0}", bytes.ceil())
    };
    row(
        page,
        "receive buffer",
        &size(needs.rmem_bytes),
        &command("net.ipv4.tcp_rmem", "receiver", needs.rmem_bytes),
    );
    row(
        page,
        "send buffer",
        &size(needs.wmem_bytes),
        &command("net.ipv4.tcp_wmem", "sender", needs.wmem_bytes),
    );
}

fn start(page: &mut Page, envelope: &Envelope) {
    let Some(startup) = &envelope.startup else { return };
    page.heading(&format!("Slow start to {}", rate(envelope.binding.bitrate_bps)));
    let rounds = format!("{:.0} round trips, from 10 segments", startup.rounds);
    row(page, "duration", &time(startup.duration_s), &rounds);
    row(page, "time lost", &time(startup.lost_s), "against the full rate from the first moment");
    row(page, "to be omitted", &time(startup.omit_s), "-O, so that the result is the steady rate");
    let length = "-t, for which slow start costs 1 % when nothing is omitted";
    row(page, "test length", &time(startup.length_for_one_percent_s), length);
}

fn loss(page: &mut Page, envelope: &Envelope) {
    let Some(budget) = &envelope.loss else { return };
    let congestion = envelope.path.congestion;
    page.heading("Loss");
    let between =
        format!("one in {:.0} packets, for the full link with {}", budget.packets_between, congestion.name());
    row(page, "loss allowed", &share(budget.allowed), &between);
    let marked = |control: Congestion, text: &str| {
        if control == congestion { format!("{text} (this one)") } else { text.to_owned() }
    };
    let reno = marked(Congestion::Reno, "until the full rate is back after one loss, without a buffer");
    row(page, "recovery of reno", &time(budget.reno_recovery_s), &reno);
    row(page, "recovery of cubic", &time(budget.cubic_recovery_s), &marked(Congestion::Cubic, "the same"));
    match budget.buffer_bytes {
        Some(bytes) => {
            row(page, "buffer", &size(bytes), "before the link, which keeps it full through one loss")
        }
        None => row(page, "recovery of bbr", "none", "not applicable: it does not answer to a single loss"),
    }
    if let Some(found) = &envelope.loss_models {
        models(page, envelope, found);
    }
}

fn models(page: &mut Page, envelope: &Envelope, models: &LossModels) {
    let given = envelope.path.loss.map_or_else(String::new, share);
    let model = |page: &mut Page, name: &str, bps: Option<f64>, text: &str| {
        let Some(bps) = bps else { return };
        let used = if envelope.path.congestion == Congestion::Bbr { "; not applicable to bbr" } else { "" };
        row(page, name, &rate(bps), &format!("{text} at a loss of {given}{used}"));
    };
    model(page, "Mathis", models.mathis_bps, "one connection of reno");
    model(page, "PFTK", models.pftk_bps, "the same with delayed acknowledgements and timeouts");
    model(page, "CUBIC", models.cubic_bps, "one connection of cubic");
}

fn transfer(page: &mut Page, asked: &Transfer) {
    let what = Bytes::new(asked.bytes);
    let at_best = format!("{what} at the rate of the full link");
    let with_start = format!("{what} with slow start, then at the rate that binds");
    asked.ideal_s.iter().for_each(|seconds| row(page, "ideal transfer", &time(*seconds), &at_best));
    asked.expected_s.iter().for_each(|seconds| row(page, "transfer", &time(*seconds), &with_start));
}

fn offered(page: &mut Page, udp: bool, asked: &Offered) {
    let part = asked.share.zip(asked.carried_bps);
    let part = part.map_or_else(String::new, |(part, carried)| {
        format!("{} of the {} that fit", share(part), rate(carried))
    });
    row(page, "offered", &rate(asked.bitrate_bps), &part);
    let Some(excess) = asked.excess_ratio.filter(|excess| *excess > 0.0) else { return };
    let fate = if udp { "lost, or kept back by the sender's own link" } else { "waits at the sender" };
    row(page, "too much", &share(excess), fate);
}

fn burst(page: &mut Page, asked: &Burst) {
    let Some((queue, delay)) = asked.queue_bytes.zip(asked.delay_s) else { return };
    let what = format!(
        "of {} that arrive at {}; the last byte waits {}",
        Bytes::new(asked.bytes),
        rate(asked.arriving_bps),
        time(delay)
    );
    row(page, "queue of the burst", &size(queue), &what);
}

fn rate(bps: f64) -> String {
    Bitrate::from_bps(bps).map_or_else(|| "-".to_owned(), |rate| rate.to_string())
}

fn time(seconds: f64) -> String {
    Span::from_secs_f64(seconds).map_or_else(|| "centuries".to_owned(), |span| span.to_string())
}

fn size(bytes: f64) -> String {
    Bytes::new(bytes.ceil() as u64).to_string()
}

fn share(ratio: f64) -> String {
    Ratio::new(ratio).map_or_else(|| "-".to_owned(), |ratio| ratio.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::tests::typed;
    use super::*;

    fn page(line: &str) -> String {
        let args = typed(line);
        text(Page::new(80, false), &Answer::to(&args, &super::super::path(&args)).unwrap())
    }

    #[test]
    fn the_binding_ceiling_is_marked_and_what_follows_it_named() {
        let page = page("--link 1G --rtt 21ms --window 65535 --loss 1e-6 -C reno");
        assert!(page.contains("> receiver window       24.97 Mb/s"), "{page}");
        assert!(page.contains("Without the receiver window it would be 675.6 Mb/s"), "{page}");
        assert_eq!(page.matches('>').count(), 1);
    }

    #[test]
    fn bbr_has_no_loss_ceiling_and_says_so() {
        let page = page("--link 1G --rtt 21ms --loss 1e-4 -C bbr");
        assert!(page.contains("not applicable"), "{page}");
        assert!(page.contains("> link"), "{page}");
    }

    #[test]
    fn nothing_stands_beyond_eighty_columns() {
        for line in [
            "--link 1G",
            "--link 400G --rtt 300ms --loss 1e-9 -P 16 --rmem 6M --wmem 4M --transfer 1T --offered 1T",
            "--link 10M -u -l 18 --rtt 1h --burst 1G --burst-rate 1000T",
            "--link 1000T --rtt 1h --mtu 68 --transfer 16000000000G",
        ] {
            for shown in page(line).lines() {
                assert!(shown.chars().count() <= 80, "{line}: {shown}");
            }
        }
    }
}
