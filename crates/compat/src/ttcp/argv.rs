//! ttcp's command line.

use std::str::FromStr;

use linerate_units::Span;

use super::settings::{RateUnit, TtcpSettings, TtcpVariant};

/// A command line that starts no test: what to print on standard error, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TtcpEarlyExit {
    /// The complete text.
    pub text: String,
    /// The exit code.
    pub code: i32,
}

/// Longest buffer of a TCP test.
const MAX_BUFFER_BYTES: u32 = 64 << 20;

/// Largest payload of a datagram over IPv4.
const MAX_DATAGRAM: u32 = 65_507;

/// Shortest payload of a UDP test: shorter datagrams are marks.
const MIN_DATAGRAM: u32 = 5;

/// Parses the arguments after the program's name.
///
/// The name selects the variant to imitate (`pcattcp`; otherwise SGI); `--like` overrides it.
///
/// # Errors
/// What the tool prints instead of starting a test.
pub fn parse(name: &str, arguments: &[String]) -> Result<TtcpSettings, TtcpEarlyExit> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let (line, rest) = line_of(name, arguments)?;
    let mut settings = TtcpSettings::of(line);
    if rest.is_empty() {
        return Err(usage(line));
    }
    let mut hosts = Vec::new();
    let mut arguments = rest.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix('-') {
            Some("-") => hosts.extend(arguments.by_ref()),
            Some(letters) if !letters.is_empty() => letters_of(&mut settings, letters, &mut arguments)?,
            _ => hosts.push(argument),
        }
    }
    settings.host = if line == TtcpVariant::Pcattcp { hosts.pop() } else { hosts.into_iter().next() };
    checked(settings)
}

/// The variant to imitate, and the arguments without `--like`.
fn line_of(name: &str, arguments: &[String]) -> Result<(TtcpVariant, Vec<String>), TtcpEarlyExit> {
    let mut line = if name.starts_with("pcattcp") { TtcpVariant::Pcattcp } else { TtcpVariant::Sgi };
    let mut rest = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let wanted = match argument.strip_prefix("--like") {
            Some("") => arguments.next().map(String::as_str),
            Some(value) => value.strip_prefix('='),
            None => {
                rest.push(argument.clone());
                continue;
            }
        };
        line = match wanted {
            Some("brl") => TtcpVariant::Brl,
            Some("sgi") => TtcpVariant::Sgi,
            Some("ohio") => TtcpVariant::Ohio,
            Some("pcattcp") => TtcpVariant::Pcattcp,
            _ => return Err(wrong("--like: give brl, sgi, ohio or pcattcp")),
        };
    }
    Ok((line, rest))
}

/// Parses one argument of bundled letters; the value of the last may be the next argument.
fn letters_of(
    settings: &mut TtcpSettings,
    letters: &str,
    arguments: &mut impl Iterator<Item = String>,
) -> Result<(), TtcpEarlyExit> {
    let mut letters = letters.chars();
    while let Some(letter) = letters.next() {
        if switch(settings, letter) {
            continue;
        }
        let known =
            "lnpfbAO".contains(letter) || (settings.line == TtcpVariant::Pcattcp && "wL".contains(letter));
        if !known {
            return Err(usage(settings.line));
        }
        let rest = letters.as_str();
        let value = if rest.is_empty() { arguments.next() } else { Some(rest.to_owned()) };
        return valued(settings, letter, &value.ok_or_else(|| usage(settings.line))?);
    }
    Ok(())
}

/// Handles a letter without a value; false if it is not one.
fn switch(settings: &mut TtcpSettings, letter: char) -> bool {
    match (letter, settings.line) {
        ('t', _) => settings.transmit = true,
        ('r', _) => settings.transmit = false,
        ('u', _) => settings.udp = true,
        ('s', TtcpVariant::Brl) => settings.stdio = false,
        ('s', _) => settings.stdio = !settings.stdio,
        ('D', _) => settings.no_delay = true,
        ('B', _) => settings.whole_blocks = true,
        ('v', _) => settings.verbose = true,
        // SO_DEBUG has no effect on current kernels, and the copy touches every byte anyway.
        ('d' | 'T', _) => {}
        ('P', TtcpVariant::Ohio) => settings.progress = true,
        ('S', TtcpVariant::Ohio) => settings.running_rate = true,
        ('S' | 'C', TtcpVariant::Sgi) => settings.reversed = true,
        ('c', TtcpVariant::Pcattcp) => settings.forever = true,
        ('R', TtcpVariant::Pcattcp) => {
            settings.both = true;
            settings.forever = true;
            settings.transmit = false;
        }
        ('4', TtcpVariant::Sgi) => settings.ipv4 = true,
        ('6', TtcpVariant::Sgi) => settings.ipv6 = true,
        _ => return false,
    }
    true
}

fn valued(settings: &mut TtcpSettings, letter: char, value: &str) -> Result<(), TtcpEarlyExit> {
    match letter {
        'l' => settings.length = number(letter, value)?,
        'n' => settings.count = number(letter, value)?,
        'p' => settings.port = number(letter, value)?,
        'b' => settings.buffer = Some(u64::from(number::<u32>(letter, value)?)),
        'A' => settings.align = number(letter, value)?,
        'O' => settings.offset = number(letter, value)?,
        'w' => settings.write_gap = Some(Span::from_ms(u64::from(number::<u32>(letter, value)?))),
        'L' => settings.byte_rate = Some(number(letter, value)?),
        _ => {
            settings.unit = match value.chars().next() {
                Some('M') => RateUnit::Megabytes,
                Some('G') => RateUnit::Gigabytes,
                Some('k') => RateUnit::Kilobits,
                Some('m') => RateUnit::Megabits,
                Some('g') => RateUnit::Gigabits,
                _ => RateUnit::Kilobytes,
            }
        }
    }
    Ok(())
}

/// Parses an integer. The tools accept any text as a number, which would start an unintended test.
fn number<T: FromStr>(letter: char, text: &str) -> Result<T, TtcpEarlyExit> {
    text.trim().parse().map_err(|_| wrong(&format!("-{letter} {text}: give a number in its range")))
}

/// Checks the combination of the options.
fn checked(mut settings: TtcpSettings) -> Result<TtcpSettings, TtcpEarlyExit> {
    if settings.udp || settings.both {
        settings.length = settings.length.max(MIN_DATAGRAM);
    }
    let longest = if settings.udp { MAX_DATAGRAM } else { MAX_BUFFER_BYTES };
    if settings.length == 0 || settings.length > longest {
        return Err(wrong(&format!("-l {}: give 1 to {longest} bytes", settings.length)));
    }
    if settings.count == 0 {
        return Err(wrong("-n 0: give at least 1 buffer"));
    }
    if settings.port == 0 {
        return Err(wrong("-p 0: give 1 to 65535"));
    }
    if settings.reversed && settings.udp {
        return Err(wrong("-S and -C reverse the connection setup: remove -u"));
    }
    if settings.byte_rate.is_some_and(|rate| rate < 1000) {
        return Err(wrong("-L: give at least 1000 bytes per second"));
    }
    if settings.connects() && settings.host.is_none() {
        return Err(usage(settings.line));
    }
    Ok(settings)
}

fn wrong(what: &str) -> TtcpEarlyExit {
    TtcpEarlyExit { text: format!("ttcp: {what}\n"), code: 1 }
}

fn usage(line: TtcpVariant) -> TtcpEarlyExit {
    let own = match line {
        TtcpVariant::Brl => "  -s       transmit a pattern, receive to nowhere\n",
        TtcpVariant::Sgi => {
            "  -s       toggle: pattern to nowhere instead of standard input to standard output\n  \
             -S, -C   the transmitter listens (-t -S), the receiver connects (-r -C host)\n  \
             -4, -6   use only IPv4, only IPv6\n"
        }
        TtcpVariant::Ohio => {
            "  -s       toggle: pattern to nowhere instead of standard input to standard output\n  \
             -P, -S   show progress, show the running rate\n"
        }
        TtcpVariant::Pcattcp => {
            "  -s       toggle: standard input to standard output instead of pattern to nowhere\n  -c       \
             send forever, or receive repeatedly\n  -R       receive TCP and UDP, any number at once\n  -w \
             MS    pause before each write\n  -L RATE  send at most RATE bytes per second\n"
        }
    };
    let defaults = TtcpSettings::of(line);
    let text = format!(
        "Usage: ttcp -t [options] host [< in]\n       ttcp -r [options] [> out]\nOptions:\n  \
         -l N     bytes of a buffer (default {})\n  -n N     buffers to send (default {})\n  \
         -p N     port (default {})\n  -u       UDP instead of TCP\n{own}  \
         -b N     socket buffer, bytes\n  -D       do not delay small segments\n  \
         -B       write whole blocks\n  -f X     unit of rates: k m g bits, K M G bytes\n  \
         -v       print more\n  -A N -O N  alignment and offset of the buffer, printed only\n  \
         --like   brl, sgi, ohio or pcattcp\n",
        defaults.length, defaults.count, defaults.port
    );
    TtcpEarlyExit { text, code: i32::from(line != TtcpVariant::Pcattcp) }
}
