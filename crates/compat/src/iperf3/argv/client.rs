//! Options of a client.

use linerate_units::Span;

use super::table::Opt;
use super::values::{dscp, flow_label, host_and_device, port, rated, sized, split_rate, tos, within};
use crate::iperf3::errors::{Iperf3Error, Number};

pub(super) const OPTIONS: &[Opt] = &[
    Opt::both("client", "run as a client of this server", |d, v| {
        let (host, device) = host_and_device(v);
        d.settings.host = Some(host);
        d.settings.common.bind_dev = device.or(d.settings.common.bind_dev.take());
        if d.server { Err(Iperf3Error::new(Number::BOTH_ROLES)) } else { Ok(()) }
    })
    .short('c')
    .value("HOST[%DEVICE]"),
    Opt::client("sctp", "SCTP, not supported by this program", |_, _| Err(Iperf3Error::new(Number::NO_SCTP))),
    Opt::client("nstreams", "SCTP only", |_, _| Err(Iperf3Error::new(Number::NO_SCTP))).value("N"),
    Opt::client("udp", "UDP instead of TCP", |d, _| {
        d.settings.client.udp = true;
        Ok(())
    })
    .short('u'),
    Opt::client("connect-timeout", "connect timeout, ms", |d, v| {
        d.settings.client.connect_timeout = Some(Span::from_ms(sized(v)?)).filter(|time| time.as_ns() > 0);
        Ok(())
    })
    .value("MS"),
    Opt::client("bitrate", "rate of each stream, and number of blocks per burst", |d, v| {
        let (rate, burst) = split_rate(v)?;
        d.bitrate = Some(rate);
        d.settings.client.burst = burst.map(|burst| within(burst, 1, 1000, Number::BURST)).transpose()?;
        Ok(())
    })
    .short('b')
    .also(&["bandwidth"])
    .value("RATE[/BLOCKS]"),
    Opt::client(
        "pacing-timer",
        "pacing timer interval, us; blocks due in it are sent together (default 1000)",
        |d, v| {
            d.settings.client.pacing_timer_us = sized(v)?;
            Ok(())
        },
    )
    .value("US"),
    Opt::client("fq-rate", "rate at which the kernel paces each stream", |d, v| {
        d.settings.client.fq_rate = rated(v)?;
        Ok(())
    })
    .value("RATE"),
    Opt::client("no-fq-socket-pacing", "the same as --fq-rate 0", |d, _| {
        d.settings.client.fq_rate = 0;
        d.settings.common.warnings.push("Warning:  --no-fq-socket-pacing is deprecated".to_owned());
        Ok(())
    }),
    Opt::client("time", "duration of the test in seconds, 0 for no limit (default 10)", |d, v| {
        d.time = Some(within(v, 0, 86_400, Number::DURATION)?);
        Ok(())
    })
    .short('t')
    .value("SECONDS"),
    Opt::client("bytes", "end after N bytes", |d, v| {
        d.bytes = Some(sized(v)?).filter(|bytes| *bytes > 0);
        Ok(())
    })
    .short('n')
    .value("SIZE"),
    Opt::client("blockcount", "end after N blocks or datagrams", |d, v| {
        d.blocks = Some(sized(v)?).filter(|blocks| *blocks > 0);
        Ok(())
    })
    .short('k')
    .value("N"),
    Opt::client("length", "bytes of a block or datagram (default 128K, or what fits)", |d, v| {
        d.settings.client.length = Some(sized(v)?).filter(|bytes| *bytes > 0);
        Ok(())
    })
    .short('l')
    .value("SIZE"),
    // A server accepts it too, but does not use it.
    Opt::both("cport", "local port of the first stream", |d, v| {
        d.settings.client.cport = Some(port(v)?);
        Ok(())
    })
    .value("PORT"),
    Opt::client("parallel", "streams in each direction, 1 to 128", |d, v| {
        d.settings.client.parallel = within(v, 1, 128, Number::PARALLEL)?;
        Ok(())
    })
    .short('P')
    .value("N"),
    Opt::client("reverse", "the server sends", |d, _| {
        d.settings.client.reverse = true;
        if d.settings.client.bidir { Err(Iperf3Error::new(Number::REVERSE_BIDIR)) } else { Ok(()) }
    })
    .short('R'),
    Opt::client("bidir", "both send", |d, _| {
        d.settings.client.bidir = true;
        if d.settings.client.reverse { Err(Iperf3Error::new(Number::REVERSE_BIDIR)) } else { Ok(()) }
    }),
    Opt::client("window", "socket buffers of both ends", |d, v| {
        let window = sized(v)?;
        if window > 512 << 20 {
            return Err(Iperf3Error::new(Number::BUF_SIZE));
        }
        d.settings.client.window = Some(window).filter(|window| *window > 0);
        Ok(())
    })
    .short('w')
    .value("SIZE"),
    Opt::client("congestion", "congestion control", |d, v| {
        d.settings.client.congestion = Some(v.to_owned());
        Ok(())
    })
    .short('C')
    .also(&["linux-congestion"])
    .value("NAME"),
    Opt::client("set-mss", "largest segment, bytes", |d, v| {
        d.settings.client.mss = Some(within(v, 0, 32_767, Number::MSS)?).filter(|mss| *mss > 0);
        Ok(())
    })
    .short('M')
    .value("BYTES"),
    Opt::client("no-delay", "send small segments at once", |d, _| {
        d.settings.client.no_delay = true;
        Ok(())
    })
    .short('N'),
    Opt::client("tos", "type-of-service byte, 0 to 255", |d, v| {
        d.settings.client.tos = tos(v)?;
        Ok(())
    })
    .short('S')
    .value("N"),
    Opt::client("dscp", "DSCP, 0 to 63 or a name such as af11, cs5, ef", |d, v| {
        d.settings.client.tos = dscp(v)?;
        Ok(())
    })
    .value("N"),
    Opt::client("flowlabel", "IPv6 flow label", |d, v| {
        d.settings.client.flow_label = Some(flow_label(v)?);
        Ok(())
    })
    .short('L')
    .value("N"),
    Opt::client("zerocopy", "zero-copy: send from a file instead of a buffer", |d, _| {
        d.settings.client.zerocopy = true;
        Ok(())
    })
    .short('Z'),
    Opt::client("skip-rx-copy", "do not copy received data to the program", |d, _| {
        d.settings.client.skip_rx_copy = true;
        Ok(())
    }),
    Opt::client("omit", "seconds to omit at the start", |d, v| {
        d.settings.client.omit = within(v, 0, 600, Number::OMIT)?;
        Ok(())
    })
    .short('O')
    .value("SECONDS"),
    Opt::client("title", "text before each line", |d, v| {
        d.settings.client.title = Some(v.to_owned());
        Ok(())
    })
    .short('T')
    .value("TEXT"),
    Opt::client("extra-data", "text for the JSON object", |d, v| {
        d.settings.client.extra_data = Some(v.to_owned());
        Ok(())
    })
    .value("TEXT"),
    Opt::client("get-server-output", "print the server's report too", |d, _| {
        d.settings.client.get_server_output = true;
        Ok(())
    }),
    Opt::client("udp-counters-64bit", "64-bit datagram counters", |d, _| {
        d.settings.client.udp_counters_64bit = true;
        Ok(())
    }),
    Opt::client("gsro", "send datagrams in batches (GSO)", |d, _| {
        d.settings.client.gsro = true;
        Ok(())
    }),
    Opt::client("repeating-payload", "digits instead of random bytes", |d, _| {
        d.settings.client.repeating_payload = true;
        Ok(())
    }),
    Opt::client("dont-fragment", "forbid fragmentation of IPv4 datagrams", |d, _| {
        d.settings.client.dont_fragment = true;
        Ok(())
    }),
    Opt::client("username", "user name (password from IPERF3_PASSWORD, or prompted)", |d, v| {
        d.settings.client.username = Some(v.to_owned());
        Ok(())
    })
    .value("NAME"),
    Opt::client("rsa-public-key-path", "public key of the server (PEM)", |d, v| {
        d.settings.client.rsa_public_key = Some(v.into());
        Ok(())
    })
    .value("FILE"),
];
