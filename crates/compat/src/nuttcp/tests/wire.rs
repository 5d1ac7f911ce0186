use linerate_units::Span;

use crate::nuttcp::{LineSplitter, NuttcpFormat, NuttcpRequest, NuttcpVersion};
use linerate_model::sniff::Match;

/// The request of a transcript.
fn request_of(transcript: &str) -> &str {
    transcript.lines().filter_map(|line| line.strip_prefix("C ")).nth(1).unwrap()
}

const OLD: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v612-tx-interval.txt");
const NEW: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v822-tx-interval.txt");
const MIXED: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v822-client-v612-server.txt");
const UDP: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v612-udp-tx.txt");
const JITTER: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v822-udp-jitter-owd.txt");

#[test]
fn versions_are_numbers() {
    assert_eq!(NuttcpVersion::parse_greeting("HELO nuttcp v6.1.2"), Some(NuttcpVersion::new(60_102)));
    assert_eq!(NuttcpVersion::new(60_102).to_string(), "6.1.2");
    assert_eq!(NuttcpVersion::REPORTED.greeting(), b"HELO nuttcp v8.2.2\n");
    for wrong in ["HELO nuttcp", "HELO nuttcp v", "HELO nuttcp v1.2.3.4", "HELO nuttcp v100.0.0", "hello"] {
        assert_eq!(NuttcpVersion::parse_greeting(wrong), None, "{wrong}");
    }
}

#[test]
fn a_request_is_what_the_real_client_of_this_version_sends() {
    let asked = NuttcpRequest {
        timeout: Span::from_secs(3),
        interval: Span::from_secs(1),
        ..NuttcpRequest::default()
    };
    assert_eq!(asked.encode(NuttcpVersion::REPORTED), format!("{}\n", request_of(NEW)).into_bytes());
    let asked = NuttcpRequest { timeout: Span::from_secs(2), ..asked };
    assert_eq!(asked.encode(NuttcpVersion::new(60_102)), format!("{}\n", request_of(MIXED)).into_bytes());
    let asked = NuttcpRequest {
        buflen: 1024,
        rate_kbps: Some(5000),
        timeout: Span::from_secs(3),
        udp: true,
        irate: true,
        do_jitter: 4,
        do_owd: 2,
        ..asked
    };
    assert_eq!(asked.encode(NuttcpVersion::REPORTED), format!("{}\n", request_of(JITTER)).into_bytes());
}

#[test]
fn an_old_server_gets_only_what_it_knows() {
    let asked = NuttcpRequest { timeout: Span::from_ms(2500), ..NuttcpRequest::default() };
    let text = |version| String::from_utf8(asked.encode(NuttcpVersion::new(version))).unwrap();
    assert!(text(30_100).ends_with("timeout = 2, udp = 0, vers = 8.2.2\n"), "{}", text(30_100));
    assert!(text(30_401).ends_with("vers = 8.2.2, interval = 0.000000, reverse = 0\n"));
    assert!(text(50_101).ends_with("thirdparty = _NULL_ , multicast = 0\n"));
}

#[test]
fn real_requests_are_understood() {
    let old = NuttcpRequest::decode(request_of(OLD)).unwrap();
    assert_eq!(old.timeout, Span::from_secs(3));
    assert_eq!(old.interval, Span::from_secs(1));
    assert_eq!((old.buflen, old.nbuf, old.rate_kbps, old.port), (65_536, None, None, 5001));
    assert!(old.trans && !old.udp && !old.flip && !old.third_party);
    assert_eq!(old.vers, NuttcpVersion::new(60_102));
    assert_eq!(old.format, NuttcpFormat(0x800));
    let udp = NuttcpRequest::decode(request_of(UDP)).unwrap();
    assert_eq!((udp.udp, udp.rate_kbps, udp.buflen), (true, Some(10_000), 1024));
    let jitter = NuttcpRequest::decode(request_of(JITTER)).unwrap();
    assert_eq!((jitter.do_jitter, jitter.do_owd, jitter.irate), (4, 2, true));
    assert_eq!(NuttcpRequest::decode(&request_of(OLD).replace("tos = 0", "tos = b8")).unwrap().tos, 0xb8);
    assert!(NuttcpRequest::decode(&request_of(OLD).replace("_NULL_", "-t;host")).unwrap().third_party);
}

#[test]
fn a_broken_request_is_none() {
    let whole = request_of(OLD);
    let broken = [
        "garbage".to_owned(),
        String::new(),
        whole.replace("buflen = 65536, ", ""),
        whole.replace("nbuf = 2147483647, win = 0", "win = 0, nbuf = 1"),
        whole.replace("65536", "-1"),
        whole.replace("3.000000", "nan"),
        whole.replace("tos = 0", "tos = 1ff"),
        whole.replace("6.1.2", "six"),
    ];
    for line in broken {
        assert_eq!(NuttcpRequest::decode(&line), None, "{line}");
    }
}

#[test]
fn lines_come_whole_however_they_are_cut() {
    let mut lines = LineSplitter::default();
    for byte in b"HELO nuttcp v6.1.2\r\nrest" {
        lines.push(&[*byte]);
        if *byte == b'\n' {
            assert_eq!(lines.pull().as_deref(), Some("HELO nuttcp v6.1.2"));
        }
        assert_eq!(lines.pull(), None);
    }
    assert_eq!(lines.rest(), "rest");
    lines.push(&[b'x'; 10_000]);
    assert_eq!(lines.pull().unwrap().len(), 4096);
    assert_eq!(lines.pull().unwrap().len(), 4096);
    assert_eq!(lines.pull(), None);
}

#[test]
fn a_connection_is_known_by_its_first_bytes() {
    let sniff = crate::nuttcp::NUTTCP.sniff;
    assert_eq!(sniff(b"HELO nuttcp v6"), Match::Yes);
    assert_eq!(sniff(b"HELO "), Match::More);
    assert_eq!(sniff(b""), Match::More);
    assert_eq!(sniff(b"HELO mail"), Match::No);
}
