//! The command line of NPtcp 3.7.2.

use std::ffi::OsString;

use lexopt::{Arg, Parser};
use linerate_model::{HostKnobs, SocketKnobs, Sweep, TestSpec};
use linerate_units::Bytes;

use super::PORT;
use crate::stand_in::LinkOptions;

/// The direction and order of the messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NetpipeMode {
    /// Alternately (ping-pong).
    #[default]
    PingPong,
    /// Only from the transmitter (`-s`).
    Stream,
    /// In both directions at once (`-2`).
    Both,
}

/// The options, which must be the same at both ends, and the name of the result file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetpipeOptions {
    /// The direction and order of the messages.
    pub mode: NetpipeMode,
    /// First size, bytes (`-l`).
    pub start: u64,
    /// Last base of the sizes, bytes (`-u`).
    pub upper: u64,
    /// Distance of each base's neighbours, bytes (`-p`).
    pub perturbation: u64,
    /// Messages per trial; absent for as many as take 0.1 s (`-n`).
    pub repeats: Option<u32>,
    /// Socket buffers, bytes (`-b`).
    pub buffers: Option<u64>,
    /// A new connection after each trial (`-r`).
    pub reset: bool,
    /// Check the data instead of measuring the time (`-i`).
    pub integrity: bool,
    /// Keep messages out of the cache (`-I`).
    pub cold: bool,
    /// Port (`-P`).
    pub port: u16,
    /// Name of the result file (`-o`).
    pub output: String,
}

impl Default for NetpipeOptions {
    fn default() -> Self {
        Self {
            mode: NetpipeMode::PingPong,
            start: 1,
            upper: 10_000_000,
            perturbation: 3,
            repeats: None,
            buffers: None,
            reset: false,
            integrity: false,
            cold: false,
            port: PORT,
            output: "np.out".to_owned(),
        }
    }
}

impl NetpipeOptions {
    /// Whether every trial has its own connection.
    #[must_use]
    pub fn resets(&self) -> bool {
        self.reset || self.mode == NetpipeMode::Stream
    }

    pub(super) fn link(&self) -> LinkOptions {
        LinkOptions { no_delay: true, snd_buf: self.buffers, rcv_buf: self.buffers, ..LinkOptions::default() }
    }

    pub(super) fn spec(&self) -> TestSpec {
        let sweep = Sweep {
            stream: self.mode == NetpipeMode::Stream,
            bidir: self.mode == NetpipeMode::Both,
            from: Bytes::new(self.start),
            to: Bytes::new(self.upper),
            perturb: self.perturbation,
            trials: super::series::TRIALS,
            ..Sweep::default()
        };
        let mut spec = TestSpec::of_sweep(sweep, SocketKnobs::default(), HostKnobs::default());
        spec.socket.window = self.buffers.map(Bytes::new);
        spec
    }
}

/// A parsed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetpipeCommand {
    /// The receiver's host; absent for the receiver itself.
    pub host: Option<String>,
    /// The options.
    pub options: NetpipeOptions,
    /// Text to print first, on standard output.
    pub banner: String,
}

/// A command line that ends the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetpipeEarlyExit {
    /// Text for standard output.
    pub output: String,
    /// Text for standard error.
    pub error: String,
    /// Exit code.
    pub code: i32,
}

const USAGE: &str = "
 NETPIPE USAGE \n
  NPtcp [OPTIONS]           wait for the transmitter
  NPtcp -h \
                     HOST [OPTIONS]   measure the path to the receiver; give both ends the same options

  \
                     -l SIZE   first message size [1]        -u SIZE   last one [10000000]
  -p N      also \
                     N bytes below and above each size, 0 for none [3]
  -n N      messages per trial, \
                     instead of as many as take a tenth of a second
  -s        one direction only            \
                     -2        both directions at once
  -r        a new connection for every trial
  -I        \
                     messages from memory that no cache holds
  -i        check every byte instead of \
                     measuring time
  -b BYTES  send and receive buffers      -P PORT   port [5002]
  -o \
                     FILE   output file of the points [np.out]  -O N[,M]  offsets of the buffers

 -a, -A \
                     and -B are not supported: this is plain TCP with one message at a time.

";

impl NetpipeCommand {
    /// Parses the arguments after the program's name.
    ///
    /// # Errors
    /// The output and exit code of the tool if it does not start.
    pub fn parse(arguments: &[OsString]) -> Result<Self, NetpipeEarlyExit> {
        let mut reader = NetpipeArgvReader {
            command: Self { host: None, options: NetpipeOptions::default(), banner: String::new() },
            both: 0,
        };
        let mut parser = Parser::from_args(arguments);
        loop {
            match parser.next() {
                Ok(None) => break,
                Ok(Some(Arg::Value(_))) => {}
                Ok(Some(Arg::Short(option))) => reader.option(option, &mut parser)?,
                Ok(Some(Arg::Long(name))) => return Err(reader.usage(&format!("invalid option -- '{name}'"))),
                Err(error) => return Err(reader.usage(&error.to_string())),
            }
        }
        reader.finish()
    }
}

struct NetpipeArgvReader {
    command: NetpipeCommand,
    /// Number of `-s` and `-2` options.
    both: u8,
}

impl NetpipeArgvReader {
    fn option(&mut self, option: char, parser: &mut Parser) -> Result<(), NetpipeEarlyExit> {
        match option {
            's' => self.mode(NetpipeMode::Stream, STREAM),
            '2' => self.mode(NetpipeMode::Both, BOTH),
            'I' => {
                self.command.options.cold = true;
                self.add_line("Performance measured without cache effects\n\n");
            }
            'i' => {
                // The original sets them here, so a later -l or -p still takes effect.
                let options = &mut self.command.options;
                (options.integrity, options.start, options.perturbation) = (true, 5, 0);
                self.add_line("Doing an integrity check instead of measuring performance\n");
            }
            'r' => {
                self.command.options.reset = true;
                self.add_line("Resetting connection after every trial\n");
            }
            'B' => self.add_line(
                "Preposting all receives before a timed run.\nSome would consider this cheating,\nbut it is needed to match some vendor tests.\n",
            ),
            'A' => {
                self.add_line("Using AF_INET_SDP (27) socket family\nNetPIPE: can't open stream socket! errno=97\n");
                let error = "NPtcp: -A needs the sockets of InfiniBand (SDP); leave it out\n";
                return Err(self.end(error.to_owned(), 252));
            }
            'l' | 'u' | 'p' | 'n' | 'b' | 'P' | 'o' | 'O' | 'h' => {
                let Ok(value) = parser.value() else {
                    return Err(self.usage(&format!("option requires an argument -- '{option}'")));
                };
                return self.value(option, value.to_string_lossy().into_owned());
            }
            _ => return Err(self.usage(&format!("invalid option -- '{option}'"))),
        }
        Ok(())
    }

    fn value(&mut self, option: char, text: String) -> Result<(), NetpipeEarlyExit> {
        let number = whole(&text);
        let positive = u64::try_from(number).unwrap_or(0);
        let options = &mut self.command.options;
        match option {
            'l' if positive == 0 => return Err(self.end("Need a starting value >= 1\n".to_owned(), 0)),
            'l' => options.start = positive,
            'u' => options.upper = positive,
            'n' => options.repeats = u32::try_from(number).ok().filter(|repeats| *repeats > 0),
            'b' => options.buffers = (positive > 0).then_some(positive),
            'P' => options.port = number as u16,
            'o' => {
                self.add_line(&format!("Sending output to {text}\n"));
                self.command.options.output = text;
            }
            'O' => {
                // The position of a buffer in memory is up to the engine.
                let receive = text.split_once(',').map_or(number, |(_, receive)| whole(receive));
                self.add_line(&format!(
                    "Transmit buffer offset: {number}\nReceive buffer offset: {receive}\n"
                ));
            }
            'h' => self.command.host = Some(text),
            _ => {
                options.perturbation = positive;
                if positive > 0 {
                    self.add_line(&format!("Using a perturbation value of {positive}\n\n"));
                } else {
                    self.add_line("Using no perturbations\n\n");
                }
            }
        }
        Ok(())
    }

    fn mode(&mut self, mode: NetpipeMode, text: &str) {
        if self.command.options.mode != mode {
            self.both += 1;
        }
        self.command.options.mode = mode;
        self.add_line(text);
    }

    fn add_line(&mut self, text: &str) {
        self.command.banner.push_str(text);
    }

    fn finish(mut self) -> Result<NetpipeCommand, NetpipeEarlyExit> {
        let options = &self.command.options;
        if options.start > options.upper {
            return Err(self.end("Start MUST be LESS than end\n".to_owned(), 36));
        }
        if self.both > 1 {
            self.add_line("You can't use -s and -2 together\n");
            return Err(self.end(String::new(), 0));
        }
        Ok(self.command)
    }

    fn usage(&mut self, error: &str) -> NetpipeEarlyExit {
        self.add_line(USAGE);
        self.end(format!("NPtcp: {error}\n"), 244)
    }

    fn end(&mut self, error: String, code: i32) -> NetpipeEarlyExit {
        NetpipeEarlyExit { output: std::mem::take(&mut self.command.banner), error, code }
    }
}

/// The integer at the start of a text, parsed like C's atoi(3); 0 if there is none.
fn whole(text: &str) -> i32 {
    let text = text.trim_start();
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    let digits = digits.bytes().take_while(u8::is_ascii_digit);
    let value = digits.fold(0_i32, |value, digit| {
        value.saturating_mul(10).saturating_add(i32::from(digit.wrapping_sub(b'0')))
    });
    if negative { -value } else { value }
}

const STREAM: &str = "Streaming in one direction only.

Sockets are reset between trials to avoid
degradation from a collapsing window size.

Streaming does not provide an accurate
measurement of the latency since small
messages may get bundled together.

";

const BOTH: &str = "Passing data in both directions simultaneously.
Output is for the combined bandwidth.
The socket buffer size limits the maximum test size.

";
