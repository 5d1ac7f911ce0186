//! NetPIPE: the stand-ins of both roles, and its short messages.

use linerate_compat::netpipe::{
    NetpipeCommand, NetpipeMode, NetpipeOptions, NetpipeReceiver, NetpipeTransmitter, check_integrity,
    decode_time, encode_time, integrity,
};

use crate::noisy_host::play;

/// The first byte selects role and options, the rest is the script.
pub fn netpipe(bytes: &[u8]) {
    if let Some((first, script)) = bytes.split_first() {
        run(*first, script);
    }
}

/// Whether a run was completed.
fn run(first: u8, script: &[u8]) -> bool {
    let options = NetpipeOptions {
        mode: [NetpipeMode::PingPong, NetpipeMode::Stream, NetpipeMode::Both, NetpipeMode::PingPong]
            [usize::from(first % 4)],
        upper: 300,
        repeats: (first & 16 != 0).then_some(2),
        reset: first & 4 != 0,
        integrity: first & 8 != 0,
        ..NetpipeOptions::default()
    };
    messages(script);
    match first & 0xc0 {
        0 => play(NetpipeTransmitter::new("here", options), script),
        0x40 => play(NetpipeReceiver::new(options, false), script),
        _ => play(NetpipeReceiver::new(options, true), script),
    }
}

fn messages(bytes: &[u8]) {
    if let Some(seconds) = decode_time(bytes) {
        assert_eq!(encode_time(seconds), bytes, "a time must survive");
    }
    if check_integrity(bytes).is_ok() {
        let whole = bytes.len() / 4 * 4;
        assert_eq!(integrity(bytes.len())[..whole], bytes[..whole]);
    }
    let words = String::from_utf8_lossy(bytes);
    let words: Vec<_> = words.split(' ').map(Into::into).collect();
    let _ = NetpipeCommand::parse(&words);
}

/// Every role up to the middle of its sweep.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let exchange = |text: &[u8]| [&[5, 3, text.len() as u8], text].concat();
    let regular = |number: usize| (0..number).flat_map(|_| exchange(b"")).collect::<Vec<u8>>();
    let mut seeds = vec![[&[0, 0, 0, 0, 0], regular(40).as_slice()].concat()];
    for options in [1, 2, 4, 8, 16, 24] {
        seeds.push([&[options, 0, 0, 0, 0], regular(20).as_slice(), &[9, 5, 0, 0], &regular(9)].concat());
    }
    for options in [0x40, 0x41, 0x42, 0x48, 0x80] {
        let begin = [options, 0, 0, 2, 0, 3, 0, 4, b'S', b'y', b'n', b'c', 7, 0];
        let mut whole = begin.to_vec();
        let messages: [&[u8]; 6] = [b"Me", b"", b"SyncMe", b"SyncM", b"e", &[0, 0, 0, 2]];
        let trials: [&[u8]; 5] = [b"SyncMe", b"", b"SyncMe", b"", b"QUIT\0"];
        whole.extend(messages.iter().chain(&trials).flat_map(|text| exchange(text)));
        whole.extend([2, 0, 10, 40]);
        seeds.push(whole);
    }
    seeds.push(b"\x00-h there -n 5 -p 0 -l 17 -O 1,3 -s".to_vec());
    seeds
}
