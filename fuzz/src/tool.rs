//! ttcp and iperf 2: both roles, messages and command lines.

use linerate_compat::{iperf2, ttcp};

use crate::noisy_host::{play, received};

/// ttcp in the role and with the options that the first byte selects.
pub fn ttcp(script: &[u8]) {
    let lines = [
        "-r -s",
        "-r -s -u",
        "-r -u",
        "-r -B -l 7",
        "-t -s -n 9 h",
        "-t -u -s h",
        "-t -u h",
        "-t h",
        "-t -S -s",
        "--like ohio -t -s -P h",
        "--like pcattcp -c -t -u h",
    ];
    let Some((choice, script)) = script.split_first() else { return };
    let settings = match lines.get(usize::from(*choice)) {
        Some(line) => ttcp::parse("ttcp", &line.split(' ').map(str::to_owned).collect::<Vec<_>>()).ok(),
        None => Some(ttcp::TtcpSettings::server(5001)),
    };
    if let Some(settings) = settings {
        play(ttcp::Ttcp::new(settings), script);
    }
}

/// Command lines of ttcp: arguments separated by a space.
pub fn ttcp_argv(line: &[u8]) {
    let words: Vec<String> = String::from_utf8_lossy(line).split(' ').map(str::to_owned).collect();
    match ttcp::parse("ttcp", &words) {
        Ok(settings) => assert!(settings.length > 0 && settings.count > 0 && settings.port > 0),
        Err(refusal) => assert!(!refusal.text.is_empty()),
    }
}

/// The client or server of iperf 2 with the options that the first byte selects.
pub fn iperf2(script: &[u8]) {
    let lines = [
        "-s",
        "-s -u -i 1",
        "-s -P 2 -e",
        "-s -1 -y C -t 9",
        "-c h -t 1 -i 1",
        "-c h -u -t 1 -P 2",
        "-c h -n 100000 -l 1000 -P 3",
        "-c h -R -X",
        "-c h -u -R",
        "-c h --full-duplex -e",
        "-c h -d -L 5002",
        "-c h -u -r -L 5002",
        "-c h -u -C -b 10pps -l 20",
        "-c h --trip-times -l 100 -P 2 -i 1",
        "-c h --trip-times --full-duplex",
        "-c h -u --trip-times -R",
    ];
    let Some((choice, script)) = script.split_first() else { return };
    let settings = match lines.get(usize::from(*choice)) {
        Some(line) => iperf2::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()),
        None => Ok(iperf2::Iperf2Settings::server(5001)),
    };
    match settings {
        Ok(settings) if settings.server => _ = play(iperf2::Iperf2Server::new(settings), script),
        Ok(settings) => _ = play(iperf2::Iperf2Client::new(settings), script),
        Err(refusal) => assert!(!refusal.text.is_empty()),
    }
}

/// Headers, numbers and reports of iperf 2; what decodes encodes to the same message again.
pub fn iperf2_wire(bytes: &[u8]) {
    let _ = (iperf2::IPERF2.sniff)(bytes);
    if let Ok(Some((header, length))) = iperf2::TestHeader::read_tcp(bytes) {
        assert!(length <= bytes.len());
        if let Some(header) = header {
            let written = header.write_tcp();
            assert_eq!(iperf2::TestHeader::read_tcp(&written), Ok(Some((Some(header), written.len()))));
        }
    }
    let (opening, _) = iperf2::opening_header(bytes);
    let _ = iperf2::number_of(bytes, opening);
    let between = |wide| iperf2::Generation::Between { wide };
    for generation in [iperf2::Generation::Old, between(false), between(true), iperf2::Generation::New] {
        // A client reads no report that is shorter than number, time and counts.
        let report = iperf2::ServerReport::default().encode(generation, bytes);
        assert!(report.len() >= generation.header_bytes() + 40);
        if let Some(number) = iperf2::number_of(bytes, generation) {
            assert_ne!(number, i64::MIN, "a negative number has an opposite");
        }
    }
    if let Some(ack) = iperf2::Ack::decode(bytes) {
        assert_eq!(iperf2::Ack::decode(&ack.encode()), Some(ack));
    }
    if let Some(report) = iperf2::ServerReport::decode(bytes) {
        let again = iperf2::ServerReport::decode(&report.encode(iperf2::Generation::New, bytes));
        assert_eq!(again.map(|again| again.transit.is_some()), Some(report.transit.is_some()));
        // Squares of times are rounded; the counts are exact.
        let counts = |report| iperf2::ServerReport { transit: None, ..report };
        assert_eq!(again.map(counts), Some(counts(report)));
    }
}

/// Command lines of iperf 2: arguments separated by a space.
pub fn iperf2_argv(line: &[u8]) {
    let words: Vec<String> = String::from_utf8_lossy(line).split(' ').map(str::to_owned).collect();
    match iperf2::parse(&words) {
        Ok(settings) => assert!(settings.server != settings.host.is_some()),
        Err(refusal) => assert!(!refusal.text.is_empty()),
    }
}

/// Scripts of iperf 2: the role, then steps.
pub(crate) fn iperf2_scripts() -> Vec<Vec<u8>> {
    let mut header = vec![0; 60];
    header[..4].copy_from_slice(&[0x40, 1, 0, 0x78]);
    header[7] = 1;
    header[10..12].copy_from_slice(&[0x13, 0x89]);
    header[20..24].copy_from_slice(&[0xff, 0xff, 0xff, 0x38]);
    let incoming = |which: u8, bytes: &[u8]| [&[12, which, bytes.len() as u8][..], bytes].concat();
    let mut datagram = vec![0; 16];
    datagram[3] = 1;
    datagram.extend(&header);
    datagram[16..20].copy_from_slice(&[0x48, 1, 0, 0x98]);
    let mut last = datagram.clone();
    last[..4].fill(0xff);
    last[12..16].fill(0xff);
    let mut answer = vec![0; 128];
    answer[16] = 0x88;
    let ack = [&[0, 0, 0, 2, 0, 0, 0, 28][..], &[0; 20]].concat();
    let mut all = Vec::new();
    for role in 0..14 {
        let tcp = [received(0, &header), received(0, &ack)].concat();
        let udp = [incoming(0, &datagram), vec![0, 0], incoming(0, &datagram)].concat();
        // Admitted, started, time, written, ended, and the same for a second flow.
        let flow = [8, 1, 0, 9, 60, 8, 0, 0, 8, 1, 0];
        let moving = [&[7, 1], &flow[..], &[0, 0, 0, 0], &flow].concat();
        let ending =
            [incoming(1, &answer), incoming(1, &last), vec![4, 1, 4, 1, 10, 12, 10, 12, 11, 0]].concat();
        all.push([&[role, 0, 0, 0, 0, 0, 0, 2, 1][..], &tcp, &udp, &moving, &ending].concat());
    }
    all
}

/// Messages of iperf 2 on the wire.
pub(crate) fn iperf2_messages() -> Vec<Vec<u8>> {
    let mut all = vec![
        [&[0x44, 1, 0, 0xa0, 0, 0, 0, 2, 0, 0, 0x13, 0x89][..], &[0x10; 68]].concat(),
        [&[0x80, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0x13, 0x89][..], &[0xff; 12]].concat(),
        [&[0, 0, 0, 2, 0, 0, 0, 52][..], &[7; 44]].concat(),
        [&[0; 16][..], &[0xc8, 0, 0, 0], &[3; 108]].concat(),
        [&[0xff; 12][..], &[0x80, 0, 0, 0], &[3; 40]].concat(),
    ];
    all.push([&[0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0x48, 1, 0, 0x98][..], &[1; 80]].concat());
    // First and last datagrams of 2.0.10 to 2.0.13, with the pattern or a high half; their -X; their TCP test.
    for (low, high) in [(0_u32, *b"2345"), (0x8000_0013, *b"2345"), (0, [0; 4]), (0x13, [0x80, 0, 0, 0])] {
        for flags in [[0; 4], [0x40, 0, 0, 0], [0x80, 0, 0, 1], *b"6789"] {
            all.push([&low.to_be_bytes()[..], &[9; 8], &high, &flags, &[b'0'; 60]].concat());
        }
    }
    all.push([&[0; 4][..], b"4567890123456789012345678901234567890123"].concat());
    all
}

/// Command lines of iperf 2.
pub(crate) fn iperf2_command_lines() -> Vec<Vec<u8>> {
    [
        "-c h -u -b 1.5m -l 1470 -t 3 -i 0.5 -P 4 -f M -y C",
        "--server --port=5001 -w 128K -N -B 1.2.3.4:9%lo",
        "-S af41 -R -e",
    ]
    .map(|line| line.as_bytes().to_vec())
    .to_vec()
}

/// Command lines.
pub(crate) fn command_lines() -> Vec<Vec<u8>> {
    [
        "-t -s -l 8192 -n 20 -p 5001 -fm -b65536 host",
        "-rsu -B -T -v",
        "--like pcattcp -c -R -w 5 -L 9000 -- x",
    ]
    .map(|line| line.as_bytes().to_vec())
    .to_vec()
}

/// Scripts: the role, then steps.
pub(crate) fn scripts() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for role in [0, 1, 2, 4, 5, 7, 8, 11] {
        // Opened, accepted, datagram, admitted, started, time, ended, time, text, sent, closed.
        let steps =
            [0, 0, 2, 0, 12, 0, 4, 1, 2, 3, 4, 7, 1, 8, 1, 0, 9, 9, 8, 1, 0, 9, 3, 13, 4, 32, 33, 34, 35];
        // Sent, the end of the text, time, closed, time, signal.
        all.push([&[role][..], &steps, &[14, 0, 13, 0, 9, 200, 4, 1, 9, 200, 11, 0]].concat());
    }
    all
}
