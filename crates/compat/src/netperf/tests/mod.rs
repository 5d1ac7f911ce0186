mod read;
mod server;
mod wire;

/// The recorded control connections: the messages of client (true) and server, without the zeros at their ends.
pub(super) fn messages(transcript: &str) -> Vec<(bool, Vec<u8>)> {
    let lines = transcript.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (who, hex) = line.split_at(2);
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            let mut bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
            bytes.resize(super::MESSAGE_BYTES, 0);
            (who == "C ", bytes)
        })
        .collect()
}

macro_rules! transcript {
    ($name:literal) => {
        include_str!(concat!("../../../../../fixtures/transcripts/netperf/", $name, ".txt"))
    };
}
pub(super) use transcript;
