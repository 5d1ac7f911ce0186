//! The command line of NTttcp for Windows 5.40: options of one or two letters after a dash.

use std::ffi::OsString;

use linerate_units::Bitrate;

use crate::ntttcp::argv::{NtttcpEarlyExit, wrong};
use crate::ntttcp::option_table::OF_WINDOWS;
use crate::ntttcp::options::{NtttcpOptions, NtttcpRole, WindowsOptions};
use crate::option_table;

/// Default number of buffers per thread if no time is given.
const BUFFERS: u64 = 20_480;

/// Most threads with tokens, whose ports are 1000 above the data ports.
const MAX_WITH_TOKENS: u16 = 999;

const MAX_THREADS: u16 = 16_000;

/// Parses the arguments after the program's name and `--windows`.
///
/// # Errors
/// The output and the exit code if the program does not start.
pub(in crate::ntttcp) fn parse(arguments: &[OsString]) -> Result<NtttcpOptions, NtttcpEarlyExit> {
    let mut options = NtttcpOptions { ports: 0, threads: 1, seconds: 0, ..NtttcpOptions::default() };
    let mut windows = WindowsOptions { tokens: true, ..WindowsOptions::default() };
    let (mut role, mut thread_rate) = (None, None);
    let mut words = arguments.iter().map(|word| word.to_string_lossy().into_owned()).peekable();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| wrong(&format!("{word} needs a value")));
        match word.as_str() {
            "-r" => role = Some(NtttcpRole::Receiver),
            "-s" => role = Some(NtttcpRole::Sender),
            "-u" => options.udp = true,
            "-6" => options.ipv6 = true,
            "-v" => options.verbose = true,
            "-ns" => windows.tokens = false,
            "-sp" => windows.announces_ports = true,
            "-ndl" => options.no_delay = true,
            "-hpt" => windows.hides_threads = true,
            // How Windows passes data to its kernel, and how it counts idle time.
            "-w" | "-wa" | "-cfi" | "-nsb" => {}
            "-icp" => drop(number::<i64>(&word, &value()?)?),
            "-a" => drop(words.next_if(|next| !next.starts_with('-'))),
            "-p" => options.base = number(&word, &value()?)?,
            "-t" => options.seconds = number(&word, &value()?)?,
            "-wu" => options.omit = number(&word, &value()?)?,
            "-cd" => options.cooldown = number(&word, &value()?)?,
            "-n" => windows.buffers = Some(bytes(&word, &value()?)?),
            "-l" => options.length = Some(bytes(&word, &value()?)?),
            "-sb" => windows.send_buffer = buffer(&word, &value()?)?,
            "-rb" => windows.receive_buffer = buffer(&word, &value()?)?,
            "-thr" => thread_rate = Some(number::<u32>(&word, &value()?)?),
            "-nic" => options.source = Some(number(&word, &value()?)?),
            "-xml" => {
                let name = words.next_if(|next| !next.starts_with('-'));
                options.xml = Some(name.unwrap_or_else(|| "xml.txt".to_owned()));
            }
            "-m" => {
                mapping(&value()?, &mut options)?;
                while words.peek().is_some_and(|next| next.contains(',')) {
                    mapping(&words.next().unwrap_or_default(), &mut options)?;
                }
            }
            _ => return Err(refused(&word)),
        }
    }
    if let Some(kilobytes) = thread_rate.filter(|kilobytes| *kilobytes > 0) {
        let each = f64::from(kilobytes) * 1024.0 * 8.0;
        options.rate = Bitrate::from_bps(each * f64::from(options.ports));
    }
    options.role = role.ok_or_else(|| wrong("give -r for the receiver or -s for the sender"))?;
    checked(options, windows)
}

fn refused(word: &str) -> NtttcpEarlyExit {
    match option_table::refused(OF_WINDOWS, word) {
        Some(entry) => wrong(&format!("{word} is not supported: {}", entry.remark)),
        None => wrong(&format!("{word} is not an option of the Windows tool")),
    }
}

/// Parses a number of bytes with an optional K, M or G.
fn bytes(name: &str, value: &str) -> Result<u64, NtttcpEarlyExit> {
    let digits = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match value[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(wrong(&format!("'{value}' is not a value for {name}: units are K, M and G"))),
    };
    Ok(number::<u64>(name, digits)?.saturating_mul(1 << shift))
}

/// A socket buffer; a negative one is that of the system.
fn buffer(name: &str, value: &str) -> Result<Option<u64>, NtttcpEarlyExit> {
    if value.starts_with('-') {
        return number::<i64>(name, value).map(|_| None);
    }
    bytes(name, value).map(Some)
}

/// Parses `threads,cpu,address`; all tuples must have the same address here.
fn mapping(value: &str, options: &mut NtttcpOptions) -> Result<(), NtttcpEarlyExit> {
    let fields: Vec<&str> = value.split(',').collect();
    let [threads, cpu, address] = fields.as_slice() else {
        return Err(wrong(&format!("-m takes threads,cpu,address, not '{value}'")));
    };
    if options.address.as_deref().is_some_and(|other| other != *address) {
        return Err(wrong("all tuples of -m must have the same address: use one sender per receiver"));
    }
    let threads: u16 = number("-m", threads)?;
    options.ports = options.ports.saturating_add(threads);
    options.affinity = if *cpu == "*" { None } else { Some(number("-m", cpu)?) };
    options.address = Some((*address).to_owned());
    Ok(())
}

fn checked(
    mut options: NtttcpOptions,
    mut windows: WindowsOptions,
) -> Result<NtttcpOptions, NtttcpEarlyExit> {
    if options.ports == 0 {
        return Err(wrong("-m threads,cpu,address is needed"));
    }
    let most = if windows.tokens { MAX_WITH_TOKENS } else { MAX_THREADS };
    if options.ports > most {
        return Err(wrong(&format!("{} threads are more than {most}", options.ports)));
    }
    let highest = u32::from(options.base) + u32::from(options.ports) + u32::from(super::TOKEN_PORTS);
    if options.base == 0 || highest > u32::from(u16::MAX) {
        return Err(wrong(&format!(
            "the {} ports from {} on and those of their tokens exceed 65535",
            options.ports, options.base
        )));
    }
    let seconds = [options.seconds, options.omit, options.cooldown];
    if seconds.iter().any(|seconds| *seconds > 1 << 28) {
        return Err(wrong("the test time is limited to eight years"));
    }
    if options.seconds == 0 {
        windows.buffers = Some(windows.buffers.unwrap_or(BUFFERS).max(1));
    } else {
        windows.buffers = None;
    }
    options.windows = Some(windows);
    Ok(options)
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, NtttcpEarlyExit> {
    value.parse().map_err(|_| wrong(&format!("'{value}' is not a value for {name}")))
}
