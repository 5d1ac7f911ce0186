//! Converts the answer of a switch to the terms of a run.

use linerate_control::{
    ObservedLateness, ObservedPacketRate, PortInterval, PortObservations, PortObserverError,
};
use linerate_lab::control_protocol::{HistoryInterval, PortHistory, PortSeries};
use linerate_model::Readings;
use linerate_model::metrics::port;
use linerate_sock::Mono;
use linerate_units::{Bitrate, Bytes, Ratio, Span};

/// Converts the observations of a switch to the terms of a run.
///
/// # Errors
/// An interval ends before it starts, or overlaps the one before it.
pub(super) fn observations(seen: PortHistory) -> Result<PortObservations, PortObserverError> {
    let mut intervals = Vec::new();
    for PortSeries { name, intervals: of_port } in seen.ports {
        let mut last_end = 0;
        for interval in of_port {
            if interval.start_ns < last_end || interval.end_ns <= interval.start_ns {
                let text = format!("the intervals of port {name} are not consecutive");
                return Err(PortObserverError::Garbled(text));
            }
            last_end = interval.end_ns;
            intervals.push(PortInterval {
                port: name.clone(),
                start: Mono(interval.start_ns),
                end: Mono(interval.end_ns),
                readings: readings(&interval),
            });
        }
    }
    let late = seen.late.map(|late| ObservedLateness {
        count: late.count,
        of: late.frames,
        worst: Span::from_ns(late.worst_ns),
        bound: Span::from_ns(late.bound_ns),
    });
    let packet_rate = seen.packet_rate.map(|rate| ObservedPacketRate {
        max_pps: rate.max_pps,
        limit_pps: rate.limit_pps,
        overrun: rate.overrun,
    });
    Ok(PortObservations { intervals, late, packet_rate })
}

fn readings(interval: &HistoryInterval) -> Readings {
    let span = Span::from_ns(interval.end_ns - interval.start_ns);
    let mut readings = Readings::default();
    readings.put(port::PACKETS, interval.packets);
    readings.put(port::BYTES, Bytes::new(interval.bytes));
    readings.put_some(port::RATE, Bitrate::of(Bytes::new(interval.wire_bytes), span));
    readings.put(port::DROPPED, interval.dropped);
    readings.put(port::MARKED, interval.marked);
    readings.put(port::QUEUE, Bytes::new(interval.queue_bytes));
    readings.put(port::QUEUE_MAX, Bytes::new(interval.queue_max_bytes));
    readings.put_some(port::BUSY, interval.busy.and_then(Ratio::new));
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(start_ns: u64, end_ns: u64) -> serde_json::Value {
        serde_json::json!({
            "start_ns": start_ns, "end_ns": end_ns, "packets": 8127, "bytes": 8127 * 1518,
            "wire_bytes": 8127 * 1538, "dropped": 3, "marked": 2, "queue_bytes": 100, "queue_max_bytes": 500,
            "busy": 0.9999, "colour": "of a later version"
        })
    }

    fn parse(answer: &serde_json::Value) -> Result<PortObservations, PortObserverError> {
        observations(serde_json::from_value(answer.clone()).unwrap())
    }

    #[test]
    fn an_answer_becomes_readings_with_the_rate_on_the_wire() {
        let mut second = interval(200_000_000, 300_000_000);
        second.as_object_mut().unwrap().remove("busy");
        let answer = serde_json::json!({
            "ports": [
                { "name": "s>b", "intervals": [interval(100_000_000, 200_000_000), second] },
                { "name": "s>a", "intervals": [] }
            ],
            "late": { "count": 4, "worst_ns": 250_000, "bound_ns": 100_000 },
            "packet_rate": { "max_pps": 81_270.0, "limit_pps": 400_000.0 }
        });
        let observed = parse(&answer).unwrap();
        assert_eq!(observed.intervals.len(), 2);
        let first = &observed.intervals[0];
        assert_eq!(
            (first.port.as_str(), first.start, first.end),
            ("s>b", Mono(100_000_000), Mono(200_000_000))
        );
        let readings = &first.readings;
        // 8127 * 1538 * 8 bits in 0.1 s.
        assert_eq!(readings.get(port::RATE).unwrap().bps(), 999_946_080.0);
        assert_eq!((readings.get(port::PACKETS), readings.get(port::DROPPED)), (Some(8127), Some(3)));
        assert_eq!(
            (readings.get(port::MARKED), readings.get(port::BYTES)),
            (Some(2), Some(Bytes::new(12_336_786)))
        );
        assert_eq!(readings.get(port::QUEUE), Some(Bytes::new(100)));
        assert_eq!(readings.get(port::QUEUE_MAX), Some(Bytes::new(500)));
        assert_eq!(readings.get(port::BUSY), Ratio::new(0.9999));
        assert_eq!(observed.intervals[1].readings.get(port::BUSY), None, "not measured is absent");
        let late = ObservedLateness {
            count: 4,
            of: None,
            worst: Span::from_ns(250_000),
            bound: Span::from_ns(100_000),
        };
        assert_eq!(observed.late, Some(late));
        assert_eq!(
            observed.packet_rate,
            Some(ObservedPacketRate { max_pps: 81_270.0, limit_pps: 400_000.0, overrun: 0 })
        );
    }

    #[test]
    fn intervals_that_overlap_or_go_back_are_not_believed() {
        for (first, second) in [((5, 9), (8, 12)), ((5, 5), (6, 7)), ((9, 5), (10, 12))] {
            let intervals = [interval(first.0, first.1), interval(second.0, second.1)];
            let answer = serde_json::json!({ "ports": [{ "name": "a>s", "intervals": intervals }] });
            let error = parse(&answer).unwrap_err();
            assert!(error.to_string().contains("port a>s"), "{error}");
        }
    }
}
