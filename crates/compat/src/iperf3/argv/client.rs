//! Options of a client.

use linerate_units::Span;

use super::table::Iperf3Option;
use super::values::{dscp, flow_label, host_and_device, port, rated, sized, split_rate, tos, within};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};

pub(super) const OPTIONS: &[Iperf3Option] = &[
    Iperf3Option::both("client", "run as a client of this server", |d, v| {
        let (host, device) = host_and_device(v);
        d.settings.host = Some(host);
        d.settings.common.bind_dev = device.or(d.settings.common.bind_dev.take());
        if d.server { Err(Iperf3Error::new(Iperf3ErrorNumber::BOTH_ROLES)) } else { Ok(()) }
    })
    .short('c')
    .value("HOST[%DEVICE]"),
    Iperf3Option::client("sctp", "SCTP, not supported by this program", |_, _| {
        Err(Iperf3Error::new(Iperf3ErrorNumber::NO_SCTP))
    }),
    Iperf3Option::client("nstreams", "SCTP only", |_, _| Err(Iperf3Error::new(Iperf3ErrorNumber::NO_SCTP)))
        .value("N"),
    Iperf3Option::client("udp", "UDP instead of TCP", |d, _| {
        d.settings.client.udp = true;
        Ok(())
    })
    .short('u'),
    Iperf3Option::client("connect-timeout", "connect timeout, ms", |d, v| {
        d.settings.client.connect_timeout = Some(Span::from_ms(sized(v)?)).filter(|time| time.as_ns() > 0);
        Ok(())
    })
    .value("MS"),
    Iperf3Option::client("bitrate", "rate of each stream, and number of blocks per burst", |d, v| {
        let (rate, burst) = split_rate(v)?;
        d.bitrate = Some(rate);
        d.settings.client.burst =
            burst.map(|burst| within(burst, 1, 1000, Iperf3ErrorNumber::BURST)).transpose()?;
        Ok(())
    })
    .short('b')
    .also(&["bandwidth"])
    .value("RATE[/BLOCKS]"),
    Iperf3Option::client(
        "pacing-timer",
        "pacing timer interval, us; blocks due in it are sent together (default 1000)",
        |d, v| {
            d.settings.client.pacing_timer_us = sized(v)?;
            Ok(())
        },
    )
    .value("US"),
    Iperf3Option::client("fq-rate", "rate at which the kernel paces each stream", |d, v| {
        d.settings.client.fq_rate = rated(v)?;
        Ok(())
    })
    .value("RATE"),
    Iperf3Option::client("no-fq-socket-pacing", "the same as --fq-rate 0", |d, _| {
        d.settings.client.fq_rate = 0;
        d.settings.common.warnings.push("Warning:  --no-fq-socket-pacing is deprecated".to_owned());
        Ok(())
    }),
    Iperf3Option::client("time", "duration of the test in seconds, 0 for no limit (default 10)", |d, v| {
        d.time = Some(within(v, 0, 86_400, Iperf3ErrorNumber::DURATION)?);
        Ok(())
    })
    .short('t')
    .value("SECONDS"),
    Iperf3Option::client("bytes", "end after N bytes", |d, v| {
        d.bytes = Some(sized(v)?).filter(|bytes| *bytes > 0);
        Ok(())
    })
    .short('n')
    .value("SIZE"),
    Iperf3Option::client("blockcount", "end after N blocks or datagrams", |d, v| {
        d.blocks = Some(sized(v)?).filter(|blocks| *blocks > 0);
        Ok(())
    })
    .short('k')
    .value("N"),
    Iperf3Option::client("length", "bytes of a block or datagram (default 128K, or what fits)", |d, v| {
        d.settings.client.length = Some(sized(v)?).filter(|bytes| *bytes > 0);
        Ok(())
    })
    .short('l')
    .value("SIZE"),
    // A server accepts it too, but does not use it.
    Iperf3Option::both("cport", "local port of the first stream", |d, v| {
        d.settings.client.cport = Some(port(v)?);
        Ok(())
    })
    .value("PORT"),
    Iperf3Option::client("parallel", "streams in each direction, 1 to 128", |d, v| {
        d.settings.client.parallel = within(v, 1, 128, Iperf3ErrorNumber::PARALLEL)?;
        Ok(())
    })
    .short('P')
    .value("N"),
    Iperf3Option::client("reverse", "the server sends", |d, _| {
        d.settings.client.reverse = true;
        if d.settings.client.bidir { Err(Iperf3Error::new(Iperf3ErrorNumber::REVERSE_BIDIR)) } else { Ok(()) }
    })
    .short('R'),
    Iperf3Option::client("bidir", "both send", |d, _| {
        d.settings.client.bidir = true;
        if d.settings.client.reverse {
            Err(Iperf3Error::new(Iperf3ErrorNumber::REVERSE_BIDIR))
        } else {
            Ok(())
        }
    }),
    Iperf3Option::client("window", "socket buffers of both ends", |d, v| {
        let window = sized(v)?;
        if window > 512 << 20 {
            return Err(Iperf3Error::new(Iperf3ErrorNumber::BUF_SIZE));
        }
        d.settings.client.window = Some(window).filter(|window| *window > 0);
        Ok(())
    })
    .short('w')
    .value("SIZE"),
    Iperf3Option::client("congestion", "congestion control", |d, v| {
        d.settings.client.congestion = Some(v.to_owned());
        Ok(())
    })
    .short('C')
    .also(&["linux-congestion"])
    .value("NAME"),
    Iperf3Option::client("set-mss", "largest segment, bytes", |d, v| {
        d.settings.client.mss = Some(within(v, 0, 32_767, Iperf3ErrorNumber::MSS)?).filter(|mss| *mss > 0);
        Ok(())
    })
    .short('M')
    .value("BYTES"),
    Iperf3Option::client("no-delay", "send small segments at once", |d, _| {
        d.settings.client.no_delay = true;
        Ok(())
    })
    .short('N'),
    Iperf3Option::client("tos", "type-of-service byte, 0 to 255", |d, v| {
        d.settings.client.tos = tos(v)?;
        Ok(())
    })
    .short('S')
    .value("N"),
    Iperf3Option::client("dscp", "DSCP, 0 to 63 or a name such as af11, cs5, ef", |d, v| {
        d.settings.client.tos = dscp(v)?;
        Ok(())
    })
    .value("N"),
    Iperf3Option::client("flowlabel", "IPv6 flow label", |d, v| {
        d.settings.client.flow_label = Some(flow_label(v)?);
        Ok(())
    })
    .short('L')
    .value("N"),
    Iperf3Option::client("zerocopy", "zero-copy: send from a file instead of a buffer", |d, _| {
        d.settings.client.zerocopy = true;
        Ok(())
    })
    .short('Z'),
    Iperf3Option::client("skip-rx-copy", "do not copy received data to the program", |d, _| {
        d.settings.client.skip_rx_copy = true;
        Ok(())
    }),
    Iperf3Option::client("omit", "seconds to omit at the start", |d, v| {
        d.settings.client.omit = within(v, 0, 600, Iperf3ErrorNumber::OMIT)?;
        Ok(())
    })
    .short('O')
    .value("SECONDS"),
    Iperf3Option::client("title", "text before each line", |d, v| {
        d.settings.client.title = Some(v.to_owned());
        Ok(())
    })
    .short('T')
    .value("TEXT"),
    Iperf3Option::client("extra-data", "text for the JSON object", |d, v| {
        d.settings.client.extra_data = Some(v.to_owned());
        Ok(())
    })
    .value("TEXT"),
    Iperf3Option::client("get-server-output", "print the server's report too", |d, _| {
        d.settings.client.get_server_output = true;
        Ok(())
    }),
    Iperf3Option::client("udp-counters-64bit", "64-bit datagram counters", |d, _| {
        d.settings.client.udp_counters_64bit = true;
        Ok(())
    }),
    Iperf3Option::client("gsro", "send datagrams in batches (GSO)", |d, _| {
        d.settings.client.gsro = true;
        Ok(())
    }),
    Iperf3Option::client("repeating-payload", "digits instead of random bytes", |d, _| {
        d.settings.client.repeating_payload = true;
        Ok(())
    }),
    Iperf3Option::client("dont-fragment", "forbid fragmentation of IPv4 datagrams", |d, _| {
        d.settings.client.dont_fragment = true;
        Ok(())
    }),
    Iperf3Option::client("username", "user name (password from IPERF3_PASSWORD, or prompted)", |d, v| {
        d.settings.client.username = Some(v.to_owned());
        Ok(())
    })
    .value("NAME"),
    Iperf3Option::client("rsa-public-key-path", "public key of the server (PEM)", |d, v| {
        d.settings.client.rsa_public_key = Some(v.into());
        Ok(())
    })
    .value("FILE"),
];
