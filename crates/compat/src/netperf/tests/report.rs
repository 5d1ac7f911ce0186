//! The tables of the real netperf 2.7.0, printed from the same figures.

use std::net::IpAddr;

use super::options;
use crate::netperf::figures::{Buffer, CallSizes, NetperfFigures, NetperfReport};
use crate::netperf::options::{NetperfFamily, Pair};
use crate::netperf::report::{banner, result};
use crate::netperf::wire::{HostCpu, NetperfResults, Response};

macro_rules! output {
    ($name:literal) => {
        include_str!(concat!("../../../../../fixtures/transcripts/netperf/output/", $name, ".txt"))
    };
}

/// Prints figures for the command line of a recorded output, and compares.
fn prints(recorded: &str, figures: &NetperfFigures) {
    let (command, text) = recorded.split_once('\n').unwrap();
    let options = options(command.strip_prefix("$ netperf ").unwrap());
    let head = banner(&options, IpAddr::from([127, 0, 0, 1]));
    let printed = head + &result(&NetperfReport { options: &options, figures });
    assert_eq!(printed, text, "{command}");
}

/// The figures of a test over TCP or UDP that do not depend on the run.
fn figures(tcp: bool, elapsed: f64, throughput: f64) -> NetperfFigures {
    let (send, receive) = if tcp { (16_384, 131_072) } else { (212_992, 212_992) };
    NetperfFigures {
        elapsed,
        throughput,
        send_buffer: Buffer { initial: send, last: send },
        receive_buffer: Buffer { initial: receive, last: receive },
        family: NetperfFamily::V4,
        response: Response {
            send_buffer: send as u32,
            receive_buffer: receive as u32,
            ..Response::default()
        },
        ..NetperfFigures::default()
    }
}

/// Both ends with this use of CPU time, percent, and for each unit.
fn with_cpu(figures: NetperfFigures, utilization: [f64; 2], demand: [f64; 2]) -> NetperfFigures {
    let cpu = Some(HostCpu::default());
    let pair = |[local, remote]: [f64; 2]| Pair { local, remote };
    NetperfFigures {
        cpu: Pair { local: cpu, remote: cpu },
        utilization: pair(utilization),
        demand: pair(demand),
        ..figures
    }
}

#[test]
fn calls_and_segments_of_a_stream_are_printed_as_netperf_prints_them() {
    let results =
        NetperfResults { received: 1_392_345_088, receive_calls: 10_630, ..NetperfResults::default() };
    let figures = NetperfFigures {
        sizes: CallSizes { send: 16_384, ..CallSizes::default() },
        sent: 1_392_345_088,
        send_calls: 84_982,
        mss: Some(65_483),
        results,
        ..figures(true, 1.01, 11_074.15)
    };
    prints(output!("stream-details"), &figures);
}

#[test]
fn transactions_with_processor_time_are_printed_as_netperf_prints_them() {
    let of = |rate: f64| NetperfFigures { transaction_rate: rate, ..figures(true, 1.0, rate) };
    let figures = with_cpu(of(125_766.477), [100.0, 100.0], [15.902, 15.902]);
    prints(output!("rr-cpu-details"), &figures);
    let figures = with_cpu(of(23_020.07), [100.0, 495.14], [86.881, 430.178]);
    prints(output!("crr-cpu-details"), &figures);
    prints(output!("rr-bits"), &NetperfFigures { transaction_rate: 1.0, ..self::figures(false, 1.0, 29.91) });
}

#[test]
fn datagrams_with_processor_time_are_printed_as_netperf_prints_them() {
    let results =
        NetperfResults { received: 141_015_000, receive_calls: 141_015, ..NetperfResults::default() };
    let figures = NetperfFigures {
        sizes: CallSizes { send: 1000, ..CallSizes::default() },
        sent: 304_324_000,
        send_calls: 304_324,
        results,
        // The recorded time has two decimals, its rates have one: 2430.3 and 1126.1.
        ..figures(false, 304_324.0 * 8e3 / 2430.3e6, 2430.3)
    };
    prints(output!("udp-cpu"), &with_cpu(figures, [100.0, 100.0], [6.742, 6.742]));
}

#[test]
fn selected_values_are_arranged_as_netperf_arranges_them() {
    let last = |buffer: Buffer, last: u64| Buffer { last, ..buffer };
    let base = figures(true, 1.0, 101_663.25);
    let figures = NetperfFigures {
        send_buffer: last(base.send_buffer, 4_194_304),
        receive_buffer: last(base.receive_buffer, 262_484),
        results: NetperfResults {
            send_buffer: 4_194_304,
            receive_buffer: 261_944,
            ..NetperfResults::default()
        },
        ..base
    };
    prints(output!("omni-columns"), &figures);
    prints(output!("csv"), &NetperfFigures { throughput: 12_038.97, ..figures });
}
