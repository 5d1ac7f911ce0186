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
fn nothing_said_means_ten_seconds_of_tcp_to_the_server() {
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
        let (warnings, said) = read(line);
        assert_eq!(warnings, [warning]);
        assert!(matches!(said, NuttcpInvocation::Client(_)), "{line}");
    }
    for line in ["", "-q h", "-t", "a b c", "--nosuch h", "-h"] {
        match read(line).1 {
            NuttcpInvocation::Print { text, code: 1 } => assert!(text.starts_with("Usage: nuttcp"), "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
    assert_eq!(read("-V").1, NuttcpInvocation::Print { text: "nuttcp-8.2.2\n".to_owned(), code: 0 });
}

#[test]
fn what_is_not_done_here_is_refused() {
    for line in ["-xt h", "-m4 h", "a b", "-s -u h", "-s -N2 h", "name/othername"] {
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
    assert!(!server("-S -s").stdio);
    assert_eq!(server("-S --idle-data-timeout 20").idle, [Span::from_secs(20); 3]);
    assert_eq!(server("-S --idle-data-timeout 5/30/60").idle, [5, 30, 60].map(Span::from_secs));
    assert!(matches!(read("-S --idle-data-timeout 9/1/2").1, NuttcpInvocation::Print { .. }));
    let (warnings, said) = read("-r");
    assert!(warnings[0].contains("obsolete \"classic\" mode"));
    assert!(matches!(said, NuttcpInvocation::Server(options) if options.one_shot));
}

#[test]
fn verbosity_adds_up() {
    assert_eq!(client("-v h").verbosity, Verbosity::Verbose);
    assert_eq!(
        (client("-vv h").verbosity, client("-v -v h").verbosity),
        (Verbosity::VeryVerbose, Verbosity::VeryVerbose)
    );
    assert_eq!(client("-v -b h").verbosity, Verbosity::Brief);
}

#[test]
fn a_value_may_stand_behind_a_blank() {
    assert_eq!(client("-T 1 -P 5010 -R 10m -N 2 -I abc host"), client("-T1 -P5010 -R10m -N2 -Iabc host"));
    // A host follows a bare -i, unless the next argument is a number.
    assert_eq!(client("-i host"), client("-i1 host"));
    assert_eq!(client("-i 2 host"), client("-i2 host"));
}
