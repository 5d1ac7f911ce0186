//! NPtcp 3.7.2 and ours in all pairs of roles: the same sizes, the same file format, the same error messages.
//!
//! Every transmitter runs in its own folder, as it writes its result to the working directory.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;

use crate::support::{
    self, Done, Folder, LinkSide, NETPIPE, Net, Netns, Process, Program, ServeProcess, TIMEOUT, eventually,
    form, signal,
};

use Program::{Ours, Real};

const HOST: &str = "127.0.0.1";
const PORT: u16 = 5002;

/// Result of a series: the transmitter's output and file, and the receiver's output.
struct NetpipeOutputs {
    transmitter: Done,
    receiver: Done,
    file: String,
}

fn file_of(folder: &Folder) -> String {
    std::fs::read_to_string(folder.file("np.out")).unwrap_or_default()
}

/// A series with the same options at both ends.
fn series(transmitter: Program, receiver: Program, options: &[&str]) -> NetpipeOutputs {
    let (netns, folder) = (Netns::new(), Folder::new());
    let receiving = NETPIPE.start(receiver, &netns, options);
    netns.await_listener(PORT);
    let args = [&["-h", HOST], options].concat();
    // A series is thousands of messages back and forth, and each waits for a CPU at both ends.
    let transmitter = NETPIPE.start_in(transmitter, &netns, folder.path(), &args).finish(4 * TIMEOUT);
    let receiver = receiving.finish(TIMEOUT);
    NetpipeOutputs { transmitter, receiver, file: file_of(&folder) }
}

/// The first column of a file.
fn sizes(file: &str) -> Vec<u64> {
    file.lines().map(|row| row.split_whitespace().next().unwrap_or_default().parse().unwrap()).collect()
}

/// Lines of the transmitter with normalized numbers, except for point, size and repeats.
fn points(transmitter: &Done) -> Vec<String> {
    let point = |line: &str| line.split_once("-->").map(|(known, rest)| format!("{known}-->{}", form(rest)));
    transmitter.stderr.lines().map(|line| point(line).unwrap_or_else(|| line.to_owned())).collect()
}

/// Checks that each row has the original's columns, and that its rate matches its size and time.
fn rows_are_right(file: &str) {
    for row in file.lines() {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [bytes, rate, time] = words.as_slice() else { panic!("three columns: {row:?}") };
        assert_eq!(row, format!("{bytes:>8} {rate} {time:>12}"), "widths of {row:?}");
        assert_eq!(
            (rate.split_once('.').unwrap().1.len(), time.split_once('.').unwrap().1.len()),
            (6, 8),
            "{row:?}"
        );
        let [bytes, rate, time] = [bytes, rate, time].map(|word| word.parse::<f64>().unwrap());
        assert!(rate > 0.0 && time > 0.0, "{row:?}");
        // The time is rounded to 10 ns.
        let [low, high] = [time + 5.1e-9, time - 5.1e-9].map(|time| bytes * 8.0 / time / 1_048_576.0);
        assert!(low - 1e-6 <= rate && rate <= high + 1e-6, "{low} {rate} {high}: {row:?}");
    }
}

/// Series whose sizes do not depend on the speed of the machine.
const KNOWN: [&[&str]; 7] = [
    &["-n", "5", "-u", "300"],
    &["-n", "5", "-l", "1000", "-u", "5000", "-p", "0"],
    &["-n", "5", "-u", "500", "-p", "10"],
    &["-n", "3", "-l", "7", "-u", "1001", "-p", "5", "-b", "65536"],
    &["-n", "5", "-2", "-u", "300"],
    &["-n", "5", "-I", "-u", "200"],
    &["-n", "4", "-l", "3", "-u", "3", "-O", "5,3"],
];

#[test]
#[ignore = "needs root and network namespaces, NPtcp"]
fn sizes_files_and_words_are_those_of_the_original() {
    for options in KNOWN {
        let real = series(Real, Real, options);
        assert!(!real.file.is_empty(), "{options:?} {:?}", real.transmitter);
        for (transmitter, receiver) in [(Ours, Real), (Real, Ours), (Ours, Ours)] {
            let pair = format!("{transmitter:?} {receiver:?} {options:?}");
            let ours = series(transmitter, receiver, options);
            assert_eq!(
                (ours.transmitter.code, ours.receiver.code),
                (Some(0), Some(0)),
                "{pair} {:?}",
                ours.transmitter
            );
            assert_eq!(sizes(&ours.file), sizes(&real.file), "{pair}");
            rows_are_right(&ours.file);
            assert_eq!(points(&ours.transmitter), points(&real.transmitter), "{pair}");
            assert_eq!(ours.transmitter.stdout, real.transmitter.stdout, "{pair}");
            assert_eq!(ours.receiver.stdout, real.receiver.stdout, "{pair}");
            assert_eq!(ours.receiver.stderr, real.receiver.stderr, "{pair}");
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces, NPtcp"]
fn a_connection_for_each_trial_meets_no_race() {
    // Two originals reset each other's connections here, so the expected sizes are those over one connection.
    let expected = sizes(&series(Real, Real, &["-n", "5", "-u", "200"]).file);
    for option in ["-s", "-r"] {
        for (transmitter, receiver) in [(Ours, Real), (Real, Ours), (Ours, Ours)] {
            let ours = series(transmitter, receiver, &["-n", "5", "-u", "200", option]);
            let ends = (&ours.transmitter, &ours.receiver);
            assert_eq!((ends.0.code, ends.1.code), (Some(0), Some(0)), "{option} {ends:?}");
            assert_eq!(sizes(&ours.file), expected, "{option} {ends:?}");
            rows_are_right(&ours.file);
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces, NPtcp"]
fn repeats_are_reckoned_from_the_time_of_the_size_before() {
    for (transmitter, receiver) in [(Ours, Real), (Real, Ours)] {
        let ours = series(transmitter, receiver, &["-l", "64", "-u", "200", "-p", "0"]);
        let rows: Vec<Vec<f64>> = ours
            .file
            .lines()
            .map(|row| row.split_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect();
        let lines = ours.transmitter.stderr.lines().filter(|line| line.contains(" times -->"));
        let repeats: Vec<f64> = lines.map(|line| support::before(line, " times")).collect();
        assert_eq!(sizes(&ours.file), [64, 96, 128, 192], "{:?}", ours.transmitter);
        // n = 0.1 s / (prev / (prev - step + 1) * time of prev), with steps of 32, 64 and 64.
        for (at, step) in [(1, 32.0), (2, 64.0), (3, 64.0)] {
            let (size, time) = (rows[at - 1][0], rows[at - 1][2]);
            let [most, least] =
                [time - 5.1e-9, time + 5.1e-9].map(|time| 0.1 / (size / (size - step + 1.0) * time));
            let n = repeats[at];
            assert!((least - 1.0..=most + 1.0).contains(&n), "{least} {n} {most}: {:?}", ours.transmitter);
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces, NPtcp"]
fn an_integrity_check_passes_and_has_rows_of_repeats() {
    let expected: Vec<u64> = vec![5, 7, 9, 13, 17, 25, 33, 49];
    for (transmitter, receiver) in [(Ours, Real), (Real, Ours)] {
        let ours = series(transmitter, receiver, &["-i", "-u", "60"]);
        assert_eq!((ours.transmitter.code, ours.receiver.code), (Some(0), Some(0)), "{:?}", ours.transmitter);
        assert_eq!(sizes(&ours.file), expected, "{:?}", ours.transmitter);
        let repeats_of_rows: Vec<&str> =
            ours.file.lines().map(|row| row.split_whitespace().nth(1).unwrap()).collect();
        let lines = ours.transmitter.stderr.lines().filter(|line| line.contains(" times -->"));
        for (line, repeats) in lines.zip(repeats_of_rows) {
            let whole = format!(" {repeats} times -->  Integrity check passed");
            assert!(line.ends_with(&whole), "{line:?} {repeats}");
        }
    }
}

/// Forwards one connection between ports, and changes the byte at offset `place` of the answers.
fn falsify(from: u16, to: u16, place: usize) -> impl FnOnce() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, from)).unwrap();
    move || {
        let (near, _) = listener.accept().unwrap();
        let far = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| carry(&near, &far, usize::MAX));
            carry(&far, &near, place);
        });
    }
}

fn carry(mut from: &TcpStream, mut to: &TcpStream, place: usize) {
    let (mut piece, mut passed) = ([0; 4096], 0);
    let _ = to.set_nodelay(true);
    while let Ok(count @ 1..) = from.read(&mut piece) {
        if let Some(byte) = place.checked_sub(passed).and_then(|at| piece[..count].get_mut(at)) {
            *byte ^= 0x40;
        }
        passed += count;
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
#[ignore = "needs root and network namespaces, NPtcp"]
fn one_wrong_byte_ends_an_integrity_check() {
    // Four synchronizations and the calibration precede the first message; the fourth message is changed in its
    // second number.
    let place = 4 * 6 + 100 * 64 + 3 * 64 + 5;
    for (transmitter, receiver) in [(Real, Ours), (Ours, Real), (Ours, Ours)] {
        let (netns, folder) = (Netns::new(), Folder::new());
        let options = ["-i", "-l", "64", "-u", "100"];
        let receiving = NETPIPE.start(receiver, &netns, &[&options[..], &["-P", "5902"]].concat());
        netns.await_listener(5902);
        let carrying = netns.inside(|| falsify(PORT, 5902, place));
        let done = std::thread::scope(|scope| {
            let netns = &netns;
            scope.spawn(move || netns.inside(carrying));
            let args = [&["-h", HOST][..], &options].concat();
            NETPIPE.start_in(transmitter, netns, folder.path(), &args).finish(TIMEOUT)
        });
        assert_eq!(done.code, Some(255), "{transmitter:?} {done:?}");
        assert!(!done.stderr.contains("passed"), "{done:?}");
        let ended = receiving.finish(TIMEOUT);
        assert_ne!(ended.code, Some(0), "{receiver:?} {ended:?}");
    }
}

/// Compares both programs with the same arguments and without a peer.
fn alike(netns: &Netns, folder: &Path, args: &[&str]) {
    let [real, ours] = [Real, Ours].map(|whose| NETPIPE.start_in(whose, netns, folder, args).finish(TIMEOUT));
    assert_eq!((ours.code, &ours.stdout), (real.code, &real.stdout), "{args:?}\n{ours:?}\n{real:?}");
    assert_eq!(ours.stderr, real.stderr, "{args:?}");
}

#[test]
#[ignore = "needs root and network namespaces, NPtcp"]
fn mistakes_are_reported_in_the_words_of_the_original() {
    let (netns, folder) = (Netns::new(), Folder::new());
    let mistakes: [&[&str]; 12] = [
        &[],
        &["-l", "10", "-u", "5"],
        &["-l", "0"],
        &["-s", "-2"],
        &["-P", "5999"],
        &["-n", "0"],
        &["-p", "-1"],
        &["-l", "abc"],
        &["-u", "5", "-2"],
        &["-I", "-i"],
        &["-i", "-2"],
        &["-b", "8192", "-r"],
    ];
    for mistake in mistakes {
        alike(&netns, folder.path(), &[&["-h", HOST], mistake].concat());
    }
    alike(&netns, folder.path(), &["-h", "no-such-host.invalid"]);
    // The usage text is our own.
    let [real, ours] = [Real, Ours].map(|whose| NETPIPE.ask(whose, &netns, &["-Z"]));
    assert_eq!(ours.code, real.code, "{ours:?} {real:?}");
}

#[test]
#[ignore = "needs root and network namespaces, NPtcp"]
fn ends_with_different_options_do_not_wait_for_ever() {
    let cases: [(&[&str], &[&str]); 3] =
        [(&["-s"], &[]), (&[], &["-s"]), (&["-n", "3", "-u", "100"], &["-u", "50"])];
    for (to_transmitter, to_receiver) in cases {
        let (netns, folder) = (Netns::new(), Folder::new());
        let receiving = NETPIPE.start(Ours, &netns, to_receiver);
        netns.await_listener(PORT);
        let args = [&["-h", HOST, "-u", "200"], to_transmitter].concat();
        let transmitter = NETPIPE.start_in(Ours, &netns, folder.path(), &args).finish(TIMEOUT);
        let receiver = receiving.finish(TIMEOUT);
        let errors = transmitter.stderr.clone() + &receiver.stderr;
        assert!(
            errors.contains("the peer uses another mode"),
            "{to_transmitter:?} {transmitter:?} {receiver:?}"
        );
        assert!(transmitter.code == Some(3) || receiver.code == Some(3), "{transmitter:?} {receiver:?}");
    }
}

/// An endless series whose file has its first rows.
fn amid(transmitter: Program, netns: &Netns, folder: &Folder) -> Process {
    let process = NETPIPE.start_in(transmitter, netns, folder.path(), &["-h", HOST]);
    eventually("rows", || (file_of(folder).lines().count() >= 2).then_some(()));
    process
}

#[test]
#[ignore = "needs root and network namespaces, NPtcp"]
fn a_peer_that_is_killed_ends_the_series_and_the_rows_stay() {
    for (transmitter, receiver) in [(Ours, Real), (Real, Ours)] {
        let (netns, folder) = (Netns::new(), Folder::new());
        let receiving = NETPIPE.start(receiver, &netns, &[]);
        netns.await_listener(PORT);
        let transmitting = amid(transmitter, &netns, &folder);
        let (killed, left) =
            if transmitter == Ours { (receiving, transmitting) } else { (transmitting, receiving) };
        signal(killed.pid(), "KILL");
        let done = left.finish(TIMEOUT);
        assert!(matches!(done.code, Some(3 | 145)), "{transmitter:?} {done:?}");
        assert!(done.stdout.contains("errno") || done.stderr.contains("NetPIPE: "), "{done:?}");
        assert!(sizes(&file_of(&folder)).starts_with(&[1, 2]), "{}", file_of(&folder));
    }
}

#[test]
#[ignore = "needs root and network namespaces, NPtcp"]
fn a_server_for_all_tools_answers_the_original() {
    let (net, folder) = (Net::pair(), Folder::new());
    let mut server = ServeProcess::start_in(&net, LinkSide::A, &["--classic"]);
    for _ in 0..2 {
        let mut command = net.exec(LinkSide::B, NETPIPE.program, &["-h", LinkSide::A.address(), "-n", "5"]);
        command.current_dir(folder.path());
        let done = Process::start(command).finish(4 * TIMEOUT);
        assert_eq!(done.code, Some(0), "{done:?}");
        rows_are_right(&file_of(&folder));
        assert!(sizes(&file_of(&folder)).len() > 100, "{done:?}");
    }
    assert!(server.running(), "{}", server.stderr());
}
