use linerate_units::Span;

use crate::nuttcp::{
    NuttcpClientOptions, NuttcpInvocation, NuttcpServerOptions, RateLimit, Verbosity, invocation,
};

fn read(line: &str) -> (Vec<String>, NuttcpInvocation) {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    invocation(&arguments)
}

fn client(line: &str) -> NuttcpClientOptions {
    match read(line) {
        (warnings, NuttcpInvocation::Client(options)) if warnings.is_empty() => *options,
        other => panic!("{line}: {other:?}"),
    }
}

fn mistake(line: &str) -> String {
    match read(line).1 {
        NuttcpInvocation::Mistake(text) => text,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_default_is_ten_seconds_of_tcp_to_the_server() {
    assert_eq!(client("host"), NuttcpClientOptions::to("host"));
    let request = client("host").request(Some(1448));
    assert_eq!((request.buflen, request.nbuf, request.rate_kbps, request.port), (65_536, None, None, 5101));
    assert_eq!((request.timeout, request.trans, request.udp), (Span::from_secs(10), true, false));
}

#[test]
fn suffixes_are_those_of_the_tool() {
    let request = |line: &str| client(line).request(Some(1448));
    assert_eq!(request("-n1m h").nbuf, Some(16));
    assert!(request("-n1m h").nbuf_bytes);
    assert_eq!((request("-n3 -l1000 h").nbuf, request("-n3 -l1000 h").timeout), (Some(3), Span::ZERO));
    assert_eq!(request("-n3 -T5 h").timeout, Span::from_secs(5));
    assert_eq!(request("-l8k h").buflen, 8192);
    assert_eq!(request("-R20m h").rate_kbps, Some(20_000));
    assert_eq!(request("-R2.5g h").rate_kbps, Some(2_500_000));
    assert_eq!(request("-R64 h").rate_kbps, Some(64));
    // 500 datagrams of 1000 bytes per second.
    assert_eq!(request("-u -l1000 -R500p h").rate_kbps, Some(4000));
    assert_eq!(
        (request("-T2m h").timeout, request("-T1h h").timeout),
        (Span::from_secs(120), Span::from_secs(3600))
    );
    assert_eq!(request("-i.5 h").interval, Span::from_ms(500));
    assert_eq!((request("-w64 -ws32 -wb h").win, request("-w64 -ws32 -wb h").braindead), (32_768, true));
    assert_eq!((request("-w4m h").win, client("-w4m h").window), (4 << 20, Some(4 << 20)));
    assert_eq!((request("-c32 h").tos, request("-c0xb8t h").tos), (0x80, 0xb8));
    let burst = client("-Ri10m/5 h");
    assert_eq!((burst.rate, burst.instantaneous, burst.burst), (Some(RateLimit::Kbps(10_000)), true, 5));
}

#[test]
fn standard_input_is_sent_to_its_end_unless_a_time_or_an_amount_is_given() {
    let request = |line: &str| client(line).request(None);
    assert_eq!((request("-s h").timeout, request("-s h").nbuf), (Span::ZERO, None));
    assert_eq!(request("-r -s h").timeout, Span::ZERO);
    assert_eq!((request("-s -T5 h").timeout, request("-s -n3 h").nbuf), (Span::from_secs(5), Some(3)));
}

/// As observed with 6.1.2: 1 Mbit/s, and 8192 bytes halved until they fit into a segment of the control
/// connection.
#[test]
fn datagrams_have_defaults_of_their_own() {
    let request = |line: &str, mss| client(line).request(mss);
    assert_eq!(
        (request("-u h", Some(1448)).buflen, request("-u h", Some(1448)).rate_kbps),
        (1024, Some(1000))
    );
    assert_eq!(request("-u h", Some(32_741)).buflen, 8192);
    assert_eq!(request("-u h", Some(8948)).buflen, 8192);
    assert_eq!(request("-uu h", Some(1448)).rate_kbps, None);
    assert_eq!(request("-u -R0 h", Some(1448)).rate_kbps, None);
}

/// The messages of 6.1.2 for the same command lines.
#[test]
fn mistakes_are_answered_as_the_tool_does() {
    assert_eq!(mistake("-N0 h"), "invalid nstream = 0\n");
    assert_eq!(mistake("-l0 h"), "invalid buflen = 0\n");
    assert_eq!(mistake("-p100 h"), "invalid port = 100\n");
    assert_eq!(mistake("-p99999999999999999999999 h"), format!("invalid port = {}\n", u64::MAX));
    assert_eq!(mistake("-fzzz h"), "invalid format option \"zzz\"\n");
    assert_eq!(mistake("-P26000 -p26000 h"), "ctlport = 26000 overlaps port/nstream = 26000/1\n");
    assert_eq!(mistake("-P26003 -p26000 -N4 h"), "ctlport = 26003 overlaps port/nstream = 26000/4\n");
    for (line, warning) in [
        ("-N200 h", "nstream = 200 > MAXSTREAM, set to 128"),
        ("-u -l3 h", "UDP buflen = 3 < 5, set to 5"),
        ("-u -l70000 h", "UDP buflen = 70000 > MAXUDPBUFLEN, set to 65507"),
        ("-i1 -T1 h", "ignoring interval=1.000000 which is greater than or equal timeout=1.000000"),
    ] {
        let (warnings, invocation) = read(line);
        assert_eq!(warnings, [warning]);
        assert!(matches!(invocation, NuttcpInvocation::Client(_)), "{line}");
    }
    for line in ["", "-q h", "-t", "-T3", "a b c", "--nosuch h", "-S h", "-S -t", "-Sx"] {
        match read(line).1 {
            NuttcpInvocation::Usage(text) => assert!(text.starts_with("Usage: nuttcp"), "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
    let help = read("-h").1;
    assert!(matches!(&help, NuttcpInvocation::Print { text, code: 1 } if text.starts_with("Usage: nuttcp")));
    assert_eq!(read("-V").1, NuttcpInvocation::Print { text: "nuttcp-8.2.2\n".to_owned(), code: 0 });
}

#[test]
fn what_is_not_done_here_is_refused() {
    for line in ["-xt h", "-m4 h", "a b", "-s -u h", "-s -N2 h", "name/othername", "h+1", "h=192.0.2.1"] {
        assert!(mistake(line).starts_with("nuttcp: "), "{line}");
    }
    assert_eq!(client("192.0.2.1/192.0.2.2").data_host, Some([192, 0, 2, 2].into()));
}

#[test]
fn a_server_has_its_own_options() {
    let server = |line: &str| match read(line).1 {
        NuttcpInvocation::Server(options) => options,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(server("-S"), NuttcpServerOptions::default());
    let once = server("-1 -P26000 -s -4");
    assert!(once.one_shot && once.stdio && once.ipv4 && once.control_port == 26_000);
    assert!(mistake("-S -s").starts_with("option \"-s\" invalid with \"-S\" server mode\n"));
    assert!(server("-S --single-threaded").single);
    assert_eq!(server("-S -xc1").affinity, Some(1));
    assert!(server("-S -6").ipv6 && !server("-S -6 --enable-v4-mapped").ipv6);
    assert!(server("-S -6 --enable-v4-mapped --disable-v4-mapped").ipv6);
    assert_eq!(server("-S --idle-data-timeout .5").idle, [Span::from_ms(500); 3]);
    assert_eq!(server("-S --idle-data-timeout 20").idle, [Span::from_secs(20); 3]);
    assert_eq!(server("-S --idle-data-timeout 5/30/60").idle, [5, 30, 60].map(Span::from_secs));
    assert!(matches!(read("-S --idle-data-timeout 9/1/2").1, NuttcpInvocation::Usage(_)));
    let (warnings, invocation) = read("-r");
    assert!(warnings[0].contains("obsolete \"classic\" mode"));
    assert!(matches!(invocation, NuttcpInvocation::Server(options) if options.one_shot));
}

#[test]
fn verbosity_is_that_of_the_tool() {
    assert_eq!(client("-v h").verbosity, Verbosity::Verbose);
    let verbosity = |line: &str| client(line).verbosity;
    assert_eq!(verbosity("-vv h"), Verbosity::VeryVerbose);
    // In nuttcp, too, only -vv prints the CPU time.
    assert_eq!((verbosity("-v -v h"), verbosity("-vv -v h")), (Verbosity::Verbose, Verbosity::VeryVerbose));
    assert_eq!((verbosity("-v -b h"), verbosity("-b0 h")), (Verbosity::Brief, Verbosity::Verbose));
    let streams = |line: &str| (client(line).stream_retrans, client(line).stream_cwnd);
    assert_eq!(
        (streams("-b h"), streams("-br h"), streams("-bc h")),
        ((false, false), (true, false), (false, true))
    );
    assert_eq!(
        (streams("-b2 h"), streams("-b 6 -T1 h"), streams("-brc h")),
        ((true, false), (true, true), (true, true))
    );
    assert!(mistake("-b9 h").starts_with("nuttcp: -b9 "));
}

#[test]
fn a_value_may_follow_a_blank() {
    assert_eq!(client("-T 1 -P 5010 -R 10m -N 2 -I abc host"), client("-T1 -P5010 -R10m -N2 -Iabc host"));
    // A host follows a bare -i, unless the next argument is a number.
    assert_eq!(client("-i host"), client("-i1 host"));
    assert_eq!(client("-i 2 host"), client("-i2 host"));
}

/// The source of 8.2.2: an option without a value takes the next argument if that can be one.
#[test]
fn an_optional_value_is_not_taken_for_a_host() {
    assert_eq!(client("-j max -T3 h"), client("-jmax -T3 h"));
    assert_eq!(client("-j h").jitter, 4);
    assert_eq!(client("-o 192.0.2.1"), client("192.0.2.1 -o"));
    assert_eq!(client("-T 3 192.0.2.1"), client("-T3 192.0.2.1"));
    assert_eq!(client("-n 192.0.2.1").host, "192.0.2.1");
    assert_eq!(client("-ws 32 -wb 64 h"), client("-ws32 -wb64 h"));
    assert_eq!(client("-xc 1 h"), client("-xc1 h"));
}

/// What 8.2.2 does: `-j` implies UDP and an instantaneous rate.
#[test]
fn jitter_is_over_udp_at_an_instantaneous_rate() {
    let jitter = client("-j h");
    assert!(jitter.udp && jitter.instantaneous);
    assert_eq!((jitter.jitter, client("-jmao h").jitter, client("-jo h").jitter), (4, 1 | 2 | 8, 4 | 8));
    assert_eq!((client("-o h").one_way_delay, client("-omx h").one_way_delay), (2, 1 | 4));
    assert!(!client("-o h").udp);
    assert!(!client("-u -R10m h").instantaneous, "only -j and -Ri are");
    assert_eq!(mistake("-j -R0 h"), "jitter option not supported for unlimited rate\n");
    assert_eq!(mistake("-j -Ra1m h"), "jitter option requires \"-Ri\" instantaneous rate limit option\n");
    assert_eq!(mistake("-u -F h"), "flip option not supported for UDP\n");
}

#[test]
fn ports_of_both_ends_can_be_given() {
    let options = client("-p5200:5201 -P4999:5002 h");
    assert_eq!((options.source_port, options.data_port), (Some(5200), 5201));
    assert_eq!((options.control_source_port, options.control_port), (Some(4999), 5002));
    assert_eq!(options.request(None).srcport, 5200);
    assert_eq!(mistake("-p80:5201 h"), "invalid source port = 80\n");
    assert_eq!(mistake("-P5000:80 h"), "invalid ctlport = 80\n");
    assert_eq!(mistake("-p65535 -N2 h"), "invalid port/nstream = 65535/2\n");
    assert_eq!(mistake("-S -P5000:5001"), "can't specify source control port in server mode\n");
}

#[test]
fn x_is_a_cpu_and_no_traceroute() {
    assert_eq!(client("-xc1 h").affinity, Some(1));
    let both = client("-xc0/2 h");
    assert_eq!(
        (both.affinity, both.server_affinity, both.request(None).affinity),
        (Some(0), Some(2), Some(2))
    );
    assert_eq!((client("-xcs3 h").affinity, client("-xcs3 h").server_affinity), (None, Some(3)));
    assert_eq!(mistake("-xc-1 h"), "invalid affinity = -1\n");
    assert_eq!(mistake("-xc1024 h"), "invalid affinity = 1024\n");
    assert_eq!(mistake("-xcsx h"), "invalid srvr_affinity = x\n");
    assert_eq!(mistake("-xq h"), "invalid x option \"q\"\n");
}

#[test]
fn rates_and_sizes_have_all_units_of_8_2_2() {
    let rate = |line: &str| client(line).rate;
    assert_eq!(
        (rate("-Ra10m h"), rate("-Ru h")),
        (Some(RateLimit::Kbps(10_000)), Some(RateLimit::Unlimited))
    );
    assert_eq!(
        (rate("-R2kp h"), rate("-R1mp h")),
        (Some(RateLimit::Pps(2000)), Some(RateLimit::Pps(1_000_000)))
    );
    assert_eq!(client("-Ri10m --packet-burst 7 h").burst, 7);
    assert_eq!(client("-n1000b -l1000 h").bytes, Some(1000));
    assert_eq!(client("-n1t h").bytes, Some(1 << 40));
    assert_eq!(client("-w100b h").window, Some(100));
    assert_eq!(
        (client("-c5p h").tos, client("-c010 h").tos, client("-c0x10 h").tos),
        (0xa0, 8 << 2, 16 << 2)
    );
    assert_eq!(mistake("-c8p h"), "invalid precedence = 8\n");
    assert_eq!(mistake("-c64 h"), "invalid dscp = 64\n");
    assert_eq!(client("-T1d h").time, Some(Span::from_secs(86_400)));
    assert_eq!(client("-T30d h").time, Some(Span::from_secs(30 * 86_400)), "it was cut to a day");
    for (line, name, seconds) in
        [("-T30000d h", "timeout", 2_592_000_000_u64), ("-i1000000h h", "interval", 3_600_000_000)]
    {
        let text = format!("invalid {name} = {seconds}.000000: give at most 2147483647 seconds\n");
        assert_eq!(mistake(line), text);
    }
    assert_eq!(mistake("-T-1 h"), "invalid timeout = -1.000000\n");
}

#[test]
fn what_does_not_fit_into_a_short_block_is_reported() {
    for (line, warning) in [
        ("-u -i.5 -l31 h", "Unable to print interval loss information if UDP buflen < 32"),
        ("-jo -l31 h", "Unable to check out of order when calculating jitter if UDP buflen < 32"),
        ("-u -o -l15 h", "Unable to calculate one-way delay if UDP buflen < 16"),
        ("-l31 h", "Unable to print retransmission information if TCP buflen < 32"),
    ] {
        assert_eq!(read(line).0, [warning], "{line}");
    }
}
