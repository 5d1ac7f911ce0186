//! NTttcp: the stand-ins of both dialogues and roles, the splitting of numbers, the command line.

use linerate_compat::ntttcp::{
    NtttcpOptions, NtttcpReceiver, NtttcpRole, NumberSplitter, WindowsOptions, parse, stand_in,
};
use linerate_units::Span;

use crate::noisy_host::play;

/// The first byte selects role and options, the rest is the script.
pub fn ntttcp(bytes: &[u8]) {
    if let Some((first, script)) = bytes.split_first() {
        run(*first, script);
    }
}

/// Whether a run was completed.
fn run(first: u8, script: &[u8]) -> bool {
    let sends = first & 1 != 0;
    let windows = WindowsOptions {
        tokens: first & 4 != 0,
        announces_ports: first & 8 != 0,
        buffers: (first & 64 != 0).then_some(3),
        ..WindowsOptions::default()
    };
    let options = NtttcpOptions {
        role: if sends { NtttcpRole::Sender } else { NtttcpRole::Receiver },
        address: sends.then(|| "127.0.0.1".to_owned()),
        ports: 2,
        threads: 1,
        seconds: u32::from(first & 32 == 0) * 2,
        omit: u32::from(first & 16 != 0),
        sync: first & 4 == 0,
        many: first & 8 != 0,
        last: first & 8 != 0,
        udp: first & 64 != 0,
        verbose: true,
        xml: Some("x".to_owned()),
        json: Some("j".to_owned()),
        windows: (first & 2 != 0).then_some(windows),
        ..NtttcpOptions::default()
    };
    numbers(script);
    let words = String::from_utf8_lossy(script);
    let words: Vec<_> = words.split(' ').map(Into::into).collect();
    if let Ok(options) = parse(&words) {
        assert!(options.streams() > 0 && options.block() > 0);
    }
    if first & 0x83 == 0x80 {
        play(NtttcpReceiver::new(options, true, Span::ZERO), script)
    } else {
        play(stand_in(options, Span::ZERO), script)
    }
}

/// However the bytes are split, the numbers are the same.
fn numbers(bytes: &[u8]) {
    let whole = NumberSplitter::default().push(bytes);
    assert_eq!(whole.len(), bytes.len() / 4);
    let mut pieces = NumberSplitter::default();
    let cut: Vec<i32> = bytes.chunks(3).flat_map(|piece| pieces.push(piece)).collect();
    assert_eq!(cut, whole);
}

/// Every role up to the end of a test.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let number_message = |number: u8| vec![3, 0, 4, 0, 0, 0, number];
    let mut seeds = Vec::new();
    let opened = |links: usize| [0, 0].repeat(links);
    // The Linux receiver: listeners, a sender, two data connections, a test of two seconds, the flow's end.
    for options in [0, 8, 16, 64, 0x80] {
        // A server reserves a place before it answers, and waits for the last connections before it asks.
        let serves = options == 0x80;
        let (place, gathered) = if serves { (vec![7, 0], vec![10, 1]) } else { (Vec::new(), Vec::new()) };
        let dialogue = [
            opened(3),
            vec![2, 0],
            number_message(b'X'),
            place,
            number_message(2),
            vec![2, 1, 2, 2],
            number_message(if options == 8 { b'L' } else { b'R' }),
            gathered,
            vec![7, 0, 8, 0, 0, 9, 200, 8, 1, 0, 4, 0, 10, 5],
        ];
        seeds.push([vec![options], dialogue.concat()].concat());
    }
    // Two tests at a server; the flow of the first never ends.
    let begin = [
        vec![2, 0],
        number_message(b'X'),
        vec![7, 0],
        number_message(2),
        vec![2, 1],
        number_message(b'R'),
        vec![10, 1, 7, 0, 8, 0, 0, 10, 20],
    ]
    .concat();
    seeds.push([vec![0x80], opened(3), begin.repeat(2)].concat());
    seeds.push([vec![4], opened(2), vec![2, 0, 2, 1, 9, 3, 7, 0, 8, 0, 0, 9, 200, 8, 1, 0, 10, 5]].concat());
    // The Linux sender, with and without a sync connection.
    for options in [1, 9, 17, 65] {
        let dialogue = [
            opened(1),
            number_message(11),
            number_message(2),
            opened(8),
            number_message(b'R'),
            vec![8, 0, 0, 9, 250, 8, 1, 0, 10, 5],
        ];
        seeds.push([vec![options], dialogue.concat()].concat());
    }
    seeds.push([vec![5], opened(8), vec![8, 0, 0, 9, 250, 8, 1, 0, 10, 5]].concat());
    // The Windows dialogue.
    let end = vec![7, 0, 8, 0, 0, 9, 250, 8, 1, 0, 10, 5];
    let token = |link: u8| vec![3, link, 1, b'X'];
    for options in [2, 66] {
        seeds.push([vec![options], opened(2), vec![2, 0, 2, 0], end.clone()].concat());
    }
    let with_tokens = [vec![2, 0, 2, 1, 2, 0, 2, 0], token(1), token(2)].concat();
    seeds.push([vec![6], opened(4), with_tokens, end.clone()].concat());
    seeds.push([vec![10], opened(3), vec![2, 0, 2, 1, 2, 1], end.clone()].concat());
    let port = [3, 0, 4, 0x8a, 0x13, 0, 0];
    seeds.push([vec![3], opened(2), end.clone()].concat());
    seeds.push([vec![67], opened(2), end.clone()].concat());
    seeds.push([vec![7], opened(4), token(2), token(2), end.clone()].concat());
    seeds.push([vec![11], opened(2), port.repeat(2), opened(2), end].concat());
    seeds.push(b"\x00-s -m 2,*,127.0.0.1 -B 20M -b 1K -t 2".to_vec());
    seeds.push(b"\x00--windows -s -m 2,*,127.0.0.1 1,1,127.0.0.1 -sp -t 2".to_vec());
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_reach_the_end_of_a_test() {
        for seed in seeds().iter().filter(|seed| seed[0] != 0 || seed[1] == 0) {
            assert!(run(seed[0], &seed[1..]), "{seed:?}");
        }
    }
}
