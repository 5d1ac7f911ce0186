//! Answers to the questions besides the ceilings.

use linerate_theory::envelope::{
    BurstAnswer, DeadlineAnswer, DistanceAnswer, EnvelopeAnswer, LagAnswer, OfferedAnswer, TargetAnswer,
    TransferAnswer,
};
use linerate_units::Bytes;

use super::super::sheet::{Sheet, Shown};
use super::{number, rate, share, size, time};

/// All answers.
pub(super) fn asked(page: &mut Sheet, answer: &EnvelopeAnswer) {
    let path = &answer.envelope.path;
    let any = answer.transfer.is_some() || answer.offered.is_some() || answer.burst.is_some();
    if any
        || answer.target.is_some()
        || answer.need.is_some()
        || answer.lag.is_some()
        || answer.distance.is_some()
    {
        page.heading("Asked");
    }
    answer.need.iter().for_each(|asked| need(page, asked));
    answer.target.iter().for_each(|asked| target(page, asked));
    answer.transfer.iter().for_each(|asked| transfer(page, asked));
    answer.offered.iter().for_each(|asked| offered(page, path.udp, asked));
    answer.burst.iter().for_each(|asked| burst(page, asked));
    answer.lag.iter().for_each(|asked| lag(page, path.streams, asked));
    answer.distance.iter().for_each(|asked| distance(page, asked));
}

fn need(page: &mut Sheet, asked: &DeadlineAnswer) {
    let what = format!("for {} in {}", Bytes::new(asked.bytes), time(asked.within_s));
    page.row("rate needed", rate(asked.required_bps), &what);
    let verdict = if asked.fits { "of the time: it fits" } else { "of the time: does not fit" };
    page.row("utilisation", share(asked.utilisation), verdict);
    page.row("time taken", time(asked.takes_s), "at the binding rate");
    let minute = Shown::new(asked.seconds_per_minute, format!("{:.1} s", asked.seconds_per_minute));
    page.row("of each minute", minute, "60 s are available");
}

fn target(page: &mut Sheet, asked: &TargetAnswer) {
    let verdict = if asked.fits {
        "below the binding rate"
    } else {
        "above the binding rate: it cannot be \
                                                                     reached"
    };
    page.row("target", rate(asked.bitrate_bps), verdict);
    page.row("in flight for it", size(asked.needs.window_bytes), "of each connection");
    match asked.needs.window_shift {
        Some(shift) => page.row("its shift", number(f64::from(shift), 0), "of both ends"),
        None => page.row("its shift", Shown::new(f64::INFINITY, "none"), "use more streams"),
    }
    page.row("its tcp_rmem", size(asked.needs.rmem_bytes), "last value, at the receiver");
    page.row("its tcp_wmem", size(asked.needs.wmem_bytes), "last value, at the sender");
    page.row("its loss", share(asked.loss.allowed), "of the packets, at most");
}

fn lag(page: &mut Sheet, streams: u32, asked: &LagAnswer) {
    let members = format!("all {} member links together", asked.links);
    page.row("LAG", rate(asked.all_bps), &members);
    let mean = format!("on average for {streams} stream(s), hashed onto the member links");
    page.row("expected", rate(asked.expected_bps), &mean);
    page.row("members in use", share(asked.used_share), "in the mean");
    asked.no_collision.iter().for_each(|p| {
        page.row(
            "no collision",
            share(*p),
            "probability that no two streams share a member \
                                                           link",
        )
    });
    asked
        .all_on_one
        .iter()
        .for_each(|p| page.row("all streams on one member link", share(*p), "probability"));
    asked
        .fullest
        .iter()
        .for_each(|load| page.row("fullest member", number(*load, 2), "streams on it, on average"));
    asked
        .slowest_bps
        .iter()
        .for_each(|bps| page.row("slowest stream", rate(*bps), "there, if the link limits it"));
    asked.streams_for_all.iter().for_each(|count| {
        page.row("streams for all", number(*count, 1), "on average, until every member link has a stream")
    });
}

fn distance(page: &mut Sheet, asked: &DistanceAnswer) {
    page.row("light in fibre", time(asked.light_s), "the shortest round trip over that distance");
    let stretch = |ratio: f64| match ratio {
        ratio if ratio < 1.0 => "of that: faster than light, so the distance or the round trip is wrong",
        ratio if ratio > 3.0 => "times that: the path takes detours, or devices add delay",
        _ => "times that",
    };
    asked.stretch.iter().for_each(|ratio| page.row("round trip", number(*ratio, 2), stretch(*ratio)));
    let speed = |value: f64| Shown::new(value, format!("{:.4} Pb m/s", value / 1e15));
    asked
        .land_speed_bit_m_per_s
        .iter()
        .for_each(|value| page.row("land speed", speed(*value), "binding rate times distance"));
}

fn transfer(page: &mut Sheet, asked: &TransferAnswer) {
    let what = Bytes::new(asked.bytes);
    let at_best = format!("{what} at the rate of the full link");
    let with_start = format!("{what} with slow start, then at the binding rate");
    asked.ideal_s.iter().for_each(|seconds| page.row("ideal transfer", time(*seconds), &at_best));
    asked.expected_s.iter().for_each(|seconds| page.row("transfer", time(*seconds), &with_start));
}

fn offered(page: &mut Sheet, udp: bool, asked: &OfferedAnswer) {
    let part = asked.carried_bps.map_or_else(String::new, |carried| {
        let part = asked.share.map_or_else(|| "more than".to_owned(), |part| format!("{part} of"));
        format!("{part} the {} that fit", rate(carried))
    });
    page.row("offered", rate(asked.bitrate_bps), &part);
    let Some(excess) = asked.excess_ratio.filter(|excess| *excess > 0.0) else { return };
    let fate = if udp { "lost, or held back by the sender's own link" } else { "waits at the sender" };
    page.row("too much", share(excess), fate);
}

fn burst(page: &mut Sheet, asked: &BurstAnswer) {
    let Some((queue, delay)) = asked.queue_bytes.zip(asked.delay_s) else { return };
    let what = format!(
        "of {} that arrive at {}; the last byte waits {}",
        Bytes::new(asked.bytes),
        rate(asked.arriving_bps),
        time(delay)
    );
    page.row("queue of the burst", size(queue), &what);
}
