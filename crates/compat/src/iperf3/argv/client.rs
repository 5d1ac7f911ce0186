//! Options of a client.

use linerate_units::Span;

use super::table::Iperf3Option;
use super::values::{
    dscp, flow_label, host_and_device, no_sctp, port, rated, sized, split_rate, tos, within,
};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::option_table::ToolOption;

pub(super) const OPTIONS: &[Iperf3Option] = &[
    Iperf3Option::role(
        ToolOption::acts(
            &["-c HOST[%DEVICE]", "--client HOST[%DEVICE]"],
            &["-c", "192.0.2.2"],
            "run as a client and connect to this server",
        ),
        |d, v| {
            let (host, device) = host_and_device(v);
            d.settings.host = Some(host);
            d.settings.common.bind_dev = device.or(d.settings.common.bind_dev.take());
            if d.server { Err(Iperf3Error::new(Iperf3ErrorNumber::BOTH_ROLES)) } else { Ok(()) }
        },
    ),
    Iperf3Option::client(
        ToolOption::refused(&["--sctp"], &["--sctp"], "SCTP, which is not supported"),
        |_, _| Err(no_sctp("--sctp")),
    ),
    Iperf3Option::client(
        ToolOption::refused(
            &["--nstreams N"],
            &["--nstreams", "4"],
            "number of SCTP streams; SCTP is not supported",
        ),
        |_, _| Err(no_sctp("--nstreams")),
    ),
    Iperf3Option::client(ToolOption::acts(&["-u", "--udp"], &["-u"], "use UDP instead of TCP"), |d, _| {
        d.settings.client.udp = true;
        Ok(())
    }),
    Iperf3Option::client(
        ToolOption::acts(
            &["--connect-timeout MS"],
            &["--connect-timeout", "500"],
            "timeout for connecting to the server, milliseconds",
        ),
        |d, v| {
            d.settings.client.connect_timeout =
                Some(Span::from_ms(sized(v)?)).filter(|time| time.as_ns() > 0);
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["-b RATE[/BLOCKS]", "--bitrate RATE[/BLOCKS]", "--bandwidth RATE[/BLOCKS]"],
            &["-b", "1M/10"],
            "target rate of each stream, and blocks or datagrams per burst",
        ),
        |d, v| {
            let (rate, burst) = split_rate(v)?;
            d.bitrate = Some(rate);
            d.settings.client.burst =
                burst.map(|burst| within(burst, 1, 1000, Iperf3ErrorNumber::BURST)).transpose()?;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["--pacing-timer US"],
            &["--pacing-timer", "100"],
            "pacing timer, microseconds: blocks due within it are sent together (default 1000)",
        ),
        |d, v| {
            d.settings.client.pacing_timer_us = sized(v)?;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["--fq-rate RATE"],
            &["--fq-rate", "1M"],
            "pace each stream in the kernel at this rate (fq)",
        ),
        |d, v| {
            d.settings.client.fq_rate = rated(v)?;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(&["--no-fq-socket-pacing"], &["--no-fq-socket-pacing"], "same as --fq-rate 0")
            .after(&["-c", "192.0.2.2", "--fq-rate", "1M"]),
        |d, _| {
            d.settings.client.fq_rate = 0;
            d.settings.common.warnings.push("Warning:  --no-fq-socket-pacing is deprecated".to_owned());
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["-t SECONDS", "--time SECONDS"],
            &["-t", "5"],
            "seconds to transmit, 0 for no limit (default 10)",
        ),
        |d, v| {
            d.time = Some(within(v, 0, 86_400, Iperf3ErrorNumber::DURATION)?);
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(&["-n SIZE", "--bytes SIZE"], &["-n", "1M"], "bytes to transmit, instead of -t"),
        |d, v| {
            d.bytes = Some(sized(v)?).filter(|bytes| *bytes > 0);
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["-k N", "--blockcount N"],
            &["-k", "100"],
            "blocks or datagrams to transmit, instead of -t",
        ),
        |d, v| {
            d.blocks = Some(sized(v)?).filter(|blocks| *blocks > 0);
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["-l SIZE", "--length SIZE"],
            &["-l", "1K"],
            "bytes per block or datagram (default 128K for TCP, the MSS of the control connection for UDP)",
        ),
        |d, v| {
            d.settings.client.length = Some(sized(v)?).filter(|bytes| *bytes > 0);
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(&["--cport PORT"], &["--cport", "6000"], "local port of the first stream"),
        |d, v| {
            d.settings.client.cport = Some(port(v)?);
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["-P N", "--parallel N"],
            &["-P", "2"],
            "parallel streams in each direction, 1 to 128",
        ),
        |d, v| {
            d.settings.client.parallel = within(v, 1, 128, Iperf3ErrorNumber::PARALLEL)?;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(&["-R", "--reverse"], &["-R"], "reverse: the server sends"),
        |d, _| {
            d.settings.client.reverse = true;
            if d.settings.client.bidir {
                Err(Iperf3Error::new(Iperf3ErrorNumber::REVERSE_BIDIR))
            } else {
                Ok(())
            }
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(&["--bidir"], &["--bidir"], "both ends send at the same time"),
        |d, _| {
            d.settings.client.bidir = true;
            if d.settings.client.reverse {
                Err(Iperf3Error::new(Iperf3ErrorNumber::REVERSE_BIDIR))
            } else {
                Ok(())
            }
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(&["-w SIZE", "--window SIZE"], &["-w", "64K"], "socket buffer size of both ends"),
        |d, v| {
            let window = sized(v)?;
            if window > 512 << 20 {
                return Err(Iperf3Error::new(Iperf3ErrorNumber::BUF_SIZE));
            }
            d.settings.client.window = Some(window).filter(|window| *window > 0);
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["-C NAME", "--congestion NAME", "--linux-congestion NAME"],
            &["-C", "cubic"],
            "TCP congestion control algorithm",
        ),
        |d, v| {
            d.settings.client.congestion = Some(v.to_owned());
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["-M BYTES", "--set-mss BYTES"],
            &["-M", "1000"],
            "TCP maximum segment size, bytes",
        ),
        |d, v| {
            d.settings.client.mss =
                Some(within(v, 0, 32_767, Iperf3ErrorNumber::MSS)?).filter(|mss| *mss > 0);
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(&["-N", "--no-delay"], &["-N"], "disable Nagle's algorithm (TCP_NODELAY)"),
        |d, _| {
            d.settings.client.no_delay = true;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(&["-S N", "--tos N"], &["-S", "8"], "type-of-service byte, 0 to 255"),
        |d, v| {
            d.settings.client.tos = tos(v)?;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(&["--dscp N"], &["--dscp", "ef"], "DSCP, 0 to 63 or a name such as af11, cs5, ef"),
        |d, v| {
            d.settings.client.tos = dscp(v)?;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(&["-L N", "--flowlabel N"], &["-L", "1"], "IPv6 flow label"),
        |d, v| {
            d.settings.client.flow_label = Some(flow_label(v)?);
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["-Z", "--zerocopy"],
            &["-Z"],
            "zero-copy: send with sendfile() from a file instead of a buffer",
        ),
        |d, _| {
            d.settings.client.zerocopy = true;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["--skip-rx-copy"],
            &["--skip-rx-copy"],
            "discard received data in the kernel (MSG_TRUNC)",
        ),
        |d, _| {
            d.settings.client.skip_rx_copy = true;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["-O SECONDS", "--omit SECONDS"],
            &["-O", "1"],
            "seconds at the start to omit from the results",
        ),
        |d, v| {
            d.settings.client.omit = within(v, 0, 600, Iperf3ErrorNumber::OMIT)?;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(&["-T TEXT", "--title TEXT"], &["-T", "text"], "text to print before each line"),
        |d, v| {
            d.settings.client.title = Some(v.to_owned());
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["--extra-data TEXT"],
            &["--extra-data", "text"],
            "text to include in the JSON object",
        ),
        |d, v| {
            d.settings.client.extra_data = Some(v.to_owned());
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["--get-server-output"],
            &["--get-server-output"],
            "also print the server's output",
        ),
        |d, _| {
            d.settings.client.get_server_output = true;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["--udp-counters-64bit"],
            &["--udp-counters-64bit"],
            "use 64-bit datagram counters",
        ),
        |d, _| {
            d.settings.client.udp_counters_64bit = true;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(&["--gsro"], &["--gsro"], "UDP: send with GSO and receive with GRO"),
        |d, _| {
            d.settings.client.gsro = true;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["--repeating-payload"],
            &["--repeating-payload"],
            "send a repeating pattern of digits instead of random bytes",
        ),
        |d, _| {
            d.settings.client.repeating_payload = true;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["--dont-fragment"],
            &["--dont-fragment"],
            "set the IPv4 Don't Fragment bit on datagrams",
        ),
        |d, _| {
            d.settings.client.dont_fragment = true;
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["--username NAME"],
            &["--username", "me", "--rsa-public-key-path", "key.pem"],
            "user name (the password is read from IPERF3_PASSWORD or asked for)",
        ),
        |d, v| {
            d.settings.client.username = Some(v.to_owned());
            Ok(())
        },
    ),
    Iperf3Option::client(
        ToolOption::acts(
            &["--rsa-public-key-path FILE"],
            &["--rsa-public-key-path", "key.pem", "--username", "me"],
            "the server's RSA public key (PEM)",
        ),
        |d, v| {
            d.settings.client.rsa_public_key = Some(v.into());
            Ok(())
        },
    ),
];
